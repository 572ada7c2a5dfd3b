import { encodeId } from '../domain/ids.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import { isCurrentRate, originOf, type RateSource, type ReadRate, readRate, readRateSource } from '../domain/price.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { type LoopHealth, startLoop } from '../runtime/loop.ts';
import { reasonOf } from '../runtime/reason-of.ts';
import { endAlarm, findAlarmSubjects, tellAlarm } from '../store/chain/alarms.ts';
import { holdLease } from '../store/chain/leases.ts';
import type { Database } from '../store/db/database.ts';
import { listSourcedAdapters, type SourcedAdapter, storeReadRate } from '../store/outbox/adapter-orders.ts';
import { ATTEMPT_TIMEOUT_MS, createWebhookSender, type WebhookSender } from './send.ts';
import { targetRule } from './target.ts';

type Options = {
  db: Database;
  now(): UnixMs;
  log: Logger;
  localTargets: boolean;
  /** Identifies this process in the lease. */
  holder: string;
  loops?: LoopHealth;
  pollMs?: number;
  timeoutMs?: number;
};

const POLL_MS = 5000;
const LEASE = 'rates';
/** A process that stops releases the lease. After a crash, another process takes over after this time. */
const LEASE_MS = 30_000;
/** A source is queried this many times in the time in which its rate becomes too old, and at least once a minute. */
const QUESTIONS = 5;
const MAX_PAUSE_MS = 60_000;
/** Each query needs a socket, for at most 16 s. */
const MAX_AT_ONCE = 50;
/** Maximum number of connections per origin; other queries wait. */
const CONNECTIONS = 10;
const KIND = 'rate-old';

/**
 * This process's knowledge about a source. `hasAnswered`: a query by this process has already returned a response or failed. `problem`: why
 * its last response didn't contain a rate. `told`: the alarm's text.
 */
type State = {
  rateSource: string;
  askedAt: UnixMs;
  pauseMs: number;
  hasAnswered: boolean;
  problem: string | null;
  told: string | null;
};

/**
 * Queries the adapters' rate sources until it's stopped, and raises an alarm for each rate that is older than half of its limit. Only one
 * process works at a time, while the others stand by. Rates are stored with their adapters, for all processes. If there are many sources,
 * those that have been waiting longest are queried first, even if others hang.
 */
export function startRatePolling(options: Options): { stop(): Promise<void> } {
  const { db, now, log, localTargets, holder, pollMs = POLL_MS, timeoutMs = ATTEMPT_TIMEOUT_MS } = options;
  const sender = createWebhookSender({ connections: CONNECTIONS, timeoutMs });
  const lease = holdLease(db, LEASE, holder, LEASE_MS);
  const states = new Map<string, State>();
  const underWay = new Map<string, Promise<void>>();
  let due: SourcedAdapter[] = [];
  const askNext = () => {
    while (underWay.size < MAX_AT_ONCE) {
      const adapter = due.shift();
      if (adapter === undefined) return;
      const asking = ask({ sender, localTargets, now, db, log }, adapter, stateOf(states, adapter));
      underWay.set(
        adapter.id,
        asking.finally(() => {
          underWay.delete(adapter.id);
          askNext();
        }),
      );
    }
  };
  const loop = startLoop({
    name: 'rates',
    log,
    health: options.loops,
    maxPauseMs: POLL_MS,
    run: async () => {
      if (!(await lease.keep())) {
        states.clear();
        due = [];
        return pollMs;
      }
      // Any later response is newer than the list.
      const answered = new Set([...states].flatMap(([id, { hasAnswered }]) => (hasAnswered ? [id] : [])));
      const adapters = (await listSourcedAdapters(db)).filter(({ isSound }) => isSound);
      const listed = new Set(adapters.map(({ id }) => id));
      for (const id of states.keys()) if (!listed.has(id)) states.delete(id);
      due = adapters
        .filter((adapter) => !underWay.has(adapter.id) && isDue(stateOf(states, adapter), now()))
        .sort((one, other) => stateOf(states, one).askedAt - stateOf(states, other).askedAt);
      askNext();
      await watchAges(options, adapters, states, answered);
      return pollMs;
    },
  });
  return {
    stop: async () => {
      await loop.stop();
      due = [];
      await sender.close();
      await Promise.all(underWay.values());
      await lease.release();
    },
  };
}

/**
 * Returns a source's state. If the source has changed, the state starts from scratch, so that the operator is notified about the new
 * source.
 */
function stateOf(states: Map<string, State>, { id, rateSource }: SourcedAdapter): State {
  const known = states.get(id);
  if (known?.rateSource === rateSource) return known;
  const state: State = { rateSource, askedAt: unixMs(0), pauseMs: 0, hasAnswered: false, problem: null, told: null };
  states.set(id, state);
  return state;
}

