import { createHoldings } from './holdings.ts';

/**
 * Who waits: the API's callers with a key that is known as valid, payers' pages, streams of open pages, which are no work once they are
 * open, and everybody else: callers who come for the first time, and junk.
 */
export type Line = 'api' | 'page' | 'live' | 'stranger';
export type Refusal = 'lag' | 'full' | 'late' | 'gone';

/**
 * A request before anything was done for it. Exactly one of `begin` and `refuse` is called, once. The clients of a line take turns:
 * `client` is a network, or a key.
 */
type Ticket = { client: string; begin(): void; refuse(why: Refusal, isHeld: boolean): void; isGone(): boolean };

export type LoadGate = {
  enter(line: Line, ticket: Ticket): void;
  /** Says that a request of a line that began has its answer, or that it waits for its own body. */
  end(line: Line): void;
  /** Says that the body has come. Such a request waits for nobody. */
  resume(line: Line): void;
  load(): { underWay: number; waiting: number; held: number };
};

export type GateLimits = {
  /** A lag of the event loop beyond which nothing more of a line is taken. */
  lagMs: Record<Line, number>;
  /** With fewer requests in the house, lag refuses nobody: it is not they who make it. */
  few: number;
  /** Requests under way, of all lines together, at which a line waits. Streams do not count. */
  underWay: Record<Line, number>;
  /** Of these at most so many are strangers'. */
  strangers: number;
  /** Requests of a line that wait, and all that are under way, together. For streams only those that wait. */
  room: Record<Line, number>;
  maxWaitMs: number;
  /** Requests that begin in one turn of the event loop. */
  perTurn: number;
  /** How long a refusal is kept back, and how many are at the same time. */
  holdMs: number;
  held: number;
};

/**
 * A lag of 150 ms, in every moment of a quarter of a second, is more than the watcher makes when it catches up. Payers go first and are
 * refused last: an order can be placed again, but a payer who sees no page may pay twice or not at all.
 *
 * With eight requests or fewer in the house the lag is somebody else's: of the watcher, or of other programs on a machine that is too
 * small. To refuse them would help nobody, and the service would answer nothing for as long as it lasts.
 *
 * Strangers are refused at half the lag that the API's callers bear, for it is they who make it in a flood, and leave them a quarter of
 * the places.
 *
 * 128 requests keep ten database connections and the processor busy; more under way are no faster, only later. 256 more that
 * wait are a tenth of a second of work. What one client network may ask of pages at once, 500, fits in twice. Sixteen in a turn are a few
 * milliseconds, and so many reads share one statement.
 */
export const LIMITS: GateLimits = {
  lagMs: { api: 150, page: 500, live: 500, stranger: 75 },
  few: 8,
  underWay: { api: 128, page: 192, live: Number.POSITIVE_INFINITY, stranger: 128 },
  strangers: 96,
  room: { api: 384, page: 1024, live: 1024, stranger: 384 },
  maxWaitMs: 5000,
  perTurn: 16,
  holdMs: 250,
  held: 1000,
};

/**
 * Where watcher or webhooks share the process. Their latency under a flood is a few turns of the event loop and of PostgreSQL, which has
 * fewer cores than connections. So requests get less of both; that costs a tenth of their throughput in a flood, and only here.
 */
export const LIMITS_BESIDE_OTHERS: GateLimits = {
  ...LIMITS,
  underWay: { api: 6, page: 12, live: Number.POSITIVE_INFINITY, stranger: 6 },
  strangers: 4,
  perTurn: 1,
};

/** In the order in which they are served. */
const LINES = ['page', 'live', 'api', 'stranger'] as const;
/** Every fourth is the other way about, so that no flood of pages holds up the API for good. */
const OTHER_WAY = ['api', 'stranger', 'live', 'page'] as const;
const OTHER_WAY_EVERY = 4;
/** Every sixteenth is a stranger, so that no flood of callers who are known keeps others from becoming so. */
const STRANGERS_FIRST = ['stranger', 'api', 'live', 'page'] as const;
const STRANGERS_FIRST_EVERY = 16;

type Waiting = { ticket: Ticket; sinceMs: number };

