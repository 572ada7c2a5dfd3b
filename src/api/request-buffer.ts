import { timeOfId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import { type LoggedRequest, type RequestBatch, secondOf } from '../store/access/requests.ts';

/** `isAdmitted`: a key's request within its limit. */
export type AnsweredRequest = Pick<RequestBatch, 'key'> & { isAdmitted: boolean; request: LoggedRequest };

/** Why a request is not kept: see the metric `quittance_requests_unlogged_total`. */
export const LOSSES = ['flood', 'full', 'failed'] as const;
export type Loss = (typeof LOSSES)[number];

export type RequestBuffer = {
  add(answered: AnsweredRequest): void;
  /** The oldest, 500 at most, by key and second. They are no longer in the buffer. */
  take(): RequestBatch[];
  size(): number;
};

/** Of each kind that nothing limits by itself: they come from strangers, or have a valid key and were turned away. 30 MB a day and kind at most. */
export const TURNED_AWAY_A_MINUTE = 600;
/** Three seconds of what a process answers at most, and minutes of what is usual: some megabytes. */
export const MAX_WAITING = 20_000;
/** To write so many takes less than a millisecond of the event loop, and more would cost each hardly less. */
export const TOGETHER = 500;

/** What was answered and is not written yet. Where it comes too fast the oldest go. */
export function createRequestBuffer(onLost: (why: Loss, count: number) => void, now: () => UnixMs): RequestBuffer {
  let waiting: AnsweredRequest[] = [];
  const isFlood = countTurnedAway(now);
  return {
    add: (answered) => {
      if (!answered.isAdmitted && isFlood(answered)) return onLost('flood', 1);
      waiting.push(answered);
      if (waiting.length <= MAX_WAITING) return;
      waiting = waiting.slice(TOGETHER);
      onLost('full', TOGETHER);
    },
    take: () => {
      const taken = waiting.slice(0, TOGETHER);
      waiting = waiting.slice(TOGETHER);
      return inBatches(taken);
    },
    size: () => waiting.length,
  };
}

function countTurnedAway(now: () => UnixMs): (answered: AnsweredRequest) => boolean {
  let [minute, strangers, known] = [0, 0, 0];
  return ({ key }) => {
    const present = Math.floor(now() / 60_000);
    if (present !== minute) [minute, strangers, known] = [present, 0, 0];
    const count = key === null ? ++strangers : ++known;
    return count > TURNED_AWAY_A_MINUTE;
  };
}

function inBatches(taken: readonly AnsweredRequest[]): RequestBatch[] {
  const batches = new Map<string, Pick<RequestBatch, 'key'> & { requests: [LoggedRequest, ...LoggedRequest[]] }>();
  for (const { key, request } of taken) {
    const name = `${key?.id} ${secondOf(timeOfId(request.id))}`;
    const batch = batches.get(name);
    if (batch === undefined) batches.set(name, { key, requests: [request] });
    else batch.requests.push(request);
  }
  return [...batches.values()];
}
