import { codeWords, drawCodeWords, wordRange } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Policy } from '../domain/policy.ts';
import { countFreeExact, findTaken, markFullRanges } from '../store/allocation.ts';
import type { Sql } from '../store/database.ts';
import { insertExactInvoice, insertTailInvoice, type NewInvoice } from '../store/invoices.ts';

/**
 * Gives an invoice its address and payable amount. As few addresses as possible are used, because each costs about 8 TRX to
 * empty: the first address in use that has something free is filled before the next one is begun.
 */

type Deps = { db: Sql; randomBelow(n: number): number };
type Rule = { projectId: string; policy: Policy; maxSurchargeMicro: bigint };

/** On an address that is 95 % full for an amount, 96 of 100 draws of so many words hold a free one. Drawing them takes 12 µs. */
const FIRST_DRAW = 64;

/** Words tried when the taken ones are known: other requests can hardly take them all in the meantime. */
const SECOND_DRAW = 32;

/** Addresses among which requests for one amount at once may have to spread. */
const MAX_SPREAD = 256;

/** The common case, in one statement. `null` if no invoice came of it, for whatever reason. */
export function allocateFirst(deps: Deps, invoice: NewInvoice, rule: Rule): Promise<ProjectedInvoice | null> {
  if (rule.policy === 'exact') return insertExactInvoice(deps.db, invoice, 0);
  const range = wordRange(invoice.requestedMicro, rule.maxSurchargeMicro);
  const words = drawCodeWords(range, FIRST_DRAW, deps.randomBelow);
  return insertTailInvoice(deps.db, invoice, words, range);
}

export type Allocated = { kind: 'created'; invoice: ProjectedInvoice } | { kind: 'lost' } | { kind: 'exhausted' };

/**
 * Looks at what is free, and takes of that. `lost`: others took it first, or something else stood against the invoice.
 * `exhausted`: nothing is free. `round` counts from 1; the more were lost, the more widely requests spread.
 */
export function allocateNext(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Allocated> {
  return rule.policy === 'exact' ? takeAddress(deps, invoice, rule, round) : takeWord(deps, invoice, rule);
}

async function takeWord(deps: Deps, invoice: NewInvoice, rule: Rule): Promise<Allocated> {
  const range = wordRange(invoice.requestedMicro, rule.maxSurchargeMicro);
  const all = codeWords(range);
  const free = (taken: readonly bigint[]) => {
    const reserved = new Set(taken);
    return all.filter((word) => !reserved.has(word));
  };
  let taken = await findTaken(deps.db, rule.projectId, range);
  if (taken !== null && free(taken).length === 0) {
    await markFullRanges(deps.db, rule.projectId, range, all.length);
    taken = await findTaken(deps.db, rule.projectId, range);
  }
  if (taken === null) return { kind: 'exhausted' };
  return outcome(await insertTailInvoice(deps.db, invoice, drawFrom(free(taken), deps.randomBelow), range));
}

async function takeAddress(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Allocated> {
  const spread = Math.min(4 ** round, MAX_SPREAD);
  const free = await countFreeExact(deps.db, rule.projectId, invoice.requestedMicro, spread);
  if (free === 0) return { kind: 'exhausted' };
  return outcome(await insertExactInvoice(deps.db, invoice, deps.randomBelow(free)));
}

function outcome(invoice: ProjectedInvoice | null): Allocated {
  return invoice === null ? { kind: 'lost' } : { kind: 'created', invoice };
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
