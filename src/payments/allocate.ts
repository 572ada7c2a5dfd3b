import { amountAlone, codeWords, countCodeWords, type WordRange, wordRange } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Sql } from '../store/db/database.ts';
import { advanceHint, countFreeExact, countReservedByPart, findReservedInPart } from '../store/ledger/allocation.ts';
import { insertExactInvoices, insertTailInvoices, type NewInvoice } from '../store/ledger/invoice-creation.ts';
import type { Rule, SharedInserts } from './share-inserts.ts';

type Deps = { db: Sql; randomBelow(n: number): number };

/** Words tried when the taken ones are known: other requests can hardly take them all in the meantime. */
const SECOND_DRAW = 32;

/** A range is looked at in parts of so many micro-USDT, 900 words, because the widest ones have 90,000. */
const PART_MICRO = 10_000n;

/** Addresses among which requests for one amount at once may have to spread. */
const MAX_SPREAD = 256;

/** Every so many addresses those before are remembered as taken, so that no creation looks at many more. */
export const HINT_EVERY = 8;

/**
 * Gives an invoice its address and payable amount in one statement, which may be that of others too. `null` if no invoice came of it,
 * for whatever reason. The first address that has something free is filled before the next one is begun, because each costs about 8 TRX
 * to empty.
 */
export async function allocateFirst(
  deps: Deps,
  inserts: SharedInserts,
  invoice: NewInvoice,
  rule: Rule,
): Promise<ProjectedInvoice | null> {
  if (rule.policy === 'tail') return inserts.tail({ invoice, rule });
  return noteFull(deps, rule, invoice, await inserts.exact({ invoice, rule }));
}

export type Allocated = { kind: 'created'; invoice: ProjectedInvoice } | { kind: 'lost' } | { kind: 'exhausted' };

/**
 * Looks at what is free, and takes of that. `lost`: others took it first, or something else stood against the invoice.
 * `exhausted`: nothing is free. `round` counts from 1; the more were lost, the more widely requests spread.
 */
export async function allocateNext(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Allocated> {
  const allocate = rule.policy === 'exact' ? takeAddress : takeWord;
  return allocate(deps, invoice, rule, round);
}

async function takeWord(deps: Deps, invoice: NewInvoice, rule: Rule): Promise<Allocated> {
  const { db, randomBelow } = deps;
  const { projectId } = rule;
  const range = wordRange(invoice.requestedMicro, rule.maxSurchargeMicro);
  const reserved = await countReservedByPart(db, projectId, range, PART_MICRO);
  if (reserved === null) return { kind: 'exhausted' };
  const part = drawPart(range, reserved, randomBelow);
  if (part === null) {
    await advanceHint(db, projectId, 'tail', range, countCodeWords(range));
    return { kind: 'lost' };
  }
  const taken = new Set(await findReservedInPart(db, projectId, range, part));
  const free = codeWords(part).filter((word) => !taken.has(word));
  const [inserted] = await insertTailInvoices(db, [{ ...invoice, words: drawFrom(free, randomBelow), range }]);
  return outcome(inserted);
}

/** A part of the range in which a word is free, drawn by how many are; `null` if there is none. */
function drawPart(range: WordRange, reserved: readonly bigint[], randomBelow: (n: number) => number): WordRange | null {
  const parts = reserved.map((count, index) => {
    const fromMicro = range.fromMicro + BigInt(index) * PART_MICRO;
    const endMicro = fromMicro + PART_MICRO;
    const part = { fromMicro, belowMicro: endMicro < range.belowMicro ? endMicro : range.belowMicro };
    return { part, free: Math.max(0, Number(countCodeWords(part) - count)) };
  });
  const total = parts.reduce((sum, { free }) => sum + free, 0);
  let place = total === 0 ? 0 : randomBelow(total);
  for (const { part, free } of parts) {
    if (place < free) return part;
    place -= free;
  }
  return null;
}

async function takeAddress(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Allocated> {
  const { db } = deps;
  const { projectId } = rule;
  const amount = amountAlone(invoice.requestedMicro);
  const { free, isAnyLookedAt } = await countFreeExact(db, projectId, amount, Math.min(4 ** round, MAX_SPREAD));
  if (free === 0) {
    // The next refusal looks at none.
    if (isAnyLookedAt) await advanceHint(db, projectId, 'exact', amount, 1n);
    return { kind: 'exhausted' };
  }
  const [inserted] = await insertExactInvoices(db, [{ ...invoice, skipped: deps.randomBelow(free) }]);
  return outcome(await noteFull(deps, rule, invoice, inserted));
}

async function noteFull(
  { db }: Deps,
  { projectId }: Rule,
  { requestedMicro }: NewInvoice,
  inserted: (ProjectedInvoice & { position: number }) | null | undefined,
): Promise<ProjectedInvoice | null> {
  const isDue = (inserted?.position ?? 1) % HINT_EVERY === 0;
  if (isDue) await advanceHint(db, projectId, 'exact', amountAlone(requestedMicro), 1n);
  return inserted ?? null;
}

function outcome(invoice: ProjectedInvoice | null | undefined): Allocated {
  return invoice ? { kind: 'created', invoice } : { kind: 'lost' };
}

function drawFrom(words: MicroUsdt[], randomBelow: (n: number) => number): MicroUsdt[] {
  const pool = [...words];
  const count = Math.min(SECOND_DRAW, pool.length);
  for (let i = 0; i < count; i++) {
    const j = i + randomBelow(pool.length - i);
    const [a, b] = [pool[i], pool[j]];
    if (a !== undefined && b !== undefined) [pool[i], pool[j]] = [b, a];
  }
  return pool.slice(0, count);
}