/**
 * Lets requests begin a few in each turn of the event loop, so that what else runs in the process, the watcher and the webhooks above
 * all, gets its turn soon however many come. What is too much is refused before anything was done for it. A refusal is kept back for a
 * moment: a client that asks again at once would spend on refusals what was to be spared.
 *
 * The clients of a line take turns, and in a full line whoever has most requests there loses the oldest of them to who comes with fewer:
 * so nobody is refused because of what others send.
 */
export function createLoadGate({ lagMs }: { lagMs(): number }, limits: GateLimits): LoadGate {
  const lines = {
    page: createHoldings<Waiting>(),
    live: createHoldings<Waiting>(),
    api: createHoldings<Waiting>(),
    stranger: createHoldings<Waiting>(),
  };
  let underWay = 0;
  let strangersUnderWay = 0;
  let held = 0;
  let begun = 0;
  let isTurnDue = false;
  let sweeper: NodeJS.Timeout | undefined;

  const refuse = (ticket: Ticket, why: Refusal) => {
    if (held >= limits.held) return ticket.refuse(why, false);
    held += 1;
    setTimeout(() => {
      held -= 1;
      ticket.refuse(why, true);
    }, limits.holdMs);
  };
  const nextLine = (order: readonly Line[] = LINES) => order.find((line) => lines[line].count() > 0 && hasPlace(line));
  const hasPlace = (line: Line) =>
    underWay < limits.underWay[line] && (line !== 'stranger' || strangersUnderWay < limits.strangers);
  const count = (line: Line, by: 1 | -1) => {
    if (line !== 'live') underWay += by;
    if (line === 'stranger') strangersUnderWay += by;
  };
  const waiting = () => LINES.reduce((sum, line) => sum + lines[line].count(), 0);
  /** Before others strangers do not count: that many of them came refuses nobody else. */
  const inHouse = (line: Line) =>
    underWay + waiting() - (line === 'stranger' ? 0 : strangersUnderWay + lines.stranger.count());
  /** Not for who has as many there as anybody. */
  const makeRoom = (line: Line, { client }: Ticket): boolean => {
    const largest = lines[line].largest() ?? client;
    if (lines[line].countOf(largest) <= lines[line].countOf(client) + 1) return false;
    const waits = lines[line].takeOldest(largest);
    if (waits !== undefined) refuse(waits.ticket, 'full');
    return waits !== undefined;
  };
  const beginNext = (line: Line) => {
    const { ticket } = lines[line].takeNext() as Waiting;
    count(line, 1);
    // Who hung up is still told, at no cost, for the request must end.
    if (!ticket.isGone()) return ticket.begin();
    end(line);
    ticket.refuse('gone', false);
  };
  const turn = () => {
    isTurnDue = false;
    for (let left = limits.perTurn; left > 0; left -= 1) {
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
  /** What can begin does so in the next turns; this is for when nothing ends, because the database hangs. */
  const sweep = () => {
    sweeper = undefined;
    const latestMs = performance.now() - limits.maxWaitMs;
    for (const line of LINES) {
      for (const [client, waits] of [...lines[line].entries()]) {
        if (waits.sinceMs > latestMs) continue;
        lines[line].remove(client, waits);
        refuse(waits.ticket, 'late');
      }
    }
    if (waiting() > 0) planSweep();
  };
  const planSweep = () => {
    sweeper ??= setTimeout(sweep, limits.maxWaitMs / 4);
    sweeper.unref();
  };
  const end = (line: Line) => {
    count(line, -1);
    plan();
  };
  return {
    enter: (line, ticket) => {
      if (inHouse(line) >= limits.few && lagMs() > limits.lagMs[line]) return refuse(ticket, 'lag');
      if (lines[line].count() + (line === 'live' ? 0 : underWay) >= limits.room[line] && !makeRoom(line, ticket)) {
        return refuse(ticket, 'full');
      }
      lines[line].add(ticket.client, { ticket, sinceMs: performance.now() });
      planSweep();
      plan();
    },
    end,
    resume: (line) => count(line, 1),
    load: () => ({ underWay, waiting: waiting(), held }),
  };
}

/** The lines in the order in which the `number`th request that begins is looked for. */
function orderOf(number: number): readonly Line[] {
  if (number % STRANGERS_FIRST_EVERY === 0) return STRANGERS_FIRST;
  return number % OTHER_WAY_EVERY === 0 ? OTHER_WAY : LINES;
}
