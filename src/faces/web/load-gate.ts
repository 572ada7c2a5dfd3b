import { createFairQueue } from './fair-queue.ts';

/**
 * The queues of requests. `api` is for callers with a key known to be valid, and `page` for payers' pages. `live` is for open pages'
 * streams, which cause no work once they are open. `stranger` is for first-time callers and for junk requests.
 */
export type QueueName = (typeof LINES)[number];
export type Refusal = 'lag' | 'full' | 'late' | 'gone';

/**
 * A request for which no work has been done yet. Exactly one of `begin` and `refuse` is called, once. The clients of a queue take turns;
 * `client` is a network or a key.
 */
type Ticket = { client: string; begin(): void; refuse(why: Refusal, isHeld: boolean): void; isGone(): boolean };

export type Places = {
  /** A queue waits while this many requests of all queues together are in progress. Streams don't count. */
  underWay: Record<Exclude<QueueName, 'live'>, number>;
  /** The maximum number of strangers' requests in progress. */
  strangers: number;
  /** The number of requests that begin per turn of the event loop. */
  perTurn: number;
};

export type GateLimits = {
  /** The lag of the event loop beyond which a queue accepts nothing more. */
  lagMs: Record<QueueName, number>;
  /** If fewer requests than this are in progress, none is refused because of lag, because requests can't be its cause. */
  few: number;
  most: Places;
  /** The number of places while the process's other work is late. */
  least: Places;
  /** The limit for a queue's waiting requests plus all requests in progress. For streams, only the waiting ones. */
  room: Record<QueueName, number>;
  maxWaitMs: number;
  /** The minimum time to hold a refusal, the maximum number held at a time, and the maximum number sent per second. */
  holdMs: number;
  held: number;
  heldPerSecond: number;
};

/**
 * A lag of 150 ms that lasts for a quarter of a second is more than a watcher causes when it catches up. Payers are served first and
 * refused last. An order can be placed again, but a payer without a page may pay twice or not at all.
 *
 * With at most 64 requests, which need a twentieth of a second, something else causes the lag: the watcher, or other programs on a machine
 * that is too small. Refusing these requests wouldn't help, and the service would answer nothing while the lag lasts.
 *
 * Strangers are refused at half the lag of API callers, because it's strangers who cause the lag in a flood. A quarter of the places can't
 * be used by strangers, and is left to API callers.
 *
 * 128 requests keep ten database connections and the processor busy. With more requests in progress, each takes longer, and the throughput
 * stays the same. Another 256 waiting requests take a tenth of a second. There's room for twice the 500 page requests that one client
 * network may send at once. Sixteen requests per turn take a few milliseconds, and that many reads share one statement.
 *
 * If the watcher or the webhooks share the process and are late, requests get fewer places. In a flood, the watcher and the webhooks then
 * wait only for a few turns of the event loop, and of PostgreSQL, which has fewer cores than connections. This costs a tenth of the
 * throughput in a flood.
 */
export const LIMITS: GateLimits = {
  lagMs: { api: 150, page: 500, live: 500, stranger: 75 },
  few: 64,
  most: { underWay: { api: 128, page: 192, stranger: 128 }, strangers: 96, perTurn: 16 },
  least: { underWay: { api: 6, page: 12, stranger: 6 }, strangers: 4, perTurn: 1 },
  room: { api: 384, page: 1024, live: 1024, stranger: 384 },
  maxWaitMs: 5000,
  holdMs: 250,
  held: 2000,
  heldPerSecond: 1000,
};

/** The queues, in the order in which they are served. */
export const LINES = ['page', 'live', 'api', 'stranger'] as const;
/** Every fourth request is chosen in this order so that no flood of pages blocks the API permanently. */
const OTHER_WAY = ['api', 'stranger', 'live', 'page'] as const;
const OTHER_WAY_EVERY = 4;
/** Every sixteenth request is chosen in this order so that no flood of known callers keeps new callers from becoming known. */
const STRANGERS_FIRST = ['stranger', 'api', 'live', 'page'] as const;
const STRANGERS_FIRST_EVERY = 16;

type QueuedTicket = { ticket: Ticket; sinceMs: number };

/**
 * Begins only a few requests per turn of the event loop, so that the process's other work, above all the watcher and the webhooks, is done
 * soon, however many requests arrive. Excess requests are refused before any work is done for them. A refusal is held for a moment, because
 * a client that retries immediately would use up the saved work with refusals.
 *
 * The clients of a queue take turns. In a full queue, the client with the most requests loses its oldest one to a client that has fewer.
 * This way, no client is refused because of another client's requests.
 */
