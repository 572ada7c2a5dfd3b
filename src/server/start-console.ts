import { randomInt } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { createKnownTerms } from '../core/chain/verify/fee-terms.ts';
import { SLOT_MS } from '../core/chain/verify/read-block.ts';
import { invalidArgument } from '../core/domain/errors.ts';
import { isLocalNetwork } from '../core/domain/network.ts';
import { guardAdditions } from '../core/payments/manifest/address-guard.ts';
import { deriveKey } from '../core/runtime/key-ring.ts';
import { logLostConnections } from '../core/runtime/log.ts';
import { readVersion } from '../core/runtime/package.ts';
import { reasonOf } from '../core/runtime/reason-of.ts';
import { type Database, openDatabase } from '../core/store/db/database.ts';
import { INVOICES_CHANNEL } from '../core/store/ledger/checkout.ts';
import { type AdminDeps, registerAdmin } from '../faces/admin/register-admin.ts';
import { describeForPayer } from '../faces/checkout/lookup/answer.ts';
import { renderExample } from '../faces/checkout/page/page.ts';
import { registerConsole } from '../faces/console/register.ts';
import { addSignInRoutes, createSessions } from '../faces/console/sign-in/sign-in-routes.ts';
import type { Actor } from '../faces/operator/actor.ts';
import { doctorSettings } from '../faces/operator/doctor/check.ts';
import { type DoctorView, runDoctor } from '../faces/operator/doctor/run-doctor.ts';
import type { NodeAccess } from '../faces/operator/operation.ts';
import { createSignInLimits } from '../faces/operator/people/password.ts';
import { createTokenBuckets } from '../faces/web/rate-limit.ts';
import { createServer } from '../faces/web/server.ts';
import type { Context, ServiceOptions } from './context.ts';
import { listenOn } from './listen.ts';

/**
 * The console has its own connections so that a report never slows down creating invoices. Four connections are enough for a few people who
 * use the console occasionally.
 */
const POOL_SIZE = 4;
/**
 * A person is waiting. A node that limits our requests usually recovers within this time. If it doesn't, the response says that the node
 * didn't respond.
 */
const PATIENCE_MS = 20_000;

type Console = NonNullable<ServiceOptions['console']>;
/**
 * Starts the role `console`: the admin API and the operators' pages. It has its own listener, which no payer's page shares. Throws the
 * errors of `listen`.
 */
export async function startConsole(
  context: Context,
  { connection }: Pick<ServiceOptions, 'connection'>,
  settings: Console,
): Promise<{ url: string; stop(): Promise<void> }> {
  const { log, now, random, networks } = context;
  const onError = logLostConnections(log);
  const addressChecks = guardAdditions(context.addressGuard);
  const db = openDatabase({
    connection,
    admission: context.admission,
    poolSize: POOL_SIZE,
    applicationName: 'quittance console',
    onError,
    ...(context.seals && { seals: context.seals }),
    addressChecks,
  });
  let url = `http://${settings.host}:${settings.port}`;
  const consoleUrl = () => settings.url ?? url;
  const names = hostNames(settings);
  const app = createServer({
    ...{ ...context, requestShare: context.requestShare.current, publicUrl: consoleUrl },
    ...{ trustProxy: context.config.trustProxy, isOurHost: (host) => names.has(host) },
  });
  const note = (text: string) => log.warn(text);
  const nodes = nodeAccess({ ...context, db });
  const deps: AdminDeps = {
    ...{ db, now, random, note, log, networks, config: settings.config, consoleUrl },
    ...{ publicUrl: context.publicUrl, deadlineClock: context.deadlineClock, randomBelow: (n: number) => randomInt(n) },
    nodes: async () => nodes,
    addressGuard: context.addressGuard,
  };
  try {
    registerAdmin(app, deps);
    registerOperatorPages(app, context, { deps, nodes, settings });
    const at = await listenOn(app, settings, { port: 'QUITTANCE_CONSOLE_PORT', host: 'QUITTANCE_CONSOLE_HOST' });
    // Browsers support passkeys only for host names, and keep cookies for a page at `localhost`.
    url = at.replace('//127.0.0.1:', '//localhost:');
  } catch (error) {
    await app.close();
    await db.close();
    throw error;
  }
  return {
    url: consoleUrl(),
    stop: async () => {
      await app.close();
      await db.close();
    },
  };
}

