import { createFairQueue } from './fair-queue.ts';

/**
 * The lines of requests: API callers with a key that is known to be valid; payers' pages; streams of open pages, which are no work once
 * they are open; and strangers, who are first-time callers and junk.
 */
export type QueueName = (typeof LINES)[number];
export type Refusal = 'lag' | 'full' | 'late' | 'gone';

/**
 * A request before anything was done for it. Exactly one of `begin` and `refuse` is called, once. The clients of a line take turns:
 * `client` is a network, or a key.
 */
type Ticket = { client: string; begin(): void; refuse(why: Refusal, isHeld: boolean): void; isGone(): boolean };

export type LoadGate = {
  enter(line: QueueName, ticket: Ticket): void;
  /** Says that a request of a line that began has its answer, or that it waits for its own body. */
  end(line: QueueName): void;
  /** Says that the body has come. Such a request waits for nobody. */
  resume(line: QueueName): void;
  /** Calls `send` with a refusal's answer in a moment, or at once and with `false` when too many are held back already. */
  hold(send: (isHeld: boolean) => void): void;
  load(): { underWay: number; waiting: number; held: number };
};

export type Places = {
  /** Requests under way, of all lines together, at which a line waits. Streams do not count. */
  underWay: Record<Exclude<QueueName, 'live'>, number>;
  /** The most of these that strangers may have. */
  strangers: number;
  /** Requests that begin in one turn of the event loop. */
  perTurn: number;
};

export type GateLimits = {
  /** A lag of the event loop beyond which nothing more of a line is taken. */
  lagMs: Record<QueueName, number>;
  /** With fewer requests in the house, lag refuses nobody: it is not they who make it. */
  few: number;
  most: Places;
  /** While the work beside the requests comes late. */
  least: Places;
  /** Requests of a line that wait, and all that are under way, together. For streams only those that wait. */
  room: Record<QueueName, number>;
  maxWaitMs: number;
  /** How long a refusal is held back at least, the most that are held back at the same time, and the most of these that are answered in a second. */
  holdMs: number;
  held: number;
  heldPerSecond: number;
};

/**
 * A lag of 150 ms, in every moment of a quarter of a second, is more than the watcher makes when it catches up. Payers go first and are
 * refused last: an order can be placed again, but a payer who sees no page may pay twice or not at all.
 *
 * With 64 requests or fewer in the house, something else makes the lag: the watcher, or other programs on a machine that is too small.
 * They are a twentieth of a second of work. Refusing the requests would not help, and the service would answer nothing for as long as the
 * lag lasts.
 *
 * Strangers are refused at half the lag that API callers bear, because strangers make the lag in a flood. They leave a quarter of the
 * places to API callers.
 *
 * 128 requests keep ten database connections and the processor busy; more under way are no faster, only later. 256 more that wait are a
 * tenth of a second of work. The 500 requests that one client network may make to pages at once fit in twice. Sixteen in a turn take a few
 * milliseconds, and that many reads share one statement.
 *
 * Where the watcher or the webhooks share the process and come late, requests get fewer places. The latency of that work under a flood is
 * a few turns of the event loop and of PostgreSQL, which has fewer cores than connections. That costs a tenth of the throughput in a flood.
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

/** In the order in which they are served. */
export const LINES = ['page', 'live', 'api', 'stranger'] as const;
/** Every fourth request is taken in this order, so that no flood of pages holds up the API for good. */
const OTHER_WAY = ['api', 'stranger', 'live', 'page'] as const;
const OTHER_WAY_EVERY = 4;
/** Every sixteenth request is taken in this order, so that no flood of known callers keeps others from becoming known. */
const STRANGERS_FIRST = ['stranger', 'api', 'live', 'page'] as const;
const STRANGERS_FIRST_EVERY = 16;

type QueuedTicket = { ticket: Ticket; sinceMs: number };

/**
 * Begins a few requests in each turn of the event loop. So everything else in the process, above all the watcher and the webhooks, gets
 * its turn soon, however many requests come. Excess requests are refused before anything is done for them. A refusal is held back for a
 * moment: a client that asks again at once would use up on refusals the work that they save.
 *
 * The clients of a line take turns. In a full line the client with the most requests loses its oldest to a client with fewer, so no client
 * is refused because of what others send.
 */
export function createLoadGate(
  { lagMs, requestShare }: { lagMs(): number; requestShare(): number },
  limits: GateLimits,
): LoadGate {
  const lines = createQueues();
  const places = createPlaces(() => placesAt(limits, requestShare()));
  const refusals = createRefusals(limits);
  const { refuse } = refusals;
  let begun = 0;
  let isTurnDue = false;
  const nextLine = (order: readonly QueueName[] = LINES) =>
    order.find((line) => lines.of[line].count() > 0 && places.isFree(line));
  /** Strangers count only for strangers, so that a crowd of them gets no other client refused. */
  const inHouse = (line: QueueName) =>
    places.taken() + lines.count() - (line === 'stranger' ? 0 : places.takenByStrangers() + lines.of.stranger.count());
  const beginNext = (line: QueueName) => {
    const { ticket } = lines.of[line].takeNext() as QueuedTicket;
    places.count(line, 1);
    // A client that hung up is still told, at no cost, because the request must end.
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
  const end = (line: QueueName) => {
    places.count(line, -1);
    plan();
  };
  const planSweep = createSweeper(lines, limits, (ticket) => refuse(ticket, 'late'));
  return {
    enter: (line, ticket) => {
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
    resume: (line) => places.count(line, 1),
    hold: refusals.hold,
    load: () => ({ underWay: places.taken(), waiting: lines.count(), held: refusals.held() }),
  };
}

/** The waiting requests, by line. */
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
    /** Takes out the ticket that loses its place to this one; none, if this client has as many there as any other. */
    makeRoom: (line: QueueName, { client }: Ticket): Ticket | undefined => {
      const largest = of[line].largest() ?? client;
      if (of[line].countOf(largest) <= of[line].countOf(client) + 1) return undefined;
      return of[line].takeOldest(largest)?.ticket;
    },
  };
}

type Queues = ReturnType<typeof createQueues>;

/** Between the least and the most in equal ratios, so that half of the share of 6 and 128 is 28. */
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

/** Requests under way. Streams take no place. */
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
 * Holds refusals back for a moment, up to a limit at the same time: the more are held, the longer, so that no more than `heldPerSecond`
 * of them are sent.
 */
function createRefusals({ holdMs, held: most, heldPerSecond }: GateLimits) {
  let held = 0;
  // In whole steps, so that Node keeps few lists of timers.
  const timeOf = () => holdMs * (1 + Math.floor((held * 1000) / (heldPerSecond * holdMs)));
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
 * Refuses requests that have waited for too long. Requests that can begin do so in the next turns; the sweep is for when none ends,
 * because the database hangs. Returns the function that plans the next sweep.
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

/** The order in which lines are searched for the `number`th request to begin. */
function orderOf(number: number): readonly QueueName[] {
  if (number % STRANGERS_FIRST_EVERY === 0) return STRANGERS_FIRST;
  return number % OTHER_WAY_EVERY === 0 ? OTHER_WAY : LINES;
}
