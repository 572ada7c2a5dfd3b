/**
 * The deliveries that are leased and wait for their turn, and how many attempts are under way. It decides who is next: endpoints
 * take turns, none has more than `perEndpoint` attempts under way, none more than it leaves to the others, and one whose attempts
 * fail has one. Nothing here knows of the database or the network.
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

const LOOK_AHEAD = { least: 8, most: 512 };

export function createDeliveryBuffer<Item extends Leased>(limits: {
  concurrency: number;
  perEndpoint: number;
  maxWaitMs: number;
}): DeliveryBuffer<Item> {
  const { concurrency, perEndpoint, maxWaitMs } = limits;
  const endpoints = new Map<string, Endpoint<Item>>();
  /** Endpoints that may be next, in the order of their turns. */
  const turns = new Set<string>();
  let underWay = 0;
  let waiting = 0;

  const places = ({ isFailing }: Endpoint<Item>) => Math.min(isFailing ? 1 : perEndpoint, concurrency - underWay);
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
        endpoint.isFailing = isFailing;
        endpoint.waiting.push({ item, sinceMs: nowMs });
        waiting += 1;
        turns.add(endpointId);
      }
      for (const [id, endpoint] of endpoints) {
        if (endpoint.waiting.length + endpoint.underWay === 0) endpoints.delete(id);
      }
    },
    next: () => {
      for (const id of turns) {
        if (underWay >= concurrency) return undefined;
        const endpoint = endpoints.get(id);
        turns.delete(id);
        // One that has all of its places has its turn again when an attempt ends.
        if (endpoint === undefined || endpoint.underWay >= places(endpoint)) continue;
        const first = endpoint.waiting.shift();
        if (first === undefined) continue;
        waiting -= 1;
        underWay += 1;
        endpoint.underWay += 1;
        if (endpoint.waiting.length > 0) turns.add(id);
        return first.item;
      }
      return undefined;
    },
    end: (endpointId, isFailure) => {
      const endpoint = endpoints.get(endpointId);
      if (endpoint === undefined) return [];
      underWay -= 1;
      endpoint.underWay -= 1;
      endpoint.isFailing = isFailure ?? endpoint.isFailing;
      if (isFailure === true) return takeOut(endpoint, () => true);
      if (endpoint.waiting.length > 0) turns.add(endpointId);
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
