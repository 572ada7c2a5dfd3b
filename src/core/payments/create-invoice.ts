import type { ProjectedInvoice } from '../domain/event.ts';
import { formatCheckoutToken, uuidV7 } from '../domain/ids.ts';
import { judgeRepeat, type Repeated } from '../domain/invoice-options.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import {
  amountAlone,
  codeWords,
  countCodeWords,
  drawCodeWords,
  payableRange,
  type WordRange,
} from '../domain/policy.ts';
import { isRecent, type UnixMs } from '../domain/time.ts';
import { type Ask, coalesce } from '../runtime/concurrency.ts';
import { keepNewest } from '../runtime/keep-newest.ts';
import { findValidApiKey } from '../store/access/api-keys.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import {
  advanceHint,
  type Candidate,
  countAddressesInUse,
  countReservedByPart,
  findFirstPlaces,
  findFreeExact,
  findPlaces,
  findReservedInPart,
  hasExactBehindHint,
  type Page,
  type Place,
} from '../store/ledger/allocation.ts';
import { insertInvoices, type NewInvoice, type PlacedInvoice, type Rule } from '../store/ledger/invoice-creation.ts';
import { findReserved, type ReservedInvoice } from '../store/ledger/invoices.ts';
import type { DeadlineClock } from './clocks.ts';
import type { Pool, Relief } from './derive-addresses.ts';
import type { LimitReached, UnpaidGate } from './unpaid-gate.ts';
import type { Unwatched, WatchedNetworks } from './watched-networks.ts';

export type CreateDeps = {
  db: Database;
  now(): UnixMs;
  /** See `createSteadyClock`. A process that creates a single invoice and exits can pass `now`. */
  steadyNow?(): UnixMs;
  /** The clock that decides when invoices are created and expire. Default: the clock behind `now`. */
  deadlineClock?: DeadlineClock;
  random(bytes: number): Uint8Array;
  /** Returns a uniformly distributed integer from 0 to n−1. */
  randomBelow(n: number): number;
  /** If this is absent, each creation runs its own statements, and nothing is cached. */
  sharing?: Sharing;
};

/** State shared by all invoice creations in a process. */
export type Sharing = { places: Places; inserts: SharedInserts };

export function createSharing(deps: Pick<CreateDeps, 'db' | 'now' | 'randomBelow'>): Sharing {
  const places = createPlaces(deps);
  return { places, inserts: shareInserts({ ...deps, places }) };
}

/** The rule may be a few seconds old. If no invoice can be created with it, the rule is read again. */
export type CreateInput = Rule & {
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
  /** See `formatOptions`; `null` means no options. */
  options?: string | null;
};

/** The rule that is in force, which `CreateInput` may be behind. */
type AmountRule = Pick<Rule, 'policy' | 'maxSurchargeMicro'>;

export type Created =
  | { kind: 'created'; invoice: ProjectedInvoice }
  | Repeated<ReservedInvoice>
  | ({ kind: 'amount-unavailable'; addressesInUse: number; frozenAddresses: number } & AmountRule)
  | { kind: 'project-archived' }
  /** The invoice's deadline could be wrong. `problem` says why, and what to do. */
  | { kind: 'clocks-apart'; problem: string }
  /** The project's settings differ from the signed manifest. `problem` says how, and what to do. */
  | { kind: 'rule-not-signed'; problem: string }
  | { kind: 'key-not-valid' };

export type OrderDeps = CreateDeps & { gate: UnpaidGate; relief: Relief; watched: WatchedNetworks };

export type Ordered =
  | Created
  | ({ kind: 'limited' } & LimitReached)
  | { kind: 'unwatched'; network: Network; why: Unwatched };

/**
 * A round fails if other requests took every amount that it tried. Each of those requests created an invoice, so rounds can't fail forever;
 * the limit is only a safety net.
 */
const MAX_ROUNDS = 50;
/** If amounts are free but no invoice can use them, they belong to addresses that someone inserted or changed in the database. */
const MAX_UNCHANGED = 2;

/**
 * Creates an invoice within the project's limits on unpaid invoices. If no payable amount is free, it derives addresses first, if possible.
 * No invoice is created on a network that was never watched. A repeated request always succeeds, because it creates nothing.
 */
