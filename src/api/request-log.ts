import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { timeOfId } from '../domain/ids.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { createLogThrottle } from '../runtime/log-throttle.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import { beginAtZero, type Metrics } from '../runtime/metrics.ts';
import {
  forgetOldRequests,
  insertRequests,
  type LoggedRequest,
  type RequestBatch,
  secondOf,
} from '../store/access/requests.ts';
import type { Sql } from '../store/db/database.ts';
import { notesOf } from '../web/request-notes.ts';

type RequestLog = {
  /** Keeps what was answered, if it is of the API for shops. Never throws, and waits for nothing. */
  onAnswer(request: FastifyRequest, reply: FastifyReply, tookMs: number): void;
  /** Writes from now on. `stop` writes what is left, for seconds at most. */
  start(): { stop(): Promise<void> };
};

type Deps = {
  db: Sql;
  log: Logger;
  metrics: Pick<Metrics, 'requestsUnlogged'>;
  now(): UnixMs;
  /** By which requests are deleted. */
  certainNow(): UnixMs;
};

const KEPT_MS = 30 * 86_400_000;
const HOUR_MS = 3_600_000;
const PAUSE_MS = 1000;
/** Under load, so that no second has more than a few statements at once. */
const SHORT_PAUSE_MS = 250;
/** After a failure it tries again this soon at the latest. */
const MAX_PAUSE_MS = 5000;
/** With the other parts of the process it stays within the time that a stop may take. */
const STOP_MS = 5000;

/** Keeps the answered requests of the API for shops, and writes them beside the answers: 500 in a statement, one statement at a time. */
export function createRequestLog({ db, log, metrics, now, certainNow }: Deps): RequestLog {
  const losses = countLosses({ log, metrics, now });
  const buffer = createRequestBuffer(losses.add, now);
  const writer = createWriter(db, buffer, losses.add);
  return {
    onAnswer: (request, reply, tookMs) => {
      if (request.url.startsWith('/v1/')) buffer.add(describe(request, reply, tookMs));
    },
    start: () => {
      const loop = startWriting({ db, log, certainNow }, writer, losses);
      return { stop: () => finish(loop, writer, log) };
    },
  };
}

type Writer = ReturnType<typeof createWriter>;

function startWriting(
  { db, log, certainNow }: Pick<Deps, 'db' | 'log' | 'certainNow'>,
  writer: Writer,
  losses: { tell(): void },
): Loop {
  let forgotInHour = -1;
  return startLoop({
    name: 'log of requests',
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async () => {
      losses.tell();
      const hour = Math.floor(certainNow() / HOUR_MS);
      // Before the first request is written, for its partition may have been written to weeks ago.
      if (hour !== forgotInHour) await forgetOldRequests(db, unixMs(Math.max(0, certainNow() - KEPT_MS)));
      forgotInHour = hour;
      const written = await writer.write();
      return written > TOGETHER ? SHORT_PAUSE_MS : PAUSE_MS;
    },
  });
}

async function finish(loop: Loop, writer: Writer, log: Logger): Promise<void> {
  const limit = new AbortController();
  const rest = loop.stop().then(async () => {
    // Whose client is gone, nobody waits for: such a request may end while the others are written.
    while (writer.left() > 0) await writer.write();
  });
  const failure = await Promise.race([rest, delay(STOP_MS, undefined, { signal: limit.signal })]).then(
    () => null,
    (error: unknown) => error,
  );
  limit.abort();
  const left = writer.left();
  if (left > 0) log.warn({ err: failure, requests: left }, 'the last requests were not written to the request log');
}

function createWriter(db: Sql, buffer: RequestBuffer, onLost: (why: Loss, count: number) => void) {
  // It is not known whether a write that failed was done, so the same batches are written again, which changes nothing if it was.
  let taken: RequestBatch[] = [];
  const takenCount = () => taken.reduce((sum, { requests }) => sum + requests.length, 0);
  const writeBatches = async (): Promise<number> => {
    if (taken.length === 0) taken = buffer.take();
    const count = takenCount();
    try {
      if (count > 0) await insertRequests(db, taken);
    } catch (error) {
      if (isRetryable(error)) throw error;
      taken = [];
      onLost('failed', count);
      throw error;
    }
    taken = [];
    return count;
  };
  const left = () => buffer.size() + takenCount();
  return {
    left,
    /** Writes all that waits now. Returns how many it were. Throws if that is not possible; then what waits is written next time. */
    write: async (): Promise<number> => {
      const wanted = left();
      let written = 0;
      while (written < wanted) {
        const count = await writeBatches();
        // Others were dropped meanwhile.
        if (count === 0) break;
        written += count;
      }
      return written;
    },
  };
}

/** The database is away, or could not do it just now. */
function isRetryable(error: unknown): boolean {
  return error instanceof Error && 'retryable' in error && error.retryable === true;
}

function describe(request: FastifyRequest, { statusCode }: FastifyReply, tookMs: number): AnsweredRequest {
  const { key, isAdmitted, code, externalId } = notesOf(request);
  return {
    key,
    isAdmitted,
    request: {
      id: request.id,
      method: request.method,
      route: request.routeOptions.url,
      status: statusCode,
      took_ms: Math.round(tookMs),
      code: code ?? undefined,
      external_id: externalId ?? undefined,
    },
  };
}

function countLosses({ log, metrics, now }: Omit<Deps, 'db' | 'certainNow'>) {
  const seldom = createLogThrottle(now);
  beginAtZero(
    metrics.requestsUnlogged,
    LOSSES.map((reason) => ({ reason })),
  );
  let lost: Partial<Record<Loss, number>> = {};
  return {
    add: (why: Loss, count: number) => {
      metrics.requestsUnlogged.inc({ reason: why }, count);
      lost[why] = (lost[why] ?? 0) + count;
    },
    /** Once a minute, if there is something to tell. */
    tell: () => {
      if (Object.keys(lost).length === 0 || !seldom.isDue('lost')) return;
      log.warn(
        lost,
        'requests are missing in the request log: more arrived than it keeps, or than the database can store',
      );
      lost = {};
    },
  };
}

/** `isAdmitted`: a key's request within its limit. */
type AnsweredRequest = Pick<RequestBatch, 'key'> & { isAdmitted: boolean; request: LoggedRequest };

/** Why a request is not kept: see the metric `quittance_requests_unlogged_total`. */
const LOSSES = ['flood', 'full', 'failed'] as const;
export type Loss = (typeof LOSSES)[number];

type RequestBuffer = {
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
