import { drawCodeWords, wordRange } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Policy } from '../domain/policy.ts';
import { type Ask, coalesce } from '../runtime/coalesce.ts';
import type { Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import {
  type ExactInvoice,
  insertExactInvoices,
  insertTailInvoices,
  type NewInvoice,
  type TailInvoice,
} from '../store/ledger/invoice-creation.ts';

export type Rule = { projectId: string; policy: Policy; maxSurchargeMicro: bigint };
type Wanted = { invoice: NewInvoice; rule: Rule };

/** Creates an invoice in one statement, alone or with those that come while others are under way. `null`: none came of it. */
export type SharedInserts = {
  tail: Ask<Wanted, ProjectedInvoice | null>;
  exact: Ask<Wanted, (ProjectedInvoice & { position: number }) | null>;
};

/** Few, so that creations gather: with four, PostgreSQL takes a third more time for each where 64 clients ask. */
const MAX_UNDER_WAY = 2;
/** Beyond sixteen there is little left to share. Each takes 3 KB at most. */
const MAX_TOGETHER = 32;

/** On an address that is 95 % full for an amount, 96 of 100 draws of so many words hold a free one. Drawing them takes 12 µs. */
const FIRST_DRAW = 64;
/** Where many want the same amount: nearly all of them find a free word while half are taken. */
const WORDS_EACH = 16;

/** Makes the first statement of creations common to those that come at the same time. */
export function shareInserts({ db, randomBelow }: { db: Sql; randomBelow(n: number): number }): SharedInserts {
  return {
    tail: share((wanted) => insertTailInvoices(db, drawWords(wanted, randomBelow))),
    exact: share((wanted) => insertExactInvoices(db, skipAddresses(wanted))),
  };
}

function share<Inserted>(insert: (wanted: Wanted[]) => Promise<(Inserted | null)[]>): Ask<Wanted, Inserted | null> {
  return coalesce({
    maxUnderWay: MAX_UNDER_WAY,
    maxTogether: MAX_TOGETHER,
    answer: (wanted) =>
      insert(wanted).catch((error: unknown) => {
        // Nothing was created, and one of them may be the cause: each goes on alone, and meets its own error again.
        if (wanted.length > 1 && isOfStatement(error)) return wanted.map(() => null);
        throw error;
      }),
  });
}

/** Equals draw together and share what they drew out, so that none takes the word of another. */
function drawWords(wanted: readonly Wanted[], randomBelow: (n: number) => number): TailInvoice[] {
  const drawn = new Map<string, MicroUsdt[]>();
  return rankEquals(wanted).map(({ invoice, rule, name, rank, equals }) => {
    const range = wordRange(invoice.requestedMicro, rule.maxSurchargeMicro);
    const count = Math.max(FIRST_DRAW, WORDS_EACH * equals);
    const words = drawn.get(name) ?? drawCodeWords(range, count, randomBelow);
    drawn.set(name, words);
    return { ...invoice, range, words: words.filter((_, index) => index % equals === rank) };
  });
}

/** Each skips the addresses that the equals before it take. */
function skipAddresses(wanted: readonly Wanted[]): ExactInvoice[] {
  return rankEquals(wanted).map(({ invoice, rank }) => ({ ...invoice, skipped: rank }));
}

/** Equals want the same payable amounts. `rank` counts those before one from 0. */
function rankEquals(wanted: readonly Wanted[]) {
  const counts = new Map<string, number>();
  const ranked = wanted.map(({ invoice, rule }) => {
    const name = `${rule.projectId} ${invoice.requestedMicro} ${rule.maxSurchargeMicro}`;
    const rank = counts.get(name) ?? 0;
    counts.set(name, rank + 1);
    return { invoice, rule, name, rank };
  });
  return ranked.map((each) => ({ ...each, equals: counts.get(each.name) ?? 1 }));
}