export async function createOrder(deps: OrderDeps, input: CreateInput): Promise<Ordered> {
  const { network } = input;
  const why = await deps.watched.whyNot(network);
  if (why !== null) return (await findEarlier(deps, input)) ?? { kind: 'unwatched', network, why };
  const entered = await deps.gate.enter(input.projectId);
  if (entered.kind === 'limited') return (await findEarlier(deps, input)) ?? entered;
  try {
    let room: Pool | null = null;
    for (let round = 1, unchanged = 0; ; round += 1) {
      const created = await createInvoice(deps, input);
      if (created.kind === 'created') deps.relief.noteCreated(input);
      if (created.kind !== 'amount-unavailable' || round === MAX_ROUNDS) return created;
      const before: Pool | null = room;
      const { policy, maxSurchargeMicro } = created;
      room = await deps.relief.relieve({ ...input, policy, maxSurchargeMicro });
      unchanged = before !== null && room?.total === before.total && room.free === before.free ? unchanged + 1 : 0;
      if (room === null || unchanged === MAX_UNCHANGED) return created;
    }
  } finally {
    entered.leave();
  }
}

/**
 * Creates an invoice, or returns the existing one with its idempotency key or external id. The insert is a single statement, because
 * idempotency record, reservation and invoice are the same row. A refused request doesn't use anything up.
 */
export async function createInvoice(deps: CreateDeps, input: CreateInput): Promise<Created> {
  const problem = deps.deadlineClock?.problem() ?? null;
  if (problem !== null) return (await findEarlier(deps, input)) ?? { kind: 'clocks-apart', problem };
  const now = (deps.deadlineClock ?? deps).now();
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
  const first = deps.db.refuseRule(input) === null ? await allocateFirst(placing, inserts, invoice, input) : null;
  if (first !== null) return { kind: 'created', invoice: first };

  // The statement may return no row for several reasons: a unique constraint failed, none of the tried amounts was free, the policy
  // changed, the project was archived, or the key was revoked. Any of these can also happen between two statements, so every round checks
  // for all of them. A rule that isn't signed gets no statement at all, but a repeated request still gets its invoice.
  for (let round = 1; ; round++) {
    const earlier = await findEarlierOrKey(deps, input, now);
    if (earlier.kind !== 'new') return earlier;
    const { key } = earlier;
    if (key.archivedAt !== null) return { kind: 'project-archived' };
    const unsigned = deps.db.refuseRule(key);
    if (unsigned !== null) return { kind: 'rule-not-signed', problem: unsigned };
    const allocated = await allocateNext(placing, invoice, key, round);
    if (allocated.kind === 'created') return allocated;
    if (allocated.kind === 'exhausted' || round === MAX_ROUNDS) {
      // In the meantime, an identical request may have taken the last amount.
      const repeated = await findRepeated(deps, input);
      if (repeated !== null) return repeated;
      const { inUse, frozen } = await countAddressesInUse(deps.db, key.projectId);
      const { policy, maxSurchargeMicro } = key;
      return { kind: 'amount-unavailable', policy, maxSurchargeMicro, addressesInUse: inUse, frozenAddresses: frozen };
    }
  }
}

type Deps = { db: Sql; places: Places; randomBelow(n: number): number };

/**
 * Assigns an address and a payable amount to an invoice in one statement, possibly shared with other requests. Returns `null` if no invoice
 * was created, for whatever reason. Each address is filled before the next one is used, because emptying an address costs about 8 TRX.
 */