export function createLoadGate(
  { lagMs, requestShare }: { lagMs(): number; requestShare(): number },
  limits: GateLimits,
) {
  const lines = createQueues();
  const places = createPlaces(() => placesAt(limits, requestShare()));
  const refusals = createRefusals(limits);
  const { refuse } = refusals;
  let begun = 0;
  let isTurnDue = false;
  const nextLine = (order: readonly QueueName[] = LINES) =>
    order.find((line) => lines.of[line].count() > 0 && places.isFree(line));
  /** Strangers count only against strangers, so that a crowd of them doesn't cause refusals of other clients. */
  const inHouse = (line: QueueName) =>
    places.taken() + lines.count() - (line === 'stranger' ? 0 : places.takenByStrangers() + lines.of.stranger.count());
  const beginNext = (line: QueueName) => {
    const { ticket } = lines.of[line].takeNext() as QueuedTicket;
    places.count(line, 1);
    // A client that has disconnected still gets a refusal, which costs nothing, because the request has to end.
    if (!ticket.isGone()) return ticket.begin();
    end(line);
    ticket.refuse('gone', false);
  };
  const turn = () => {
    isTurnDue = false;
    for (let left = places.perTurn(); left > 0; left -= 1) {
      const line = nextLine(orderOf(begun + 1));
      if (line === undefined) break;
      begun += 1;
      beginNext(line);
    }
    plan();
  };
  const plan = () => {
    if (isTurnDue || nextLine() === undefined) return;
    isTurnDue = true;
    setImmediate(turn);
  };
  /** Reports that a started request has its response, or is waiting for its own body. */
  const end = (line: QueueName) => {
    places.count(line, -1);
    plan();
  };
  const planSweep = createSweeper(lines, limits, (ticket) => refuse(ticket, 'late'));
  return {
    enter: (line: QueueName, ticket: Ticket) => {
      if (inHouse(line) >= limits.few && lagMs() > limits.lagMs[line]) return refuse(ticket, 'lag');
      if (lines.of[line].count() + (line === 'live' ? 0 : places.taken()) >= limits.room[line]) {
        const outbid = lines.makeRoom(line, ticket);
        refuse(outbid ?? ticket, 'full');
        if (outbid === undefined) return;
      }
      lines.of[line].add(ticket.client, { ticket, sinceMs: performance.now() });
      planSweep();
      plan();
    },
    end,
    /** Reports that the body has arrived. The request doesn't queue again. */
    resume: (line: QueueName) => places.count(line, 1),
    hold: refusals.hold,
    load: () => ({ underWay: places.taken(), waiting: lines.count(), held: refusals.held() }),
  };
}

/** The waiting requests, by queue. */
function createQueues() {
  const of = {
    page: createFairQueue<QueuedTicket>(),
    live: createFairQueue<QueuedTicket>(),
    api: createFairQueue<QueuedTicket>(),
    stranger: createFairQueue<QueuedTicket>(),
  };
  return {
    of,
    count: () => LINES.reduce((sum, line) => sum + of[line].count(), 0),
    /** Removes the ticket that loses its place to this one. Returns undefined if this client has as many as any other. */
    makeRoom: (line: QueueName, { client }: Ticket): Ticket | undefined => {
      const largest = of[line].largest() ?? client;
      if (of[line].countOf(largest) <= of[line].countOf(client) + 1) return undefined;
      return of[line].takeOldest(largest)?.ticket;
    },
  };
}

type Queues = ReturnType<typeof createQueues>;

/** Interpolates geometrically between the smallest and the largest numbers of places: half of the share between 6 and 128 is 28. */
function placesAt({ least, most }: GateLimits, share: number): Places {
  if (share >= 1) return most;
  const between = (low: number, high: number) => Math.round(low * (high / low) ** share);
  const underWay = (line: keyof Places['underWay']) => between(least.underWay[line], most.underWay[line]);
  return {
    underWay: { api: underWay('api'), page: underWay('page'), stranger: underWay('stranger') },
    strangers: between(least.strangers, most.strangers),
    perTurn: between(least.perTurn, most.perTurn),
  };
}

/** Counts requests in progress, except streams. */
function createPlaces(limits: () => Places) {
  let underWay = 0;
  let strangers = 0;
  return {
    taken: () => underWay,
    takenByStrangers: () => strangers,
    perTurn: () => limits().perTurn,
    isFree: (line: QueueName) => {
      if (line === 'live') return true;
      const now = limits();
      return underWay < now.underWay[line] && (line !== 'stranger' || strangers < now.strangers);
    },
    count: (line: QueueName, by: 1 | -1) => {
      if (line !== 'live') underWay += by;
      if (line === 'stranger') strangers += by;
    },
  };
}

/**
 * Holds refusals for a moment, up to a maximum number. If many refusals are being held, each is held longer, so that at most
 * `heldPerSecond` are sent per second.
 */
function createRefusals({ holdMs, held: most, heldPerSecond }: GateLimits) {
  let held = 0;
  // The time is rounded to whole steps, so that Node.js keeps few timer lists.
  const timeOf = () => holdMs * (1 + Math.floor((held * 1000) / (heldPerSecond * holdMs)));
  /** Calls `send` for a refusal after a moment, or immediately with `false` if too many are already being held. */
  const hold = (send: (isHeld: boolean) => void) => {
    if (held >= most) return send(false);
    const waitMs = timeOf();
    held += 1;
    setTimeout(() => {
      held -= 1;
      send(true);
    }, waitMs);
  };
  return {
    held: () => held,
    hold,
    refuse: (ticket: Ticket, why: Refusal) => hold((isHeld) => ticket.refuse(why, isHeld)),
  };
}

/**
 * Refuses requests that have been waiting too long. Requests that can begin do so in the next turns, so this matters only if no request
 * ends, because the database is hanging. Returns a function that schedules the next sweep.
 */
function createSweeper({ of, count }: Queues, { maxWaitMs }: GateLimits, onLate: (ticket: Ticket) => void): () => void {
  let sweeper: NodeJS.Timeout | undefined;
  const sweep = () => {
    sweeper = undefined;
    const latestMs = performance.now() - maxWaitMs;
    for (const line of LINES) {
      for (const [client, waits] of [...of[line].entries()]) {
        if (waits.sinceMs > latestMs) continue;
        of[line].remove(client, waits);
        onLate(waits.ticket);
      }
    }
    if (count() > 0) plan();
  };
  const plan = () => {
    sweeper ??= setTimeout(sweep, maxWaitMs / 4);
    sweeper.unref();
  };
  return plan;
}

/** Returns the order in which queues are searched for the `number`th request to begin. */
function orderOf(number: number): readonly QueueName[] {
  if (number % STRANGERS_FIRST_EVERY === 0) return STRANGERS_FIRST;
  return number % OTHER_WAY_EVERY === 0 ? OTHER_WAY : LINES;
}
