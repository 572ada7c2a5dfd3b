/**
 * The deliveries that are leased and wait for their turn, and how many attempts are under way. It decides who is next: endpoints
 * take turns, none has more than `perEndpoint` attempts under way, none more than it leaves to the others, and one whose attempts
 * fail has one; all that fail together have half of the places. Nothing here knows of the database or the network.
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

/** What may be leased of an endpoint that is not known here. */
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

export function createDeliveryBuffer<Item extends Leased>(limits: {
  concurrency: number;
  perEndpoint: number;
  maxWaitMs: number;
}): DeliveryBuffer<Item> {
  const { concurrency, perEndpoint, maxWaitMs } = limits;
  const endpoints = new Map<string, Endpoint<Item>>();
  /** Endpoints that may be next, in the order of their turns; those that fail come first, for they have only half of the places. */
  const turns = { failing: new Set<string>(), healthy: new Set<string>() };
  let underWay = 0;
  let failingUnderWay = 0;
  let waiting = 0;

  const places = ({ isFailing }: Endpoint<Item>) => Math.min(isFailing ? 1 : perEndpoint, concurrency - underWay);
  const judge = (endpoint: Endpoint<Item>, isFailing: boolean) => {
    if (endpoint.isFailing !== isFailing) failingUnderWay += isFailing ? endpoint.underWay : -endpoint.underWay;
    endpoint.isFailing = isFailing;
  };
  const count = (endpoint: Endpoint<Item>, change: 1 | -1) => {
    underWay += change;
    endpoint.underWay += change;
    if (endpoint.isFailing) failingUnderWay += change;
  };
  const takeTurn = (id: string, endpoint: Endpoint<Item>) => {
    turns[endpoint.isFailing ? 'healthy' : 'failing'].delete(id);
    turns[endpoint.isFailing ? 'failing' : 'healthy'].add(id);
  };
  const nextOf = (inTurn: Set<string>): Item | undefined => {
    for (const id of inTurn) {
      const endpoint = endpoints.get(id);
      inTurn.delete(id);
      // One that has all of its places has its turn again when an attempt ends.
      if (endpoint === undefined || endpoint.underWay >= places(endpoint)) continue;
      const first = endpoint.waiting.shift();
      if (first === undefined) continue;
      waiting -= 1;
      count(endpoint, 1);
      if (endpoint.waiting.length > 0) inTurn.add(id);
      return first.item;
    }
    return undefined;
  };
  const takeOut = (endpoint: Endpoint<Item>, isOut: (sinceMs: number) => boolean): Item[] => {
    const out = endpoint.waiting.filter(({ sinceMs }) => isOut(sinceMs));
    endpoint.waiting = endpoint.waiting.filter(({ sinceMs }) => !isOut(sinceMs));
    waiting -= out.length;
    return out.map(({ item }) => item);
  };
  return {
    add: (items, nowMs) => {
      for (const item of items) {
        const { endpointId, isFailing } = item;
        let endpoint = endpoints.get(endpointId);
        if (endpoint === undefined) {
          endpoint = { waiting: [], underWay: 0, isFailing, lookAhead: LOOK_AHEAD.least };
          endpoints.set(endpointId, endpoint);
        }
        judge(endpoint, isFailing);
        endpoint.waiting.push({ item, sinceMs: nowMs });
        waiting += 1;
        takeTurn(endpointId, endpoint);
      }
      for (const [id, endpoint] of endpoints) {
        if (endpoint.waiting.length + endpoint.underWay === 0) endpoints.delete(id);
      }
    },
    next: () => {
      if (underWay >= concurrency) return undefined;
      const isRoomForFailing = failingUnderWay < concurrency / 2;
      return (isRoomForFailing ? nextOf(turns.failing) : undefined) ?? nextOf(turns.healthy);
    },
    end: (endpointId, isFailure) => {
      const endpoint = endpoints.get(endpointId);
      if (endpoint === undefined) return [];
      count(endpoint, -1);
      judge(endpoint, isFailure ?? endpoint.isFailing);
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
    room: () =>
      new Map(
        [...endpoints].map(([id, endpoint]) => {
          const { isFailing, waiting: queue } = endpoint;
          if (queue.length === 0 && !isFailing) endpoint.lookAhead = Math.min(LOOK_AHEAD.most, endpoint.lookAhead * 2);
          const most = isFailing ? 1 : perEndpoint + endpoint.lookAhead;
          return [id, Math.max(0, most - queue.length - endpoint.underWay)];
        }),
      ),
    isLow: () =>
      endpoints.size === 0 ||
      [...endpoints.values()].some(
        (endpoint) => !endpoint.isFailing && endpoint.waiting.length < endpoint.lookAhead / 2,
      ),
    held: () => waiting + underWay,
    underWay: () => underWay,
  };
}
