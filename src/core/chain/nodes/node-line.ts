import { setTimeout as delay } from 'node:timers/promises';
import { retryableError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import type { NodeSpec } from '../../domain/node.ts';
import { DAY_MS, toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { createSemaphore } from '../../runtime/concurrency.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';
import type { Logger } from '../../runtime/log.ts';
import { backoffMs } from '../../runtime/loop.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { createNodeClient, type Lateness, type NodeClient, type NodeClientOptions, type Outcome } from './client.ts';
import { MAX_STREAMS } from './grpc-client.ts';
import { MAX_CONNECTIONS } from './http-client.ts';
import type { AskOptions, Question, Substitutable } from './node.ts';

export type NodeLineOptions = {
  spec: NodeSpec;
  /** Used in logs and metrics. Unique among a network's nodes. */
  origin: string;
  network: Network;
  timeoutMs: number;
  patience: ReturnType<typeof createAdaptiveTimeout>;
  maxAnswerBytes?: number;
  now(): UnixMs;
  /** A monotonic clock in milliseconds. */
  clockMs(): number;
  random(): number;
  log: Logger;
  metrics: Metrics;
  closing: AbortSignal;
  /** Whether no other node can be asked at the moment. */
  isAlone(): boolean;
  /** Creates the client. The default asks over the network. */
  createClient?(options: NodeClientOptions): NodeClient;
};

const NEWEST_WEIGHT = 0.2;

/** The connection to one node. Every request goes through its budget, its pause and its counters. */
export function createNodeLine(options: NodeLineOptions) {
  const { spec, origin, network, clockMs, metrics, closing, patience, createClient = createNodeClient } = options;
  const budget = createNodeBudget({ ...options, ...spec });
  const record = createRecord(options);
  const client = createClient(options);
  const atOnce = createSemaphore(spec.url.startsWith('grpc') ? MAX_STREAMS : MAX_CONNECTIONS);
  const unavailableReason = (): string | null => {
    if (closing.aborted) return 'the service is stopping';
    const pausedUntil = untilText(options, record.pause.remainingMs());
    return pausedUntil && `it is paused until ${pausedUntil} (${record.seen.reason})`;
  };
  // Silence counts as a failure only if another node can be asked.
  const isWorthWaitingFor = ({ late }: { late: Lateness | null }) =>
    late === 'slow' || (late === 'silent' && options.isAlone());
  const takeTurn = async (): Promise<string | null> => {
    const before = unavailableReason();
    if (before !== null) return before;
    const turn = await budget.take(closing).catch(() => 'taken' as const);
    if (turn === 'exhausted') return 'its daily request limit is used up';
    if (turn === 'too-many-waiting') return 'too many requests are queued';
    record.warnings.budget(budget.usedShare());
    // The node may have been paused in the meantime. More requests would prolong its suspension.
    return unavailableReason();
  };
  const refuseFor = (obstacle: string | null) => {
    if (obstacle === null) return;
    metrics.nodeRequests.inc({ network, node: origin, outcome: 'unsent' });
    throw retryableError('NODE_REFUSED', `${origin} was not queried: ${obstacle}`);
  };
  const ask = async <Answer>(question: Question<Answer>, call: AskOptions = {}): Promise<Answer> => {
    refuseFor(record.asideReason(question));
    refuseFor(await takeTurn());
    // An answer's timeout starts only when a connection is free. By then the node may have failed, so check again.
    return atOnce(async () => {
      refuseFor(unavailableReason() ?? record.asideReason(question));
      return send(question, call);
    });
  };
  const send = async <Answer>(question: Question<Answer>, call: AskOptions): Promise<Answer> => {
    const { isOptional = false, mayBeLarge = false, wantsBytes = false, timeoutMs = options.timeoutMs } = call;
    const kind = question.substitutable;
    // A failure of the separate gRPC API doesn't count against the node, because its JSON API still works.
    const isOfTwin = wantsBytes && client.hasTwin && kind === undefined;
    record.seen.requests += 1;
    if (!isOptional) record.seen.inFlight += 1;
    const sentMs = clockMs();
    try {
      return await client.ask(question, {
        ...call,
        timeoutMs: isOptional ? timeoutMs : patience.longer(question, timeoutMs),
        // If this is the only node, a slow answer may take longer. Otherwise Quittance cuts off an answer that arrives slowly, and asks
        // another node.
        ...(options.isAlone() ? {} : { steadyShare: 1 }),
        onOutcome: (outcome) => {
          if (outcome.kind === 'ok') patience.reset(question);
          else if (isWorthWaitingFor(outcome) && !isOptional) patience.grow(question);
          if (!isOfTwin) record.observe(outcome, { sentMs, isOptional, mayBeLarge, kind });
        },
      });
    } finally {
      if (!isOptional) record.seen.inFlight -= 1;
    }
  };
  const isOpenFor = (kind: Substitutable) =>
    (kind !== 'logs' || client.hasJsonRpc) &&
    (kind !== 'bytes' || client.hasTwin) &&
    record.asideReason({ substitutable: kind }) === null;
  return {
    ...record,
    hasBytes: client.hasBytes,
    isOpenFor,
    ask,
    budget,
    isOpen: () => unavailableReason() === null && !budget.isExhausted(),
    close: client.close,
  };
}

/** Returns the time when a pause ends, in whole seconds, or `null` if it's over. Alarms and logs show a message for longer than a pause. */
function untilText({ now }: Pick<NodeLineOptions, 'now'>, remainingMs: number): string | null {
  return remainingMs > 0 ? toIso(unixMs(Math.ceil((now() + remainingMs) / 1000) * 1000)) : null;
}

/** The longest pause for questions that have a substitute. */
const LONGEST_ASIDE_MS = 10 * 60_000;

/** Records a node's answers and failures. Depending on them, it pauses the node or questions of one kind. */
function createRecord(options: NodeLineOptions) {
  const { origin, network, clockMs, metrics, closing, isAlone } = options;
  const labels = { network, node: origin };
  const pause = createNodePause(options);
  const asides = {
    logs: createNodePause({ ...options, longestMs: LONGEST_ASIDE_MS }),
    ranges: createNodePause({ ...options, longestMs: LONGEST_ASIDE_MS }),
    bytes: createNodePause({ ...options, longestMs: LONGEST_ASIDE_MS }),
  };
  const warnings = createNodeWarnings(options);
  const seen = {
    requests: 0,
    refusals: 0,
    /**
     * The number of pending requests that aren't optional. If optional ones counted, they would block other requests while the node is on
     * trial.
     */
    inFlight: 0,
    answerMs: null as number | null,
    isWell: false,
    reason: null as string | null,
  };
  const fail = (reason: string, failure: Omit<Failure, 'isAlone'>) => {
    seen.isWell = false;
    seen.reason = reason;
    const isNew = pause.fail({ ...failure, isAlone: isAlone() });
    if (isNew) warnings.paused(reason, pause.remainingMs(), pause.failures());
  };
  const setAside = (kind: Substitutable, reason: string, failure: Omit<Failure, 'isAlone'>) => {
    const aside = asides[kind];
    const isNew = aside.fail({ ...failure, isAlone: false });
    if (isNew) warnings.aside(kind, reason, aside.remainingMs(), aside.failures());
  };
  const recover = (hadFailed: boolean) => {
    if (!hadFailed) return;
    seen.reason = null;
    warnings.recovered();
  };
  return {
    pause,
    seen,
    warnings,
    /** Pauses the node after a wrong answer. */
    report: (reason: string) => fail(reason, { kind: 'report', sentMs: clockMs(), costMs: 0, askedMs: null }),
    /** Returns why questions of this kind are paused at the moment, or `null`. */
    asideReason: ({ substitutable: kind }: Pick<Question<unknown>, 'substitutable'>): string | null => {
      const pausedUntil = kind === undefined ? null : untilText(options, asides[kind].remainingMs());
      return pausedUntil && `requests for ${kind} are paused until ${pausedUntil}`;
    },
    setAside: (kind: Substitutable, reason: string) =>
      setAside(kind, reason, { kind: 'refusal', sentMs: clockMs(), costMs: 0, askedMs: null }),
    praise: () => recover(pause.praise()),
    observe: (
      outcome: Outcome,
      asked: { sentMs: number; isOptional: boolean; mayBeLarge: boolean; kind: Substitutable | undefined },
    ) => {
      const { sentMs, isOptional, mayBeLarge, kind } = asked;
      metrics.nodeRequests.inc({ ...labels, outcome: outcome.kind });
      const elapsedMs = clockMs() - sentMs;
      if (outcome.kind === 'refused') {
        seen.refusals += 1;
        // If the only node answers slowly, ask it again soon with a longer timeout.
        const costMs = outcome.late === 'slow' && isAlone() ? 0 : elapsedMs;
        const failure = { kind: 'refusal', sentMs, costMs, askedMs: outcome.retryAfterMs } as const;
        if (kind !== undefined) {
          // If the block itself is too large, a substitute wouldn't help.
          if (!closing.aborted && !(mayBeLarge && outcome.isTooLarge)) setAside(kind, outcome.reason, failure);
          return;
        }
        // A request that fails because the service is stopping says nothing about the node. Neither does a question that a stranger chose.
        const isForgiven = (isOptional && outcome.mayBeTheQuestion) || (mayBeLarge && outcome.isTooLarge);
        if (!closing.aborted && !isForgiven) fail(outcome.reason, failure);
        return;
      }
      if (kind !== undefined) {
        asides[kind].answer();
        return;
      }
      metrics.nodeAnswerSeconds.observe(labels, elapsedMs / 1000);
      seen.answerMs = (seen.answerMs ?? elapsedMs) * (1 - NEWEST_WEIGHT) + elapsedMs * NEWEST_WEIGHT;
      // An answer to a request that was sent before the pause says nothing about the node now.
      if (pause.remainingMs() > 0) return;
      seen.isWell = true;
      recover(pause.answer());
    },
  };
}

/** A failing node is logged at the start of a series of failures and then at this interval, so that an outage doesn't fill the disk. */
const REPEAT_LOG_MS = 60_000;
const BUDGET_WARNING_SHARE = 0.8;

const SUBSTITUTES = { logs: 'infos', ranges: 'single blocks', bytes: 'JSON' } as const;

type WarningOptions = Pick<NodeLineOptions, 'network' | 'origin' | 'log' | 'now' | 'clockMs'>;

/** Writes log lines about one node. Each kind of line has its own rate limit. */
function createNodeWarnings({ network, origin, log, now, clockMs }: WarningOptions) {
  const labels = { network, node: origin };
  let pausedLoggedMs = Number.NEGATIVE_INFINITY;
  const asideLoggedMs = new Map<Substitutable, number>();
  let warnedDay = -1;
  let exhaustedDay = -1;
  return {
    paused: (reason: string, pausedForMs: number, failures: number) => {
      if (failures > 1 && clockMs() - pausedLoggedMs < REPEAT_LOG_MS) return;
      pausedLoggedMs = clockMs();
      log.warn({ ...labels, reason, pausedForMs: Math.ceil(pausedForMs), failures }, 'a node is paused');
    },
    aside: (kind: Substitutable, reason: string, pausedForMs: number, failures: number) => {
      const lastMs = asideLoggedMs.get(kind) ?? Number.NEGATIVE_INFINITY;
      if (failures > 1 && clockMs() - lastMs < REPEAT_LOG_MS) return;
      asideLoggedMs.set(kind, clockMs());
      const line = { ...labels, kind, reason, pausedForMs: Math.ceil(pausedForMs), failures };
      log.warn(line, `a node does not return ${kind}: Quittance requests ${SUBSTITUTES[kind]} instead`);
    },
    recovered: () => log.info(labels, 'a node works again'),
    /** `usedShare` is the share of the day's requests that is used, or `null` if there's no limit. */
    budget: (usedShare: number | null) => {
      if (usedShare === null || usedShare < BUDGET_WARNING_SHARE) return;
      const today = Math.floor(now() / DAY_MS);
      const usedPercent = Math.floor(usedShare * 100);
      if (today !== warnedDay) log.warn({ ...labels, usedPercent }, "most of a node's daily requests are used up");
      warnedDay = today;
      if (usedShare < 1 || today === exhaustedDay) return;
      exhaustedDay = today;
      log.error(
        labels,
        "a node's daily request limit is used up: Quittance pauses it until midnight UTC; add a node or raise #daily=",
      );
    },
  };
}

/** A request that would wait longer than this would be stale, so another node is the better choice. */
const MAX_WAITING = 200;
const MAX_WAIT_SECONDS = 10;

type NodeBudgetOptions = Pick<NodeSpec, 'requestsPerSecond' | 'requestsPerDay'> &
  Pick<NodeLineOptions, 'now' | 'clockMs'>;

/**
 * Limits the requests to a node: per second, with bursts of up to one second's worth, and per UTC day. The count starts at 0, so after a
 * restart the requests already used that day are forgotten.
 */
function createNodeBudget({ requestsPerSecond, requestsPerDay, now, clockMs }: NodeBudgetOptions) {
  const perDay = requestsPerDay ?? Number.POSITIVE_INFINITY;
  const bucket = requestsPerSecond === null ? null : createBucket(requestsPerSecond, clockMs);
  let day = -1;
  let count = 0;
  const requestsToday = () => {
    const today = Math.floor(now() / DAY_MS);
    if (today !== day) count = 0;
    day = today;
    return count;
  };
  const isExhausted = () => requestsToday() >= perDay;
  return {
    isExhausted,
    requestsToday,
    /** `null` if there's no limit. */
    requestsLeft: () => (requestsPerDay === null ? null : Math.max(0, requestsPerDay - requestsToday())),
    /** The share of the day's requests that is used, from 0 to 1; `null` if there's no limit. */
    usedShare: () => (requestsPerDay === null ? null : requestsToday() / requestsPerDay),
    /** Resolves when it's the caller's turn, in the order of the calls. Rejects if `signal` aborts. */
    take: async (signal: AbortSignal) => {
      if (isExhausted()) return 'exhausted';
      const waitMs = bucket === null ? 0 : bucket.reserve();
      if (waitMs === null) return 'too-many-waiting';
      count += 1;
      if (waitMs > 0) await delay(waitMs, undefined, { signal });
      return 'taken';
    },
  };
}

/** The number of tokens can be negative. This debt determines how long the caller waits, so requests are sent in order. */
function createBucket(perSecond: number, clockMs: () => number) {
  const burst = Math.max(1, perSecond);
  const maxDebt = Math.min(MAX_WAITING, Math.max(1, perSecond * MAX_WAIT_SECONDS));
  let tokens = burst;
  let filledMs = clockMs();
  return {
    /** Returns the wait in milliseconds, or `null` if too many are waiting already. */
    reserve: (): number | null => {
      const nowMs = clockMs();
      tokens = Math.min(burst, tokens + ((nowMs - filledMs) / 1000) * perSecond);
      filledMs = nowMs;
      if (tokens - 1 < -maxDebt) return null;
      tokens -= 1;
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
    },
  };
}

const MOST = 64;
/** A large block takes about a minute over a slow connection. A hanging node costs at most this long, once. */
const MAX_LIMIT_MS = 120_000;
/** Maximum number of questions with an extended timeout. There are usually few, because each block is retried until it's read. */
const MAX_KEPT = 200;

/**
 * Extends a question's timeout after a late answer, for all nodes on a network. Timeouts are per question, because a large answer is large
 * on every node, while all other answers stay small. That way a hanging node is still detected quickly, and another node can answer in time
 * if this one can't.
 */
export function createAdaptiveTimeout() {
  const factors = new Map<string, number>();
  return {
    /** Call this when an answer was late. The next answer to the same question, from any node, may take twice as long. */
    grow: (question: Question<unknown>) => {
      const name = nameOf(question);
      keepNewest(factors, name, Math.min(MOST, (factors.get(name) ?? 1) * 2), MAX_KEPT);
    },
    /** Call this when the question was answered. */
    reset: (question: Question<unknown>) => void (factors.size > 0 && factors.delete(nameOf(question))),
    /** Returns the timeout for the answer, in milliseconds. */
    longer: (question: Question<unknown>, limitMs: number) => {
      const factor = factors.size === 0 ? 1 : (factors.get(nameOf(question)) ?? 1);
      return Math.max(limitMs, Math.min(MAX_LIMIT_MS, limitMs * factor));
    },
  };
}

function nameOf({ http: { path, body } }: Question<unknown>): string {
  return `${path} ${JSON.stringify(body)}`;
}

type Failure = {
  kind: 'refusal' | 'report';
  /** When the request was sent, and how long it took to fail. */
  sentMs: number;
  costMs: number;
  askedMs: number | null;
  /** Whether there's no other node to ask. */
  isAlone: boolean;
};

export type NodePause = ReturnType<typeof createNodePause>;

/** If other nodes are available, a failing node's pauses can grow long. The only node must be retried soon. */
const WITH_OTHERS = { firstMs: 1000, longestMs: 60_000 };
export const ALONE = { firstMs: 250, longestMs: 5000 };
/**
 * The pause after a hang is longer than the timeout by this factor. If it weren't, and a second node hung as well, the first one would be
 * asked again.
 */
const COST_FACTOR = 2;
/** A single successful answer between two refusals isn't a recovery. */
const ANSWERS_THAT_END_A_ROW = 3;
/** A failure this long after the last pause starts a new series. */
const ROW_ENDS_MS = 10 * 60_000;
/** Each pause is shortened at random by up to this share, so that several processes don't retry at the same time. */
const JITTER = 0.25;

/** Pauses a node after consecutive failures. `longestMs` is the limit while other nodes are available. */
export function createNodePause({
  clockMs,
  random,
  longestMs: longestPauseMs = WITH_OTHERS.longestMs,
}: {
  clockMs(): number;
  random(): number;
  longestMs?: number;
}) {
  let row = 0;
  let lastKind: 'refusal' | 'report' = 'refusal';
  let answers = 0;
  let beganMs = Number.NEGATIVE_INFINITY;
  let untilMs = Number.NEGATIVE_INFINITY;
  let askedUntilMs = Number.NEGATIVE_INFINITY;
  let longestMs = 0;
  const remainingMs = () => Math.max(0, Math.max(untilMs, askedUntilMs) - clockMs());
  const endRow = () => {
    const hadRow = row > 0;
    row = 0;
    answers = 0;
    return hadRow;
  };
  return {
    remainingMs,
    failures: () => row,
    /** Whether a pause of at least `ms` has begun since the last call. */
    takeLong: (ms: number) => {
      const isLong = longestMs >= ms;
      longestMs = 0;
      return isLong;
    },
    /**
     * Records a failure. If the failed request was sent before the current pause began, the failure belongs to that pause and doesn't
     * lengthen it, unless the node itself asks for a longer pause. Returns whether a new pause began.
     */
    fail: ({ kind, sentMs, costMs, askedMs, isAlone }: Failure) => {
      const nowMs = clockMs();
      if (askedMs !== null) askedUntilMs = Math.max(askedUntilMs, nowMs + askedMs);
      longestMs = Math.max(longestMs, askedMs ?? 0);
      answers = 0;
      lastKind = kind;
      if (sentMs <= beganMs || nowMs < untilMs) return false;
      if (nowMs - untilMs > ROW_ENDS_MS) row = 0;
      row += 1;
      const backoff = isAlone ? ALONE : { ...WITH_OTHERS, longestMs: longestPauseMs };
      beganMs = nowMs;
      const minMs = isAlone ? 0 : costMs * COST_FACTOR;
      const pauseMs = Math.min(backoff.longestMs, Math.max(minMs, backoffMs(row, backoff)));
      longestMs = Math.max(longestMs, pauseMs);
      untilMs = nowMs + pauseMs * (1 - JITTER * random());
      return true;
    },
    /**
     * Records an answer. A few consecutive answers end a series of refusals; a series of wrong answers ends only with `praise`. Returns
     * whether a series ended.
     */
    answer: () => {
      answers += 1;
      return lastKind === 'refusal' && answers >= ANSWERS_THAT_END_A_ROW && endRow();
    },
    praise: endRow,
    /** Restores a previous process's series of wrong answers or refusals. */
    restore: ({ failures, pausedForMs }: { failures: number; pausedForMs: number }) => {
      row = Math.max(row, failures);
      lastKind = 'report';
      untilMs = Math.max(untilMs, clockMs() + Math.min(WITH_OTHERS.longestMs, pausedForMs));
      longestMs = Math.max(longestMs, pausedForMs);
    },
    /**
     * Limits the rest of the pause, unless the node itself asked for the pause. If no other node is available, a long wait is worse than a
     * request.
     */
    shorten: (maxMs: number) => {
      untilMs = Math.min(untilMs, clockMs() + maxMs);
    },
  };
}