async function allocateFirst(
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

type Wanted = { invoice: NewInvoice; rule: Rule };

/**
 * Creates an invoice in one statement, alone or together with other requests that arrive while earlier ones are running. Returns `null` if
 * no invoice was created.
 */
type SharedInserts = Ask<Wanted, { invoice: ProjectedInvoice; place: Place } | null>;

/**
 * The limit is low, so that creations are batched. With a limit of four, PostgreSQL would need a third more time per invoice when there are
 * 64 clients.
 */
const MAX_UNDER_WAY = 2;

/** Batches of more than sixteen gain little. Each creation takes at most 3 KB. */
const MAX_TOGETHER = 32;

/**
 * Each word needs a MAC. If a draw contains no free word, several statements are needed to find a free amount. As long as at most a fifth
 * of an address is taken, 96 out of 100 draws of this size contain a free word.
 */
const WORDS_EACH = 2;

/** One word is enough as long as a draw's first word is taken less often than this. */
const RARELY_TAKEN = 1 / 250;

/** The average covers approximately this many draws. */
const MEMORY = 500;

/** Combines the first statements of concurrent creations. */
function shareInserts(deps: Deps): SharedInserts {
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
        // No invoice was created, possibly because of a single request. Each request continues on its own, so only the faulty one gets the
        // error again.
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

/**
 * Requests for the same payable amounts share one draw and divide the result among themselves, so that no two requests try the same word.
 */
async function placeAll(
  { places, randomBelow }: Deps,
  wanted: readonly Wanted[],
  wordsEach: number,
): Promise<Placed[]> {
  const drawn = new Map<string, MicroUsdt[]>();
  const placed: Placed[] = [];
  for (const { invoice, rule } of wanted) {
    // An address that fails its check affects only one project. That request continues on its own and gets the error again.
    const taken = await places.take(rule, invoice.requestedMicro).catch(() => null);
    if (taken === null) placed.push(null);
    else if ('words' in taken) placed.push(withOffer(invoice, rule, taken));
    else {
      const name = `${rule.projectId} ${rule.policy} ${invoice.requestedMicro} ${rule.maxSurchargeMicro}`;
      const rest = drawn.get(name) ?? draw(invoice, rule, wanted.length * wordsEach, randomBelow);
      drawn.set(name, rest);
      const words = rest.splice(0, wordsEach);
      placed.push(words.length === 0 ? null : withOffer(invoice, rule, { place: taken, words }));
    }
  }
  return placed;
}

function draw({ requestedMicro }: NewInvoice, rule: Rule, count: number, randomBelow: (n: number) => number) {
  if (rule.policy === 'exact') return [requestedMicro];
  return drawCodeWords(payableRange(rule, requestedMicro), count, randomBelow);
}

/** An address, and the amounts on it that can be offered to one invoice. */
type Offer = { place: Place; words: readonly MicroUsdt[] };

function withOffer(invoice: NewInvoice, rule: Rule, { place, words }: Offer): { invoice: PlacedInvoice; place: Place } {
  return { invoice: { ...invoice, rule, addressId: place.id, words }, place };
}

/** The places in an amount range that are known to be free. Other requests may have taken some of these places since. */
type Free = { at: UnixMs; offers: Offer[] };

/**
 * Caches where payable amounts are probably free, so that a creation needs only one statement. That statement makes the final decision. A
 * range is added only after the first attempt in it has failed.
 */
type Places = {
  /**
   * Returns a place to offer for an amount: one that is known to be free, or the project's first address. Returns `null` if there's none.
   */
  take(rule: Rule, requestedMicro: MicroUsdt): Promise<Place | Offer | null>;
  remember(rule: Rule, requestedMicro: MicroUsdt, offers: Offer[]): void;
  /** Call this when a request couldn't use the project's first address, which may have been retired. */
  forget(rule: Rule): void;
};

/** A reactivated address is offered again within this time. */
const FRESH_MS = 60_000;

/** The cache takes at most a few megabytes. */
const MAX_RANGES = 2000;

const MAX_PROJECTS = 10_000;

function createPlaces({ db, now }: { db: Sql; now(): UnixMs }): Places {
  const first = new Map<string, { at: UnixMs; place: Place }>();
  const free = new Map<string, Free>();
  const projectOf = ({ projectId, policy }: Rule) => `${projectId} ${policy}`;
  const isFresh = (at: UnixMs) => isRecent(at, now(), FRESH_MS);
  return {
    take: async (rule, requestedMicro) => {
      const known = free.get(nameOf(rule, requestedMicro));
      const offer = known !== undefined && isFresh(known.at) ? known.offers.shift() : undefined;
      if (offer !== undefined) return offer;
      const name = projectOf(rule);
      const before = first.get(name);
      if (before !== undefined && isFresh(before.at)) return before.place;
      const [place = null] = await firstSound((page) => findFirstPlaces(db, rule.projectId, rule.policy, page), 16);
      if (place !== null) keepNewest(first, name, { at: now(), place }, MAX_PROJECTS);
      return place;
    },
    remember: (rule, requestedMicro, offers) => {
      keepNewest(free, nameOf(rule, requestedMicro), { at: now(), offers }, MAX_RANGES);
    },
    forget: (rule) => void first.delete(projectOf(rule)),
  };
}

function nameOf(rule: Rule, requestedMicro: MicroUsdt): string {
  const { fromMicro, belowMicro } = payableRange(rule, requestedMicro);
  return `${rule.projectId} ${rule.policy} ${fromMicro} ${belowMicro}`;
}

type KeyNotValid = Extract<Created, { kind: 'key-not-valid' }>;

type ValidKey = NonNullable<Awaited<ReturnType<typeof findValidApiKey>>>;

/** Finds an invoice that was already created with this idempotency key or external id. Returns `null` if there's none. */
export async function findEarlier(
  deps: CreateDeps,
  input: CreateInput,
): Promise<KeyNotValid | Repeated<ReservedInvoice> | null> {
  const earlier = await findEarlierOrKey(deps, input, deps.now());
  return earlier.kind === 'new' ? null : earlier;
}

async function findEarlierOrKey(
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

type Allocated = { kind: 'created'; invoice: ProjectedInvoice } | { kind: 'lost' } | { kind: 'exhausted' };

/**
 * Finds free places, uses one, and caches the others for later requests. `lost`: other requests were faster, or something else prevented
 * the invoice. `exhausted`: nothing is free. `round` starts at 1; in each further round, requests are spread over more addresses.
 */
async function allocateNext(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Allocated> {
  deps.places.forget(rule);
  const found = await (rule.policy === 'exact' ? findAddresses : findWords)(deps, invoice, rule, round);
  if (found.kind !== 'free') return found;
  const [mine, ...rest] = found.offers;
  if (mine === undefined) return { kind: 'lost' };
  deps.places.remember(rule, invoice.requestedMicro, rest);
  const [inserted] = await insertInvoices(deps.db, [withOffer(invoice, rule, mine).invoice]);
  if (!inserted) return { kind: 'lost' };
  await noteFull(deps, rule, invoice, mine.place);
  return { kind: 'created', invoice: inserted };
}

type Found = { kind: 'free'; offers: Offer[] } | { kind: 'exhausted' };

/** Concurrent requests for the same amount are spread over at most this many addresses. */
const MAX_SPREAD = 256;

const LEAST_SPREAD = 16;

async function findAddresses(deps: Deps, invoice: NewInvoice, rule: Rule, round: number): Promise<Found> {
  const { db, randomBelow } = deps;
  const amount = amountAlone(invoice.requestedMicro);
  const limit = Math.min(LEAST_SPREAD * 4 ** (round - 1), MAX_SPREAD);
  const found = await firstSound((page) => findFreeExact(db, rule.projectId, amount, page), limit);
  if (found.length === 0) {
    // Update the hint, so that the next refusal doesn't have to scan any addresses.
    if (await hasExactBehindHint(db, rule.projectId, amount))
      await advanceHint(db, rule.projectId, 'exact', amount, 1n);
    return { kind: 'exhausted' };
  }
  const places = round === 1 ? found : shuffle(found, randomBelow);
  return { kind: 'free', offers: places.map((place) => ({ place, words: [invoice.requestedMicro] })) };
}

/** The widest ranges have 90,000 words, so a range is searched in parts of this many tail units, which are 900 words. */
const PART_UNITS = 10_000n;

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
    // The hint must skip neither an address whose last amounts became free only recently, nor an attacker's address, which never gets full.
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

/** Returns a random part of the range, weighted by the number of free words in each part, or `null` if no word is free. */
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

/** Each time a search has passed this many addresses, it marks the preceding ones as full, so that no creation has to scan many more. */
export const HINT_EVERY = 8;

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

/** The size of further pages, if the first page contains no usable place. */
const NEXT_PAGE = 1000;

/**
 * Returns the usable places on the first page that contains any. An attacker therefore gains nothing by inserting addresses before the real
 * ones.
 */
async function firstSound(read: (page: Page) => Promise<Candidate[]>, limit: number): Promise<Candidate[]> {
  let page = { after: 0, limit };
  for (;;) {
    const rows = await read(page);
    const sound = rows.filter(({ isSound }) => isSound);
    const last = rows.at(-1);
    if (sound.length > 0 || last === undefined || rows.length < page.limit) return sound;
    page = { after: last.position, limit: NEXT_PAGE };
  }
}