/** Returns the allowed host names, which protect against DNS rebinding. Tunnels end at this machine, so localhost is always allowed. */
function hostNames({ host, url }: Console): ReadonlySet<string> {
  const own = isIP(host) === 6 ? `[${host}]` : host;
  return new Set(['localhost', '127.0.0.1', '[::1]', own, ...(url === null ? [] : [new URL(url).hostname])]);
}

/** Runs the doctor's checks on this process. Concurrent callers share one run. */
function doctorOf(context: Context, db: Database, config: Console['config']): (actor: Actor) => Promise<DoctorView> {
  const { now, random, pools, publicUrl } = context;
  const database = { kind: config.databaseUrl === null ? ('embedded' as const) : ('external' as const), db };
  let underWay: Promise<DoctorView> | null = null;
  return (actor) => {
    const networks = { networks: pools, problem: null, sandboxUrl: config.sandbox ? publicUrl() : null };
    const deps = { settings: doctorSettings(config, networks), database, now, random, describeError: reasonOf };
    underWay ??= runDoctor({ ...deps, nodeVersion: process.versions.node }, actor).finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

function nodeAccess({ db, pools, metrics, now, random, publicUrl }: Context): NodeAccess {
  return {
    withNodes: async (network, work) => {
      const found = pools.find((each) => each.network === network);
      if (found === undefined) throw invalidArgument`no ${network} node is configured here`;
      const { pool, usdt, agreement } = found;
      return work({
        ...{ db, network, pool, usdt, agreement, metrics, now, random, publicUrl: publicUrl() },
        fees: createKnownTerms(),
        slotMs: isLocalNetwork(network) ? null : SLOT_MS,
        patienceMs: PATIENCE_MS,
      });
    },
    describeForPayer,
  };
}

/** Registers the operators' pages. The pages need the master key, because people's sign-in secrets are encrypted with it. */
function registerOperatorPages(
  app: FastifyInstance,
  context: Context,
  { deps, nodes, settings: { config, sandboxToken } }: { deps: AdminDeps; nodes: NodeAccess; settings: Console },
): void {
  const { keyRing, publicUrl, certainNow, steadyNow } = context;
  const { db, log, now, random, networks, consoleUrl } = deps;
  if (keyRing === null) {
    log.warn(
      'the console does not work without the master key: set QUITTANCE_MASTER_KEY to the same value as in the other processes',
    );
    return;
  }
  const limits = createSignInLimits(createTokenBuckets);
  const people = () => ({ db, keyRing, consoleUrl: consoleUrl(), limits, now, certainNow, random });
  const signIn = { people, consoleUrl, log, ...(sandboxToken !== undefined && { sandboxToken }) };
  const sessions = createSessions(signIn);
  addSignInRoutes(app, signIn);
  registerConsole(app, {
    ...{ ...deps, publicUrl, steadyNow },
    onChange: (listener) => db.listen(INVOICES_CHANNEL, listener),
    ...{ findActor: sessions.findActor, stepUp: sessions.stepUp, sessionOf: sessions.sessionOf },
    renderExample,
    ...{ findSession: sessions.find, people, settings: config.settings },
    process: { release: readVersion(), roles: context.config.roles, startedAt: now() },
    examine: doctorOf(context, db, config),
    ask: { ...nodes, networks, log },
    formKey: deriveKey(keyRing.current(), { purpose: 'quittance forms', salt: '' }),
  });
}
