import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { timeOfId } from '../../core/domain/ids.ts';
import { HOUR_MS, type UnixMs, unixMs } from '../../core/domain/time.ts';
import { createLogThrottle, type Logger } from '../../core/runtime/log.ts';
import { type Loop, startLoop } from '../../core/runtime/loop.ts';
import { beginAtZero, type Metrics } from '../../core/runtime/metrics.ts';
import {
  forgetOldRequests,
  holdsOldRequests,
  insertRequests,
  type LoggedRequest,
  type RequestBatch,
  secondOf,
} from '../../core/store/access/requests.ts';
import type { Sql } from '../../core/store/db/database.ts';
import type { Problem } from '../web/problem.ts';
import { notesOf } from '../web/request-notes.ts';

type Deps = {
  db: Sql;
  log: Logger;
  metrics: Pick<Metrics, 'requestsUnlogged'>;
  now(): UnixMs;
  /** Returns the time that is used to decide which requests are old enough to be deleted. */
  certainNow(): UnixMs;
};

const KEPT_MS = 30 * 86_400_000;
/** Each try may wait several seconds for a lock, and holds up the readers of a partition meanwhile. */
const FORGET_RETRY_MS = 600_000;
const PAUSE_MS = 1000;
/** The pause under load, which limits the number of statements per second. */
const SHORT_PAUSE_MS = 250;
/** The longest pause after a failure. */
const MAX_PAUSE_MS = 5000;
/** This leaves enough of the time allowed for a shutdown to the other parts of the process. */
const STOP_MS = 5000;

/** Logs answered requests to the shop API. It writes them in the background: up to 500 per statement, and one statement at a time. */
export function createRequestLog({ db, log, metrics, now, certainNow }: Deps) {
  const losses = countLosses({ log, metrics, now });
  const isExplained = countExplained(now);
  const buffer = createRequestBuffer(losses.add, now);
  const writer = createWriter(db, buffer, losses.add);
  return {
    /** Adds an answered shop API request to the log queue. Never throws and never blocks. */
    onAnswer: (request: FastifyRequest, reply: FastifyReply, tookMs: number) => {
      if (request.url.startsWith('/v1/')) buffer.add(describe(request, reply, tookMs, isExplained));
    },
    /** Starts writing. `stop` writes whatever is left, within a few seconds. */
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
  const forget = createForgetting({ db, log, certainNow });
  return startLoop({
    name: 'log of requests',
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async () => {
      losses.tell();
      await forget();
      const written = await writer.write();
      return written > TOGETHER ? SHORT_PAUSE_MS : PAUSE_MS;
    },
  });
}

/**
 * Returns a function that deletes old requests once an hour. A long `pg_dump` prevents this, but not writing. So the function throws only
 * if the partition that is written next may still hold requests from weeks ago.
 */
function createForgetting({ db, log, certainNow }: Pick<Deps, 'db' | 'log' | 'certainNow'>): () => Promise<void> {
  let forgotInHour = -1;
  let pausedUntilMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = certainNow();
    const hour = Math.floor(now / HOUR_MS);
    if (hour === forgotInHour || performance.now() < pausedUntilMs) return;
    const before = unixMs(Math.max(0, now - KEPT_MS));
    try {
      await forgetOldRequests(db, before);
      forgotInHour = hour;
    } catch (error) {
      if (await holdsOldRequests(db, [now, unixMs(now + FORGET_RETRY_MS)], before)) throw error;
      pausedUntilMs = performance.now() + FORGET_RETRY_MS;
      log.warn({ err: error }, 'could not delete old requests from the request log; retrying in ten minutes');
    }
  };
}

async function finish(loop: Loop, writer: Writer, log: Logger): Promise<void> {
  const limit = new AbortController();
  const rest = loop.stop().then(async () => {
    // While the queued requests are being written, requests whose client has disconnected may still finish.
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
  // After a failed write, it's unknown whether it took effect. Writing the same batches again is idempotent.
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
    /**
     * Writes everything that is queued at this time, and returns how many requests that was. If it throws, the next call writes the same
     * requests.
     */
    write: async (): Promise<number> => {
      const wanted = left();
      let written = 0;
      while (written < wanted) {
        const count = await writeBatches();
        // The remaining requests have been dropped in the meantime.
        if (count === 0) break;
        written += count;
      }
      return written;
    },
  };
}

/** Whether the database is unreachable or only temporarily unable to write. */
function isRetryable(error: unknown): boolean {
  return error instanceof Error && 'retryable' in error && error.retryable === true;
}

function describe(
  request: FastifyRequest,
  { statusCode }: FastifyReply,
  tookMs: number,
  isExplained: (keyId: string) => boolean,
): AnsweredRequest {
  const { key, isAdmitted, problem, externalId } = notesOf(request);
  const isRefused = problem !== null && problem.status < 500 && key !== null && isAdmitted;
  return {
    key,
    isAdmitted,
    request: {
      id: request.id,
      method: request.method,
      route: request.routeOptions.url,
      status: statusCode,
      took_ms: Math.round(tookMs),
      code: problem?.code,
      external_id: externalId ?? undefined,
      ...(isRefused && isExplained(key.id) && describeRefusal(problem, request.body)),
    },
  };
}

function countLosses({ log, metrics, now }: Omit<Deps, 'db' | 'certainNow'>) {
  const throttle = createLogThrottle(now);
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
    /** Logs the losses, at most once a minute. */
    tell: () => {
      if (Object.keys(lost).length === 0 || !throttle.isDue('lost')) return;
      log.warn(
        lost,
        'some requests are missing from the request log, because too many arrived for the log or the database',
      );
      lost = {};
    },
  };
}

