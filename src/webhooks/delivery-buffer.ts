/**
 * The leased deliveries that wait for their turn, and the number of attempts under way. It decides which delivery is next: endpoints take
 * turns. None has more than `perEndpoint` attempts under way, and none more than it leaves to the others. An endpoint whose attempts fail
 * has one place; all failing ones together have half of the places. Nothing here knows of the database or the network.
 */
export type DeliveryBuffer<Item> = {
  /** Takes in what was leased at `nowMs`. */
  add(items: readonly Item[], nowMs: number): void;
  /** The next delivery that may be attempted now; its attempt counts as under way until `end`. */
  next(): Item | undefined;
  /** An attempt to this endpoint is over. If it failed, what waits is taken out. `null`: it says nothing about the endpoint. */
  end(endpointId: string, isFailure: boolean | null): Item[];
  /** Takes out what has waited for too long. */
  takeStale(nowMs: number): Item[];
  /** Takes out all that waits. */
  takeAll(): Item[];
  /** How many more may be leased of each endpoint that is known here. */
  room(): ReadonlyMap<string, number>;
  /** Whether some endpoint has so little waiting that it may soon have nothing to do. */
  isLow(): boolean;
  /** Waiting and under way together. */
  held(): number;
  underWay(): number;
};

/** How many deliveries may be leased of an endpoint that is not known here. */
export const DEFAULT_ROOM = 16;

type Leased = { endpointId: string; isFailing: boolean };
type Endpoint<Item> = {
  waiting: { item: Item; sinceMs: number }[];
  underWay: number;
  isFailing: boolean;
  /** How many may wait beside those under way. Doubles when they have run out, halves when one has waited for too long. */
  lookAhead: number;
};

const LOOK_AHEAD = { least: 8, most: 1024 };

type Limits = { concurrency: number; perEndpoint: number; maxWaitMs: number };

export function createDeliveryBuffer<Item extends Leased>(limits: Limits): DeliveryBuffer<Item> {
  const { concurrency, perEndpoint, maxWaitMs } = limits;
  const endpoints = new Map<string, Endpoint<Item>>();
  /** Endpoints that may be next, in the order of their turns; those that fail come first, for they have only half of the places. */
  const turns = { failing: new Set<string>(), healthy: new Set<string>() };
  const attempts = createAttemptCount(limits);

  const takeTurn = (id: string, endpoint: Endpoint<Item>) => {
    turns[endpoint.isFailing ? 'healthy' : 'failing'].delete(id);
    turns[endpoint.isFailing ? 'failing' : 'healthy'].add(id);
  };
  const nextOf = (inTurn: Set<string>): Item | undefined => {
    for (const id of inTurn) {
      const endpoint = endpoints.get(id);
      inTurn.delete(id);
      // An endpoint that has all of its places gets its turn again when an attempt ends.
      if (endpoint === undefined || !attempts.isRoomFor(endpoint)) continue;
      const first = endpoint.waiting.shift();
      if (first === undefined) continue;
      attempts.count(endpoint, 1);
      if (endpoint.waiting.length > 0) inTurn.add(id);
      return first.item;
    }
    return undefined;
  };
  const add = (item: Item, nowMs: number) => {
    const { endpointId, isFailing } = item;
    const fresh = { waiting: [], underWay: 0, isFailing, lookAhead: LOOK_AHEAD.least };
    const endpoint = endpoints.get(endpointId) ?? fresh;
    endpoints.set(endpointId, endpoint);
    attempts.judge(endpoint, isFailing);
    endpoint.waiting.push({ item, sinceMs: nowMs });
    takeTurn(endpointId, endpoint);
  };
  return {
    add: (items, nowMs) => {
      for (const item of items) add(item, nowMs);
      for (const [id, endpoint] of endpoints) {
        if (endpoint.waiting.length + endpoint.underWay === 0) endpoints.delete(id);
      }
    },
    next: () => {
      if (attempts.underWay() >= concurrency) return undefined;
      return (attempts.isRoomForFailing() ? nextOf(turns.failing) : undefined) ?? nextOf(turns.healthy);
    },
    end: (endpointId, isFailure) => {
      const endpoint = endpoints.get(endpointId);
      if (endpoint === undefined) return [];
      attempts.count(endpoint, -1);
      attempts.judge(endpoint, isFailure ?? endpoint.isFailing);
      if (isFailure === true) return takeOut(endpoint, () => true);
      if (endpoint.waiting.length > 0) takeTurn(endpointId, endpoint);
      return [];
    },
    takeStale: (nowMs) =>
      [...endpoints.values()].flatMap((endpoint) => {
        const stale = takeOut(endpoint, (sinceMs) => nowMs - sinceMs > maxWaitMs);
        if (stale.length > 0) endpoint.lookAhead = Math.max(LOOK_AHEAD.least, endpoint.lookAhead / 2);
        return stale;
      }),
    takeAll: () => [...endpoints.values()].flatMap((endpoint) => takeOut(endpoint, () => true)),
    room: () => new Map([...endpoints].map(([id, endpoint]) => [id, roomOf(endpoint, perEndpoint)])),
    isLow: () => endpoints.size === 0 || [...endpoints.values()].some(isLow),
    held: () => [...endpoints.values()].reduce((sum, { waiting }) => sum + waiting.length, attempts.underWay()),
    underWay: attempts.underWay,
  };
}

/** Attempts under way: of each endpoint, of all together, and of those that fail. */
function createAttemptCount({ concurrency, perEndpoint }: Limits) {
  let underWay = 0;
  let failingUnderWay = 0;
  return {
    underWay: () => underWay,
    isRoomFor: (endpoint: Endpoint<unknown>) =>
      endpoint.underWay < Math.min(endpoint.isFailing ? 1 : perEndpoint, concurrency - underWay),
    isRoomForFailing: () => failingUnderWay < concurrency / 2,
    count: (endpoint: Endpoint<unknown>, change: 1 | -1) => {
      underWay += change;
      endpoint.underWay += change;
      if (endpoint.isFailing) failingUnderWay += change;
    },
    judge: (endpoint: Endpoint<unknown>, isFailing: boolean) => {
      if (endpoint.isFailing !== isFailing) failingUnderWay += isFailing ? endpoint.underWay : -endpoint.underWay;
      endpoint.isFailing = isFailing;
    },
  };
}

function takeOut<Item>(endpoint: Endpoint<Item>, isOut: (sinceMs: number) => boolean): Item[] {
  const out = endpoint.waiting.filter(({ sinceMs }) => isOut(sinceMs));
  endpoint.waiting = endpoint.waiting.filter(({ sinceMs }) => !isOut(sinceMs));
  return out.map(({ item }) => item);
}

/** How many more of an endpoint may be leased. It may look further ahead once nothing waits. */
function roomOf(endpoint: Endpoint<unknown>, perEndpoint: number): number {
  const { isFailing, waiting, underWay } = endpoint;
  if (waiting.length === 0 && !isFailing) endpoint.lookAhead = Math.min(LOOK_AHEAD.most, endpoint.lookAhead * 2);
  const most = isFailing ? 1 : perEndpoint + endpoint.lookAhead;
  return Math.max(0, most - waiting.length - underWay);
}

function isLow({ isFailing, waiting, lookAhead }: Endpoint<unknown>): boolean {
  return !isFailing && waiting.length < lookAhead / 2;
}
