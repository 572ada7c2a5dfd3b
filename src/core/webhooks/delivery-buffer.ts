/**
 * The leased deliveries that are waiting for their turn, and the number of attempts in progress. The buffer decides which delivery is next.
 * Targets take turns. Each endpoint may have at most `perEndpoint` attempts in progress, and must leave at least as many places free for
 * the others. A failing target gets one place, and all failing targets together get half of the places. A target is an endpoint, or a
 * single callback URL of an adapter. All of an adapter's targets together must leave as many places for the others as a single endpoint
 * does. The buffer itself uses neither the database nor the network.
 */
export type DeliveryBuffer<Item> = {
  /**
   * Adds deliveries that were leased at `nowMs`. Returns those that don't fit, because no URL of an adapter may block the adapter's other
   * URLs.
   */
  add(items: readonly Item[], nowMs: number): Item[];
  /** Returns the next delivery to attempt. The attempt counts as in progress until `end` is called. */
  next(): Item | undefined;
  /**
   * Ends an attempt to a target. If it failed, removes and returns the target's waiting deliveries. `null` means that the attempt says
   * nothing about the target.
   */
  end(target: string, isFailure: boolean | null): Item[];
  /** Removes and returns deliveries that have been waiting too long. */
  takeStale(nowMs: number): Item[];
  /** Removes and returns all waiting deliveries. */
  takeAll(): Item[];
  /** Returns how many more deliveries may be leased for each known endpoint. */
  room(): ReadonlyMap<string, number>;
  /** Whether a target has so few waiting deliveries that it may soon be idle. */
  isLow(): boolean;
  /** Returns the number of waiting deliveries plus attempts in progress. */
  held(): number;
  underWay(): number;
};

/** How many deliveries may be leased for an unknown endpoint. */
export const DEFAULT_ROOM = 16;
/** How many of an adapter's deliveries may wait, across all of its URLs. */
const ADAPTER_ROOM = 128;

type Leased = { endpointId: string; target: string; isFailing: boolean };
type Target<Item> = {
  endpointId: string;
  /** Whether the endpoint has other targets as well. */
  isShared: boolean;
  waiting: { item: Item; sinceMs: number }[];
  underWay: number;
  isFailing: boolean;
  /**
   * How many deliveries may wait in addition to those in progress. This number doubles when none is left, and halves when one has waited
   * too long.
   */
  lookAhead: number;
};

const LOOK_AHEAD = { least: 8, most: 1024 };

type Limits = { concurrency: number; perEndpoint: number; maxWaitMs: number };

export function createDeliveryBuffer<Item extends Leased>(limits: Limits): DeliveryBuffer<Item> {
  const { concurrency, perEndpoint, maxWaitMs } = limits;
  const targets = new Map<string, Target<Item>>();
  /**
   * The targets in the order of their turns. Failing targets have their own list and come first, because they have only half of the places.
   */
  const turns = { failing: new Set<string>(), healthy: new Set<string>() };
  const attempts = createAttemptCount(limits);

  const takeTurn = (id: string, target: Target<Item>) => {
    turns[target.isFailing ? 'healthy' : 'failing'].delete(id);
    turns[target.isFailing ? 'failing' : 'healthy'].add(id);
  };
  const nextOf = (inTurn: Set<string>): Item | undefined => {
    for (const id of inTurn) {
      const target = targets.get(id);
      inTurn.delete(id);
      // If a target uses all of its places, it gets its next turn when an attempt ends.
      if (target === undefined || !attempts.isRoomFor(target)) continue;
      const first = target.waiting.shift();
      if (first === undefined) continue;
      attempts.count(target, 1);
      if (target.waiting.length > 0) inTurn.add(id);
      return first.item;
    }
    return undefined;
  };
  /** Adds a delivery if there's room for it. */
  const add = (item: Item, nowMs: number): boolean => {
    const { endpointId, target: id, isFailing } = item;
    const isShared = id !== endpointId;
    const fresh = { endpointId, isShared, waiting: [], underWay: 0, isFailing, lookAhead: LOOK_AHEAD.least };
    const target = targets.get(id) ?? fresh;
    attempts.judge(target, isFailing);
    const most = isFailing ? 1 : 2 * perEndpoint;
    if (isShared && target.waiting.length + target.underWay >= most) return false;
    targets.set(id, target);
    target.waiting.push({ item, sinceMs: nowMs });
    takeTurn(id, target);
    return true;
  };
  return {
    add: (items, nowMs) => {
      const rest = items.filter((item) => !add(item, nowMs));
      for (const [id, target] of targets) {
        if (target.waiting.length + target.underWay === 0) targets.delete(id);
      }
      return rest;
    },
    next: () => {
      if (attempts.underWay() >= concurrency) return undefined;
      return (attempts.isRoomForFailing() ? nextOf(turns.failing) : undefined) ?? nextOf(turns.healthy);
    },
    end: (id, isFailure) => {
      const target = targets.get(id);
      if (target === undefined) return [];
      attempts.count(target, -1);
      attempts.judge(target, isFailure ?? target.isFailing);
      const out = isFailure === true ? takeOut(target, () => true) : [];
      if (target.waiting.length > 0) takeTurn(id, target);
      // The adapter's other URLs may have been waiting for this place.
      for (const [otherId, other] of target.isShared ? targets : []) {
        if (other.endpointId === target.endpointId && other.waiting.length > 0) takeTurn(otherId, other);
      }
      return out;
    },
    takeStale: (nowMs) =>
      [...targets.values()].flatMap((target) => {
        const stale = takeOut(target, (sinceMs) => nowMs - sinceMs > maxWaitMs);
        if (stale.length > 0) target.lookAhead = Math.max(LOOK_AHEAD.least, target.lookAhead / 2);
        return stale;
      }),
    takeAll: () => [...targets.values()].flatMap((target) => takeOut(target, () => true)),
    room: () => {
      const room = new Map<string, number>();
      for (const target of targets.values()) {
        const { endpointId, isShared, waiting } = target;
        const own = isShared
          ? Math.max(0, (room.get(endpointId) ?? ADAPTER_ROOM) - waiting.length)
          : roomOf(target, perEndpoint);
        room.set(endpointId, own);
      }
      return room;
    },
    isLow: () => targets.size === 0 || [...targets.values()].some(isLow),
    held: () => [...targets.values()].reduce((sum, { waiting }) => sum + waiting.length, attempts.underWay()),
    underWay: attempts.underWay,
  };
}

