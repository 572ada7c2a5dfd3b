import { formatCheckoutToken } from '../domain/checkout-token.ts';
import { codeWords, drawCodeWords, wordRange } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import { uuidV7 } from '../domain/ids.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { UnixMs } from '../domain/time.ts';
import { findValidApiKey } from '../store/api-keys.ts';
import type { Database } from '../store/database.ts';
import { findAddressWithRoom, findReserved, insertInvoice, type ReservedInvoice } from '../store/invoices.ts';

export type CreateDeps = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  /** A uniform integer in 0 … n−1. */
  randomBelow(n: number): number;
};

export type CreateInput = {
  keyId: string;
  projectId: string;
  maxSurchargeMicro: bigint;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
};

export type Created =
  | { kind: 'created'; invoice: ProjectedInvoice }
  | { kind: 'replayed'; invoice: ProjectedInvoice }
  | { kind: 'conflict'; rule: 'idempotencyKey' | 'externalId'; fields: string[]; existing: ReservedInvoice }
  | { kind: 'amount-unavailable' }
  | { kind: 'key-not-valid' };

/** Words tried in the first statement, on one address after the other. With 8, one that is 70 % full for an amount has a free one 94 times in 100. */
const FIRST_DRAW = 8;
/** Words tried when the taken ones are known: enough that other requests can hardly take them all in the meantime. */
const SECOND_DRAW = 32;
/** Each round lost means that other requests won 32 words, so an end in sight is certain; the bound is a safety net. */
const MAX_ROUNDS = 50;

/**
 * Creates an invoice, or answers what already holds its idempotency key or external id. The insert is one statement:
 * idempotency record, reservation and invoice are one row. Nothing is used up by a refused request.
 */
export async function createInvoice(deps: CreateDeps, input: CreateInput): Promise<Created> {
  const range = wordRange(input.requestedMicro, input.maxSurchargeMicro);
  const now = deps.now();
  const invoice = {
    id: uuidV7(now, deps.random(10)),
    keyId: input.keyId,
    idempotencyKey: input.idempotencyKey,
    externalId: input.externalId,
    requestedMicro: input.requestedMicro,
    checkoutToken: formatCheckoutToken(deps.random(16)),
    now,
  };
  const words = drawCodeWords(range, FIRST_DRAW, deps.randomBelow);
  const first = await insertInvoice(deps.db, invoice, words, null);
  if (first !== null) return { kind: 'created', invoice: first };

  // No row: a unique constraint held, no word or address was free, or the key was revoked after it was authenticated.
  if ((await findValidApiKey(deps.db, input.keyId, now)) === null) return { kind: 'key-not-valid' };
  const all = codeWords(range);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const reserved = await answerReserved(deps.db, input);
    if (reserved !== null) return reserved;
    const room = await findAddressWithRoom(deps.db, input.projectId, range, all.length);
    if (room === null) return { kind: 'amount-unavailable' };
    const taken = new Set(room.taken);
    const free = all.filter((word) => !taken.has(word));
    const drawn = drawFrom(free, SECOND_DRAW, deps.randomBelow);
    const created = await insertInvoice(deps.db, invoice, drawn, room.addressId);
    if (created !== null) return { kind: 'created', invoice: created };
  }
  return { kind: 'amount-unavailable' };
}

/** The answer when the idempotency key or the external id is taken; the key's rule comes first. */
async function answerReserved(db: Database, input: CreateInput): Promise<Created | null> {
  const reserved = await findReserved(db, input.projectId, input.idempotencyKey, input.externalId);
  const sameKey = reserved.find(({ hasKey }) => hasKey);
  if (sameKey !== undefined) {
    const fields = differingFields(sameKey, input);
    if (fields.length === 0) return { kind: 'replayed', invoice: sameKey };
    return { kind: 'conflict', rule: 'idempotencyKey', fields, existing: sameKey };
  }
  const [sameExternalId] = reserved;
  if (sameExternalId === undefined) return null;
  const fields = differingFields(sameExternalId, input);
  return { kind: 'conflict', rule: 'externalId', fields, existing: sameExternalId };
}

/** What differs in meaning. Asset and network cannot: there is one of each, and a project keeps its network. */
function differingFields(existing: ReservedInvoice, input: CreateInput): string[] {
  const fields: string[] = [];
  if (existing.requestedMicro !== input.requestedMicro) fields.push('amount');
  if (existing.externalId !== input.externalId) fields.push('externalId');
  return fields;
}

function drawFrom(words: MicroUsdt[], count: number, randomBelow: (n: number) => number): MicroUsdt[] {
  const pool = [...words];
  for (let i = 0; i < Math.min(count, pool.length); i++) {
    const j = i + randomBelow(pool.length - i);
    const [a, b] = [pool[i], pool[j]];
    if (a !== undefined && b !== undefined) [pool[i], pool[j]] = [b, a];
  }
  return pool.slice(0, count);
}
