import { amountAlone, codeWords, countCodeWords, type WordRange } from '../domain/code-word.ts';
import type { ProjectedInvoice } from '../domain/event.ts';
import { payableRange } from '../domain/policy.ts';
import type { Sql } from '../store/db/database.ts';
import {
  advanceHint,
  countReservedByPart,
  findFreeExact,
  findPlaces,
  findReservedInPart,
  hasExactBehindHint,
  type Place,
} from '../store/ledger/allocation.ts';
import { insertInvoices, type NewInvoice, type Rule } from '../store/ledger/invoice-creation.ts';
import { firstSound, type Offer, type Places } from './places.ts';
import { offer, type SharedInserts, WORDS_EACH } from './share-inserts.ts';

type Deps = { db: Sql; places: Places; randomBelow(n: number): number };

/** A range is looked at in parts of so many units of the tail, 900 words, because the widest ones have 90,000. */
const PART_UNITS = 10_000n;

/** Addresses among which requests for one amount at once may have to spread. */
const MAX_SPREAD = 256;
const LEAST_SPREAD = 16;

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
  const created = await inserts({ invoice, rule });
  if (created === null) return null;
  await noteFull(deps, rule, invoice, created.place);
  return created.invoice;
}

export type Allocated = { kind: 'created'; invoice: ProjectedInvoice } | { kind: 'lost' } | { kind: 'exhausted' };

/**
 * Looks at what is free, takes of that, and remembers the rest for those who come next. `lost`: others took it first, or something else
 * stood against the invoice. `exhausted`: nothing is free. `round` counts from 1; the more were lost, the more widely requests spread.
 */
export async function allocateNext(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Allocated> {
  deps.places.forget(rule);
  const found = await (rule.policy === 'exact' ? findAddresses : findWords)(deps, invoice, rule, round);
  if (found.kind !== 'free') return found;
  const [mine, ...rest] = found.offers;
  if (mine === undefined) return { kind: 'lost' };
  deps.places.remember(rule, invoice.requestedMicro, rest);
  const [inserted] = await insertInvoices(deps.db, [offer(invoice, rule, mine).invoice]);
  if (!inserted) return { kind: 'lost' };
  await noteFull(deps, rule, invoice, mine.place);
  return { kind: 'created', invoice: inserted };
}

type Found = { kind: 'free'; offers: Offer[] } | { kind: 'lost' } | { kind: 'exhausted' };

async function findWords(deps: Deps, invoice: NewInvoice, rule: Rule): Promise<Found> {
  const { db, randomBelow } = deps;
  const range = payableRange(rule, invoice.requestedMicro);
  const { projectId, policy } = rule;
  for (let full = 0; ; ) {
    const [place] = await firstSound(
      ({ after, limit }) => findPlaces(db, projectId, policy, range, { after: Math.max(after, full), limit }),
      1,
    );
    if (place === undefined) return { kind: 'exhausted' };
    const reserved = await countReservedByPart(db, place.id, range, PART_UNITS * range.unitMicro);
    const part = drawPart(range, reserved, randomBelow);
    const offers = part === null ? [] : await offersOf(deps, place, part);
    if (offers.length > 0) return { kind: 'free', offers };
    // What is remembered ends before an address that somebody put there, which is never full, and before one whose last amounts arrived lately.
    await advanceHint(db, projectId, policy, range, countCodeWords(range));
    full = place.position;
  }
}

async function offersOf({ db, randomBelow }: Deps, place: Place, part: WordRange): Promise<Offer[]> {
  const taken = new Set(await findReservedInPart(db, place.id, part));
  const free = codeWords(part).filter((word) => !taken.has(word));
  const words = shuffle(free, randomBelow);
  const offers: Offer[] = [];
  while (words.length > 0) offers.push({ place, words: words.splice(0, WORDS_EACH) });
  return offers;
}

/** A part of the range in which a word is free, drawn by how many are; `null` if there is none. */
function drawPart(range: WordRange, reserved: readonly bigint[], randomBelow: (n: number) => number): WordRange | null {
  const partMicro = PART_UNITS * range.unitMicro;
  const parts = reserved.map((count, index) => {
    const fromMicro = range.fromMicro + BigInt(index) * partMicro;
    const endMicro = fromMicro + partMicro;
    const part = { ...range, fromMicro, belowMicro: endMicro < range.belowMicro ? endMicro : range.belowMicro };
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

async function findAddresses(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Found> {
  const { db, randomBelow } = deps;
  const amount = amountAlone(invoice.requestedMicro);
  const limit = Math.min(LEAST_SPREAD * 4 ** (round - 1), MAX_SPREAD);
  const found = await firstSound((page) => findFreeExact(db, rule.projectId, amount, page), limit);
  if (found.length === 0) {
    // The next refusal looks at none.
    if (await hasExactBehindHint(db, rule.projectId, amount))
      await advanceHint(db, rule.projectId, 'exact', amount, 1n);
    return { kind: 'exhausted' };
  }
  const places = round === 1 ? found : shuffle(found, randomBelow);
  return { kind: 'free', offers: places.map((place) => ({ place, words: [invoice.requestedMicro] })) };
}

async function noteFull({ db }: Deps, { policy, projectId }: Rule, { requestedMicro }: NewInvoice, place: Place) {
  const isDue = policy === 'exact' && place.position % HINT_EVERY === 0;
  if (isDue) await advanceHint(db, projectId, 'exact', amountAlone(requestedMicro), 1n);
}

function shuffle<Item>(items: readonly Item[], randomBelow: (n: number) => number): Item[] {
  const shuffled = [...items];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = randomBelow(i + 1);
    const [a, b] = [shuffled[i], shuffled[j]];
    if (a !== undefined && b !== undefined) [shuffled[i], shuffled[j]] = [b, a];
  }
  return shuffled;
}
