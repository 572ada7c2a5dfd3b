import type { MicroUsdt } from '../domain/money.ts';
import { payableRange } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { keepNewest } from '../runtime/keep-newest.ts';
import type { Sql } from '../store/db/database.ts';
import { type Candidate, findFirstPlaces, type Page, type Place } from '../store/ledger/allocation.ts';
import type { Rule } from '../store/ledger/invoice-creation.ts';

/** An address and amounts on it that can be offered to one invoice. */
export type Offer = { place: Place; words: readonly MicroUsdt[] };

/** What is known to be free for a range of amounts; others may have taken of it since. */
type Free = { at: UnixMs; offers: Offer[] };

/**
 * Where a process thinks that payable amounts are free, so that creating takes one statement, which alone decides. It is told of a range
 * only when a first try there failed.
 */
export type Places = {
  /** Takes something to offer for an amount: of what is known to be free, or on the project's first address; null: there is none. */
  take(rule: Rule, requestedMicro: MicroUsdt): Promise<Place | Offer | null>;
  remember(rule: Rule, requestedMicro: MicroUsdt, offers: Offer[]): void;
  /** The project's first address was no place for somebody: it may be retired. */
  forget(rule: Rule): void;
};

/** An address that comes back into use is offered again after this. */
const FRESH_MS = 60_000;
/** A few megabytes. */
const MAX_RANGES = 2000;
const MAX_PROJECTS = 10_000;

export function createPlaces({ db, now }: { db: Sql; now(): UnixMs }): Places {
  const first = new Map<string, { at: UnixMs; place: Place }>();
  const free = new Map<string, Free>();
  const projectOf = ({ projectId, policy }: Rule) => `${projectId} ${policy}`;
  const isFresh = (at: UnixMs) => now() >= at && now() - at < FRESH_MS;
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

/** Behind a page on which nothing can be offered. */
const NEXT_PAGE = 1000;

/** The places of the first page that has any. How many addresses somebody put before the honest ones does not matter. */
export async function firstSound(read: (page: Page) => Promise<Candidate[]>, limit: number): Promise<Candidate[]> {
  let page = { after: 0, limit };
  for (;;) {
    const rows = await read(page);
    const sound = rows.filter(({ isSound }) => isSound);
    const last = rows.at(-1);
    if (sound.length > 0 || last === undefined || rows.length < page.limit) return sound;
    page = { after: last.position, limit: NEXT_PAGE };
  }
}
