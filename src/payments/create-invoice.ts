import { formatCheckoutToken } from '../domain/checkout-token.ts';
import type { DeadlineClock } from '../domain/clocks.ts';
import { AppError } from '../domain/errors.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import { judgeRepeat, type Repeated } from '../domain/idempotency.ts';
import { uuidV7 } from '../domain/ids.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { findValidApiKey } from '../store/access/api-keys.ts';
import type { Database } from '../store/db/database.ts';
import { countAddressesInUse } from '../store/ledger/allocation.ts';
import type { NewInvoice, Rule } from '../store/ledger/invoice-creation.ts';
import { findReserved, type ReservedInvoice } from '../store/ledger/invoices.ts';
import { allocateFirst, allocateNext } from './allocate.ts';
import { createPlaces, type Places } from './places.ts';
import { type SharedInserts, shareInserts } from './share-inserts.ts';

export type CreateDeps = {
  db: Database;
  now(): UnixMs;
  /** See `createSteadyClock`; `now` where a process creates one invoice and ends. */
  steadyNow?(): UnixMs;
  /** By which an invoice is made and expires; the clock of `now` when absent. */
  deadlineClock?: DeadlineClock;
  random(bytes: number): Uint8Array;
  /** A uniform integer in 0 … n−1. */
  randomBelow(n: number): number;
  /** Without it no statement is shared, and nothing is remembered. */
  sharing?: Sharing;
};

/** What creations of a process have in common. */
export type Sharing = { places: Places; inserts: SharedInserts };

export function createSharing(deps: Pick<CreateDeps, 'db' | 'now' | 'randomBelow'>): Sharing {
  const places = createPlaces(deps);
  return { places, inserts: shareInserts({ ...deps, places }) };
}

/** The rule may be some seconds old: what it is now is asked where it did not lead to an invoice. */
export type CreateInput = Rule & {
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
  /** See `formatOptions`; what is absent is null. */
  options?: string | null;
};

export type Created =
  | { kind: 'created'; invoice: ProjectedInvoice }
  | Repeated<ReservedInvoice>
  | { kind: 'amount-unavailable'; policy: Policy; addressesInUse: number; frozenAddresses: number }
  | { kind: 'project-archived' }
  /** Its deadline could be wrong; `problem` says why, and what to do. */
  | { kind: 'clocks-apart'; problem: string }
  | { kind: 'key-not-valid' };

/**
 * A round is lost when other requests took every amount that it tried, each of which is an invoice of theirs, so an end is
 * certain; the bound is a safety net.
 */
const MAX_ROUNDS = 50;

/**
 * Creates an invoice, or answers what already holds its idempotency key or external id. The insert is one statement:
 * idempotency record, reservation and invoice are one row. Nothing is used up by a refused request. Error: `ADDRESS_NOT_VOUCHED`.
 */
export async function createInvoice(deps: CreateDeps, input: CreateInput): Promise<Created> {
  const problem = deps.deadlineClock?.problem() ?? null;
  if (problem !== null) return (await findEarlier(deps, input)) ?? { kind: 'clocks-apart', problem };
  const now = (deps.deadlineClock ?? deps).now();
  refuseUnvouched(deps, input);
  const invoice: NewInvoice = {
    id: uuidV7(now, deps.random(10)),
    keyId: input.keyId,
    idempotencyKey: input.idempotencyKey,
    externalId: input.externalId,
    requestedMicro: input.requestedMicro,
    options: input.options ?? null,
    checkoutToken: formatCheckoutToken(deps.random(16)),
    now,
    steadyAt: (deps.steadyNow ?? deps.now)(),
  };
  const { places, inserts } = deps.sharing ?? createSharing(deps);
  const placing = { ...deps, places };
  const first = await allocateFirst(placing, inserts, invoice, input);
  if (first !== null) return { kind: 'created', invoice: first };

  // No row: a unique constraint held, nothing that was tried was free, the policy has changed, the project
  // is archived, or the key was revoked. Each may
  // also happen between two statements, so all are asked in each round.
  for (let round = 1; ; round++) {
    const earlier = await askAgain(deps, input, now);
    if (earlier.kind !== 'new') return earlier;
    const { key } = earlier;
    if (key.archivedAt !== null) return { kind: 'project-archived' };
    refuseUnvouched(deps, key);
    const allocated = await allocateNext(placing, invoice, key, round);
    if (allocated.kind === 'created') return allocated;
    if (allocated.kind === 'exhausted' || round === MAX_ROUNDS) {
      // The last amount may have gone to a request that is the same, since they were asked for.
      const repeated = await findRepeated(deps, input);
      if (repeated !== null) return repeated;
      const { inUse, frozen } = await countAddressesInUse(deps.db, key.projectId);
      return { kind: 'amount-unavailable', policy: key.policy, addressesInUse: inUse, frozenAddresses: frozen };
    }
  }
}

/** Nothing is made under a rule that nobody signed. Error: `ADDRESS_NOT_VOUCHED`. */
function refuseUnvouched({ db }: CreateDeps, rule: Rule): void {
  const reason = db.refuseRule(rule);
  if (reason !== null) throw new AppError('ADDRESS_NOT_VOUCHED', reason);
}

type KeyNotValid = Extract<Created, { kind: 'key-not-valid' }>;
type ValidKey = NonNullable<Awaited<ReturnType<typeof findValidApiKey>>>;

/** Finds what was created with this idempotency key or external id before; `null` if nothing was. */
export async function findEarlier(
  deps: CreateDeps,
  input: CreateInput,
): Promise<KeyNotValid | Repeated<ReservedInvoice> | null> {
  const earlier = await askAgain(deps, input, deps.now());
  return earlier.kind === 'new' ? null : earlier;
}

async function askAgain(
  deps: CreateDeps,
  input: CreateInput,
  now: UnixMs,
): Promise<KeyNotValid | Repeated<ReservedInvoice> | { kind: 'new'; key: ValidKey }> {
  const key = await findValidApiKey(deps.db, input.keyId, now);
  if (key === null) return { kind: 'key-not-valid' };
  return (await findRepeated(deps, input)) ?? { kind: 'new', key };
}

async function findRepeated({ db }: CreateDeps, input: CreateInput): Promise<Repeated<ReservedInvoice> | null> {
  const { projectId, idempotencyKey, externalId, options = null } = input;
  return judgeRepeat(await findReserved(db, projectId, idempotencyKey, externalId), { ...input, options });
}