/** `isAdmitted` means that the request had a valid key and was within its limit. */
type AnsweredRequest = Pick<RequestBatch, 'key'> & { isAdmitted: boolean; request: LoggedRequest };

/** Reasons for dropping a request; see the metric `quittance_requests_unlogged_total`. */
const LOSSES = ['flood', 'full', 'failed'] as const;
export type Loss = (typeof LOSSES)[number];

type RequestBuffer = ReturnType<typeof createRequestBuffer>;

/**
 * The limit per kind for requests that no other limit covers: from strangers, or rejected despite a valid key. At most 30 MB per day and
 * kind.
 */
export const TURNED_AWAY_A_MINUTE = 600;
/** How many of a key's refused requests have their fields and body described per minute. Each takes at most 2 KB. */
const EXPLAINED_A_MINUTE = 60;
/** A process receives this many in three seconds of maximum load, or in minutes of normal load: a few megabytes. */
export const MAX_WAITING = 20_000;
/** A write of this size blocks the event loop for less than a millisecond. Larger writes would hardly save any time. */
export const TOGETHER = 500;

/** Buffers answered requests that haven't been written yet. When it's full, it drops the oldest ones. */
export function createRequestBuffer(onLost: (why: Loss, count: number) => void, now: () => UnixMs) {
  let waiting: AnsweredRequest[] = [];
  const isFlood = countTurnedAway(now);
  return {
    add: (answered: AnsweredRequest) => {
      if (!answered.isAdmitted && isFlood(answered)) {
        onLost('flood', 1);
        return;
      }
      waiting.push(answered);
      if (waiting.length <= MAX_WAITING) return;
      waiting = waiting.slice(TOGETHER);
      onLost('full', TOGETHER);
    },
    /** Removes and returns the oldest requests, at most 500, grouped by key and second. */
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

/**
 * Whether another refused request from this key may be explained in this minute. Otherwise a shop in a loop would fill the disk with the
 * same explanation.
 */
function countExplained(now: () => UnixMs): (keyId: string) => boolean {
  let minute = 0;
  let counts = new Map<string, number>();
  return (keyId) => {
    const present = Math.floor(now() / 60_000);
    if (present !== minute) [minute, counts] = [present, new Map()];
    const count = (counts.get(keyId) ?? 0) + 1;
    counts.set(keyId, count);
    return count <= EXPLAINED_A_MINUTE;
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

/** The request log fields that explain why a request was refused. */
type Refusal = Pick<LoggedRequest, 'errors' | 'body'>;

const MAX_ERRORS = 10;
const MAX_MEMBERS = 30;
const MAX_DEPTH = 4;
/** Long enough to show a misspelled member, but too short for a secret that was sent as a name. Quittance's own secrets are longer. */
const NAME = /^[A-Za-z_][\w-]{0,23}$/;
const CODE = /^[A-Z_]{1,40}$/;

/** Returns a request's refused fields with their codes, and the shape of its body. Neither contains values from the body. */
export function describeRefusal({ extensions }: Problem, body: unknown): Refusal {
  const errors = errorsOf(extensions).slice(0, MAX_ERRORS);
  return {
    ...(errors.length > 0 && { errors }),
    ...(body instanceof Uint8Array && body.length > 0 && { body: describeBody(body) }),
  };
}

/** A conflict says which key was used before, and which members differ from the earlier request. */
function errorsOf({ errors, conflict, fields }: Problem['extensions']): { field: string; code: string }[] {
  const given = [
    ...(Array.isArray(errors) ? errors : []),
    ...(conflict === undefined ? [] : [{ field: conflict, code: 'USED_BEFORE' }]),
    ...(Array.isArray(fields) ? fields.map((field) => ({ field, code: 'DIFFERS' })) : []),
  ];
  return given.map(({ field, code }) => ({
    field: String(field).split('.').map(hideName).join('.'),
    code: CODE.test(code) ? code : '…',
  }));
}

/** Hides a name that could be a secret. `events[0]` is the first item of a list; the empty name stands for the whole body. */
function hideName(name: string): string {
  return name === '' || NAME.test(name.replace(/\[\d{1,5}\]$/, '')) || /^\d{1,5}$/.test(name) ? name : '…';
}

/** Returns the names and types in a body, such as `{amount: number, metadata: {cart: string}}`. */
export function describeBody(body: Uint8Array): string {
  try {
    return shapeOf(JSON.parse(Buffer.from(body).toString()), { left: MAX_MEMBERS }, 0);
  } catch {
    return `not JSON, ${body.length} bytes`;
  }
}

function shapeOf(value: unknown, members: { left: number }, depth: number): string {
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const shown: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (members.left === 0 || depth === MAX_DEPTH) {
      shown.push('…');
      break;
    }
    members.left -= 1;
    const shape = shapeOf(member, members, depth + 1);
    shown.push(Array.isArray(value) ? shape : `${hideName(name)}: ${shape}`);
  }
  return open + shown.join(', ') + close;
}