/** Counts the attempts in progress: per target, per adapter, for failing targets, and in total. */
function createAttemptCount({ concurrency, perEndpoint }: Limits) {
  let underWay = 0;
  let failingUnderWay = 0;
  const ofAdapters = new Map<string, number>();
  // Failing targets get only half, so that the adapter's other targets always find a place.
  const isRoomAtAdapter = ({ endpointId, isShared, isFailing }: Target<unknown>) =>
    !isShared || (ofAdapters.get(endpointId) ?? 0) < (concurrency - underWay) / (isFailing ? 2 : 1);
  return {
    underWay: () => underWay,
    isRoomFor: (target: Target<unknown>) =>
      target.underWay < Math.min(target.isFailing ? 1 : perEndpoint, concurrency - underWay) && isRoomAtAdapter(target),
    isRoomForFailing: () => failingUnderWay < concurrency / 2,
    count: (target: Target<unknown>, change: 1 | -1) => {
      underWay += change;
      target.underWay += change;
      if (target.isFailing) failingUnderWay += change;
      if (!target.isShared) return;
      const ofAdapter = (ofAdapters.get(target.endpointId) ?? 0) + change;
      if (ofAdapter > 0) ofAdapters.set(target.endpointId, ofAdapter);
      else ofAdapters.delete(target.endpointId);
    },
    judge: (target: Target<unknown>, isFailing: boolean) => {
      if (target.isFailing !== isFailing) failingUnderWay += isFailing ? target.underWay : -target.underWay;
      target.isFailing = isFailing;
    },
  };
}

function takeOut<Item>(target: Target<Item>, isOut: (sinceMs: number) => boolean): Item[] {
  const out = target.waiting.filter(({ sinceMs }) => isOut(sinceMs));
  target.waiting = target.waiting.filter(({ sinceMs }) => !isOut(sinceMs));
  return out.map(({ item }) => item);
}

/** Returns how many more of an endpoint's deliveries may be leased. The look-ahead grows as soon as none is waiting. */
function roomOf(target: Target<unknown>, perEndpoint: number): number {
  const { isFailing, waiting, underWay } = target;
  if (waiting.length === 0 && !isFailing) target.lookAhead = Math.min(LOOK_AHEAD.most, target.lookAhead * 2);
  const most = isFailing ? 1 : perEndpoint + target.lookAhead;
  return Math.max(0, most - waiting.length - underWay);
}

function isLow({ isFailing, waiting, lookAhead }: Target<unknown>): boolean {
  return !isFailing && waiting.length < lookAhead / 2;
}