/** If the clock is set back, queries must not be delayed. */
function isDue({ askedAt, pauseMs }: State, now: UnixMs): boolean {
  return Math.abs(now - askedAt) >= pauseMs;
}

/** Queries a source. Never throws: a failure is kept for the alarm and logged once. */
async function ask(
  { db, log, ...deps }: AskDeps & Pick<Options, 'db' | 'log'>,
  adapter: SourcedAdapter,
  state: State,
): Promise<void> {
  let problem: string | null;
  try {
    const source = readRateSource(adapter.rateSource);
    state.askedAt = deps.now();
    state.pauseMs = Math.min(MAX_PAUSE_MS, source.maxAgeMs / QUESTIONS);
    const asked = await askRate(deps, adapter.network, source);
    if (asked === null) return;
    // A source may ask for a pause of years, but it must still be queried in time.
    state.pauseMs = Math.max(state.pauseMs, Math.min(asked.retryAfterMs ?? 0, source.maxAgeMs / 2));
    if (asked.kind === 'ok')
      await storeReadRate(db, adapter, { readMicro: asked.rateMicro, readAt: asked.at }, deps.now());
    problem = asked.kind === 'ok' ? null : asked.reason;
  } catch (error) {
    problem = reasonOf(error);
  }
  const about = { adapter: encodeId('whe', adapter.id) };
  if (state.problem === null && problem !== null)
    log.warn(
      { ...about, reason: problem },
      "could not read an adapter's rate; Quittance uses the last known rate until it is too old",
    );
  if (state.problem !== null && problem === null) log.info(about, "an adapter's rate can be read again");
  state.problem = problem;
  state.hasAnswered = true;
}

type AskDeps = {
  sender: WebhookSender;
  /** Whether projects on test networks may send requests to this machine, and over http. */
  localTargets: boolean;
  now(): UnixMs;
};

type AskedRate = ReadRate & { retryAfterMs: number | null };

/**
 * Queries a rate source once, under the same rules as webhooks: public addresses over `https`, no redirects, 8 KiB, 15 s. Returns `null` if
 * Quittance stopped the request.
 */
export async function askRate(
  { sender, localTargets, now }: AskDeps,
  network: Network,
  source: RateSource,
): Promise<AskedRate | null> {
  // The request's time is used, because the rate is at least that old.
  const askedAt = now();
  const { url } = source;
  const rule = targetRule(network, localTargets);
  const headers = { accept: 'application/json' };
  const result = await sender.send({ url, rule, headers, method: 'GET', body: new Uint8Array(), nowMs: askedAt });
  if (result.kind === 'aborted') return null;
  if (result.kind === 'failed') return { kind: 'refused', reason: result.error, retryAfterMs: result.retryAfterMs };
  return { ...readRate(decode(result.answer), source, askedAt), retryAfterMs: null };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Decodes the response. Invalid UTF-8 becomes an empty text, which isn't JSON. */
function decode(answer: Uint8Array): string {
  try {
    return utf8.decode(answer);
  } catch {
    return '';
  }
}

/** Raises the alarm at half the limit, so that someone can act before orders are refused. */
async function watchAges(
  { db, now, log }: Options,
  adapters: readonly SourcedAdapter[],
  states: ReadonlyMap<string, State>,
  answered: ReadonlySet<string>,
): Promise<void> {
  const old = new Map(
    adapters.flatMap((adapter) => {
      const source = readRateSource(adapter.rateSource);
      if (isCurrentRate(adapter.readAt, { maxAgeMs: source.maxAgeMs / 2 }, now())) return [];
      return [[encodeId('whe', adapter.id), { adapter, source }] as const];
    }),
  );
  for (const network of NETWORKS) {
    for (const subject of await findAlarmSubjects(db, network, KIND)) {
      if (old.has(subject)) continue;
      await endAlarm({ db, log }, KIND, network, subject);
    }
  }
  for (const [subject, { adapter, source }] of old) {
    const state = states.get(adapter.id);
    const detail = describe(subject, adapter, source, state?.problem ?? 'it returns no newer rate');
    // A process that has just started waits for the first response before it reports a missing rate.
    if (state === undefined || !answered.has(adapter.id) || state.told === detail) continue;
    await tellAlarm({ db, log }, KIND, { network: adapter.network, subject, detail });
    state.told = detail;
  }
}

function describe(
  subject: string,
  { adapter, currency, readAt }: SourcedAdapter,
  source: RateSource,
  why: string,
): string {
  const from = toIso(unixMs(readAt + source.maxAgeMs));
  const kind = adapter === 'price' ? `price --currency ${currency}` : adapter;
  return `The rate for ${subject} dates from ${toIso(readAt)}, and its source (${originOf(source)}) returns no newer rate: ${why}. Quittance rejects orders starting at ${from}. Repair the source, or set a different source or a fixed rate: quittance adapter enable --kind ${kind}`;
}
