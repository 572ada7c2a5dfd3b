import { drawCodeWords } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import type { MicroUsdt } from '../domain/money.ts';
import { payableRange } from '../domain/policy.ts';
import { type Ask, coalesce } from '../runtime/coalesce.ts';
import type { Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import type { Place } from '../store/ledger/allocation.ts';
import { insertInvoices, type NewInvoice, type PlacedInvoice, type Rule } from '../store/ledger/invoice-creation.ts';
import type { Offer, Places } from './places.ts';

type Wanted = { invoice: NewInvoice; rule: Rule };

/** Creates an invoice in one statement, alone or with those that come while others are under way. `null`: none came of it. */
export type SharedInserts = Ask<Wanted, { invoice: ProjectedInvoice; place: Place } | null>;

/** Few, so that creations gather: with four, PostgreSQL takes a third more time for each where 64 clients ask. */
const MAX_UNDER_WAY = 2;
/** Beyond sixteen there is little left to share. Each takes 3 KB at most. */
const MAX_TOGETHER = 32;

/**
 * Each word costs a MAC, a lost draw some statements, for it finds out what is free. While a fifth of an address is taken, 96 of 100 draws
 * of so many hold a free one.
 */
export const WORDS_EACH = 2;
/** One word is enough while the first one of a draw is taken less often than this. */
const RARELY_TAKEN = 1 / 250;
/** The mean goes back over about so many draws. */
const MEMORY = 500;

type Deps = { db: Sql; places: Places; randomBelow(n: number): number };

/** Makes the first statement of creations common to those that come at the same time. */
export function shareInserts(deps: Deps): SharedInserts {
  let taken = 0;
  const noteDraw = (words: readonly MicroUsdt[], got: MicroUsdt | undefined) => {
    taken += (Number(got !== words[0]) - taken) / MEMORY;
  };
  return coalesce({
    maxUnderWay: MAX_UNDER_WAY,
    maxTogether: MAX_TOGETHER,
    answer: async (wanted) => {
      const placed = await placeAll(deps, wanted, taken < RARELY_TAKEN ? 1 : WORDS_EACH);
      const offered = placed.flatMap((each) => each?.invoice ?? []);
      if (offered.length === 0) return wanted.map(() => null);
      const inserted = await insertInvoices(deps.db, offered).catch((error: unknown) => {
        // Nothing was created, and one of them may be the cause: each goes on alone, and meets its own error again.
        if (wanted.length > 1 && isOfStatement(error)) return [];
        throw error;
      });
      const created = new Map(inserted.map((invoice, index) => [offered[index]?.id, invoice]));
      for (const { id, words } of offered) noteDraw(words, created.get(id)?.payableMicro);
      return placed.map((each) => {
        const invoice = each === null ? null : created.get(each.invoice.id);
        return each === null || !invoice ? null : { invoice, place: each.place };
      });
    },
  });
}

type Placed = { invoice: PlacedInvoice; place: Place } | null;

/** Equals, which want the same payable amounts, draw together and share what they drew out, so that none takes the word of another. */
async function placeAll(
  { places, randomBelow }: Deps,
  wanted: readonly Wanted[],
  wordsEach: number,
): Promise<Placed[]> {
  const drawn = new Map<string, MicroUsdt[]>();
  const placed: Placed[] = [];
  for (const { invoice, rule } of wanted) {
    // An address that fails its examination is that of one project: who wants it goes on alone, and meets the error again.
    const taken = await places.take(rule, invoice.requestedMicro).catch(() => null);
    if (taken === null) placed.push(null);
    else if ('words' in taken) placed.push(offer(invoice, rule, taken));
    else {
      const name = `${rule.projectId} ${rule.policy} ${invoice.requestedMicro} ${rule.maxSurchargeMicro}`;
      const rest = drawn.get(name) ?? draw(invoice, rule, wanted.length * wordsEach, randomBelow);
      drawn.set(name, rest);
      const words = rest.splice(0, wordsEach);
      placed.push(words.length === 0 ? null : offer(invoice, rule, { place: taken, words }));
    }
  }
  return placed;
}

function draw({ requestedMicro }: NewInvoice, rule: Rule, count: number, randomBelow: (n: number) => number) {
  if (rule.policy === 'exact') return [requestedMicro];
  return drawCodeWords(payableRange(rule, requestedMicro), count, randomBelow);
}

export function offer(
  invoice: NewInvoice,
  rule: Rule,
  { place, words }: Offer,
): { invoice: PlacedInvoice; place: Place } {
  return { invoice: { ...invoice, rule, addressId: place.id, words }, place };
}
