import type { FastifyInstance } from 'fastify';
import type { AlarmKind } from '../core/domain/alarm-kinds.ts';
import { AppError, isDatabaseUnavailable, shortageBehind } from '../core/domain/errors.ts';
import { type Network, nodesVariable } from '../core/domain/network.ts';
import { toIso, type UnixMs } from '../core/domain/time.ts';
import type { DeadlineClock } from '../core/payments/clocks.ts';
import type { HealthProblems } from '../core/payments/health-problems.ts';
import { createWatchedNetworks, neverSeen, type WatchedNetworks } from '../core/payments/watched-networks.ts';
import { coalesce } from '../core/runtime/concurrency.ts';
import { countOpenAlarms } from '../core/store/chain/alarms.ts';
import { type ChainCursor, findCursor, findHalt } from '../core/store/chain/cursor.ts';
import { isLeaseHeld, watcherLease } from '../core/store/chain/leases.ts';
import { type ChainStatus, findChainStatus, STATUS_SILENT_MS } from '../core/store/chain/status.ts';
import { type Database, refusalBehind } from '../core/store/db/database.ts';
import { isLossyLedger, LOST } from '../core/store/db/ledger-identity.ts';
import { pendingMigrations } from '../core/store/db/migrate.ts';

/**
 * If no watcher reports, the network counts as blind when its newest examined block is older than this, which is 20 blocks on the main
 * network.
 */
const BLIND_AFTER_MS = 60_000;

type HealthDeps = {
  db: Database;
  networks: readonly Network[];
  now(): UnixMs;
  troubles: Pick<HealthProblems, 'list'>;
  deadlineClock: Pick<DeadlineClock, 'problem'>;
};

/** Whether invoices can be created. `body` is for operators: the reasons, the troubles, and each network with its open alarms. */
export type Readiness = { isReady: boolean; body: object };

/**
 * Returns a function that checks whether invoices can be created: the database and the schema must be right, this process's clock must
 * agree with the database's, and each network must have been seen at least once. A chain that was seen but isn't visible now doesn't make
 * the service unready. Only one check runs at a time, however many clients ask, because probes are answered even when other requests are
 * refused.
 */
export function createReadiness(deps: HealthDeps): () => Promise<Readiness> {
  const watched = createWatchedNetworks(deps);
  const lookOnce = coalesce<null, Readiness>({
    ...{ maxUnderWay: 1, maxTogether: Number.POSITIVE_INFINITY },
    answer: async (questions) => {
      const answer = await readiness(deps, watched);
      return questions.map(() => answer);
    },
  });
  return () => lookOnce(null);
}

/** Registers the public probes: `GET /healthz` (the process is alive) and `GET /readyz`, which reveals only the status. */
export function registerHealth(app: FastifyInstance, { readiness }: { readiness(): Promise<Readiness> }): void {
  app.get('/healthz', { schema: { hide: true } }, async () => ({ status: 'ok' }));
  app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const { isReady } = await readiness();
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'unavailable' });
  });
}

async function readiness(deps: HealthDeps, watched: WatchedNetworks): Promise<Readiness> {
  const problem = await findProblem(deps.db);
  const found = deps.troubles.list();
  const told = found.map(({ kind, network, detail }) => ({ kind, ...(network === null ? {} : { network }), detail }));
  const troubles = told.length === 0 ? {} : { troubles: told };
  const reason = problem ?? found.find(({ isReady }) => !isReady)?.detail;
  if (reason !== undefined) return { isReady: false, body: { status: 'unavailable', reason, ...troubles } };
  // A network that isn't watched is usually missing from this process's configuration.
  const names = new Set([...deps.networks, ...found.flatMap(({ network }) => network ?? [])]);
  const networks = Object.fromEntries(await Promise.all([...names].map((n) => look(deps, n))));
  const reasons = await Promise.all(deps.networks.map((each) => whyNoInvoices(watched, each)));
  const why = [...reasons, deps.deadlineClock.problem()].filter((each) => each !== null).join('; ');
  if (why !== '') {
    return { isReady: false, body: { status: 'unavailable', reason: why, ...troubles, networks } };
  }
  return { isReady: true, body: { status: 'ready', ...troubles, networks } };
}

async function whyNoInvoices(watched: WatchedNetworks, network: Network): Promise<string | null> {
  if ((await watched.whyNot(network)) === null) return null;
  return `${neverSeen(network)}, so Quittance creates no invoices for this network (503): check ${nodesVariable(network)} with "quittance doctor"`;
}

async function findProblem(db: Database): Promise<string | null> {
  try {
    const pending = await pendingMigrations(db, { mayBeUpgrading: true });
    if (pending > 0) return `${pending} migrations are not applied; run: quittance migrate`;
    return (await isLossyLedger(db)) ? LOST : null;
  } catch (error) {
    // The error message contains the database's host, so it's only logged.
    if (isDatabaseUnavailable(error)) {
      return shortageBehind(error) ?? refusalBehind(error) ?? 'the database does not respond';
    }
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

async function look({ db, now }: HealthDeps, network: Network): Promise<[Network, object]> {
  // All reads use the same snapshot. Otherwise a network could be reported as blind together with alarms that have already closed.
  const seen = await db.snapshot(async (tx) => ({
    cursor: await findCursor(tx, network),
    reported: await findChainStatus(tx, network),
    halt: await findHalt(tx, network),
    alarms: await countOpenAlarms(tx, network),
    isLed: await isLeaseHeld(tx, watcherLease(network)),
  }));
  const { cursor, reported, alarms } = seen;
  const reason = whyBlind(seen, now());
  const catchUp = isWatched(seen, now()) ? reported?.status.catchUp : null;
  return [
    network,
    {
      blind: reason !== null,
      ...(reason === null ? {} : { reason }),
      ...(cursor === null
        ? {}
        : {
            headBlock: cursor.head.number,
            headTime: toIso(cursor.head.time),
            solidBlock: cursor.solid.number,
            solidTime: toIso(cursor.solid.time),
          }),
      ...(catchUp ? { catchUp } : {}),
      alarms: [...alarms.keys()].sort(),
    },
  ];
}

type Seen = {
  cursor: ChainCursor | null;
  reported: { updatedAt: UnixMs; status: ChainStatus } | null;
  halt: object | null;
  alarms: ReadonlyMap<AlarmKind, number>;
  isLed: boolean;
};

function isWatched({ reported, isLed }: Seen, now: UnixMs): boolean {
  return isLed && reported !== null && now - reported.updatedAt <= STATUS_SILENT_MS;
}

/**
 * The watcher decides whether the chain is visible. If no watcher reports, because none is running or it hangs, the age of the newest
 * examined block decides.
 */
function whyBlind(seen: Seen, now: UnixMs): string | null {
  const { cursor, halt, alarms } = seen;
  if (halt !== null || alarms.has('halted')) return 'the watcher is halted: run quittance chain status';
  if (alarms.has('network-unwatched')) return 'no watcher is following it';
  if (cursor === null) return 'no node has responded yet';
  const ageMs = now - cursor.head.time;
  const old = ageMs > BLIND_AFTER_MS ? `the newest examined block is ${Math.round(ageMs / 1000)} s old` : null;
  if (alarms.has('blind')) return old ?? 'no node returns new blocks: run quittance chain status';
  return old === null || isWatched(seen, now) ? null : `${old}, and no watcher is following it`;
}
