import { randomInt } from 'node:crypto';
import { accountToAddress } from '@quittance/tron/address';
import type { FastifyInstance } from 'fastify';
import { createTransactionReader, type TransactionReaderDeps } from '../core/chain/verify/transaction-reader.ts';
import { createRelief } from '../core/payments/derive-addresses.ts';
import { createUnpaidGate } from '../core/payments/unpaid-gate.ts';
import { createWatchedNetworks } from '../core/payments/watched-networks.ts';
import { startLoop } from '../core/runtime/loop.ts';
import { findNewestApiKeys, findValidApiKey, touchApiKeys } from '../core/store/access/api-keys.ts';
import { EVENTS_CHANNEL } from '../core/store/outbox/events.ts';
import { ADAPTER_FAILURES } from '../faces/adapters/authenticate.ts';
import { registerEpay } from '../faces/adapters/epay.ts';
import { registerEpusdt } from '../faces/adapters/epusdt.ts';
import { showProblem } from '../faces/adapters/refusal.ts';
import { createAmountRefusals, createUnpaidRefusals } from '../faces/api/amount-refusals.ts';
import type { ApiDeps } from '../faces/api/api-deps.ts';
import { createEventWaits } from '../faces/api/event-waits.ts';
import { registerEvents } from '../faces/api/events.ts';
import { FAILURE_LIMIT } from '../faces/api/guard.ts';
import { registerInvoices } from '../faces/api/invoices.ts';
import { registerOpenApi } from '../faces/api/openapi.ts';
import { registerProbe } from '../faces/api/probe.ts';
import { createRequestLog } from '../faces/api/request-log.ts';
import { registerSandbox } from '../faces/api/sandbox.ts';
import { registerTransfers } from '../faces/api/transfers.ts';
import { registerWebhookEndpoints } from '../faces/api/webhook-endpoints.ts';
import { registerLive } from '../faces/checkout/live/live-routes.ts';
import { createLookupLimits, registerAsk, registerLookup } from '../faces/checkout/lookup/lookup.ts';
import { createLookupBudget } from '../faces/checkout/lookup/lookup-budget.ts';
import { limitPages, registerCheckout, registerLogos } from '../faces/checkout/page/register.ts';
import { registerReceipts } from '../faces/checkout/receipt/receipt-routes.ts';
import { createReceiptSigner } from '../faces/checkout/receipt/receipt-signer.ts';
import type { OperationDeps } from '../faces/operator/operation.ts';
import { type Authenticator, createAuthenticator, MAX_REMEMBERED } from '../faces/web/authenticate.ts';
import { createTokenBuckets } from '../faces/web/rate-limit.ts';
import { createServer } from '../faces/web/server.ts';
import type { Context } from './context.ts';
import { registerHealth } from './health.ts';
import { listenOn } from './listen.ts';
import { retryUntilReady } from './retry-until-ready.ts';

/**
 * A new key may count as unknown for up to this long. Unknown keys are refused if the caller's network has used up its limit for wrong
 * keys.
 */
const TOUCH_KEYS_MS = 30_000;
/** Most database outages are shorter than this, and no key can be created during an outage. */
const NEW_KEY_S = 600;

/**
 * Starts the role `api`: the API for shops and the pages for payers, on one port. Throws `DATABASE_UNAVAILABLE`, or an error from `listen`.
 */
export async function startApi(context: Context): Promise<{ url: string; stop(): Promise<void> }> {
  const { config, requestDb: db, now, publicUrl } = context;
  const authenticator = createAuthenticator({
    findValidKey: (id, at) => findValidApiKey(db, id, at),
    failureBuckets: createTokenBuckets(FAILURE_LIMIT),
    now,
  });
  await retryUntilReady(context.log, () => learnKeys(context, authenticator, Number.POSITIVE_INFINITY));
  const { recognize } = authenticator;
  const requestShare = context.requestShare.current;
  const requestLog = createRequestLog({ ...context, db });
  const onAnswer = config.requestLog === false ? {} : { onAnswer: requestLog.onAnswer };
  const { trustProxy, requestLines } = config;
  const app = createServer({ ...context, recognize, trustProxy, requestShare, requestLines, showProblem, ...onAnswer });
  const register = async () => {
    await registerOpenApi(app, { publicUrl, now, isSandbox: context.sandbox !== undefined });
    registerApi(app, context, authenticator);
    await registerPages(app, context);
    return listenOn(app, config);
  };
  // Pages have timers that only `close` stops.
  const url = await register().catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  context.onListening(url);
  const keys = startKeyLoop(context, authenticator);
  const writing = requestLog.start();
  return {
    url,
    stop: async () => {
      await app.close();
      await Promise.all([keys.stop(), writing.stop()]);
    },
  };
}

/** Registers the routes for shops. */
function registerApi(app: FastifyInstance, context: Context, authenticator: Authenticator): void {
  const { config, requestDb: db, metrics, now } = context;
  const own = { ...context, db };
  const waits = createEventWaits((count) => metrics.eventWaits.set(count));
  db.listen(EVENTS_CHANNEL, waits.hear);
  app.addHook('preClose', async () => waits.stop());
  const deps = {
    ...{ ...own, authenticator, waits, rateLimit: config.rateLimit },
    keyBuckets: createTokenBuckets(config.rateLimit),
    randomBelow: (n: number) => randomInt(n),
    gate: createUnpaidGate({ db, now }),
    watched: createWatchedNetworks(own),
    relief: createRelief(own),
    onAmountRefused: createAmountRefusals(own),
    onUnpaidRefused: createUnpaidRefusals(own),
    proofOf: context.addressGuard.proofOf,
  } satisfies ApiDeps;
  registerInvoices(app, deps);
  registerEvents(app, deps);
  registerTransfers(app, deps);
  registerWebhookEndpoints(app, { ...deps, operations: operationsOf(context) });
  const failureBuckets = createTokenBuckets(ADAPTER_FAILURES);
  const adapterDeps = { ...deps, localTargets: config.webhooks.localTargets, failureBuckets };
  registerEpusdt(app, adapterDeps);
  registerEpay(app, adapterDeps);
  if (context.sandbox !== undefined) registerSandbox(app, deps, context.sandbox);
  registerProbe(app, { db, trustProxy: config.trustProxy });
  registerHealth(app, context);
}

/** Returns the dependencies of endpoint operations. They encrypt with this process's keys and send no requests to nodes. */
function operationsOf(context: Context): OperationDeps {
  const { requestDb: db, now, random, log, networks, keyRing, config, sandbox, addressGuard } = context;
  const keys = { ...(keyRing && { keyRing }), masterKeys: null, databaseUrl: '', dataDir: '' };
  return {
    ...{ db, now, random, log, networks, addressGuard, publicUrl: context.publicUrl, randomBelow: (n) => randomInt(n) },
    config: { ...config, ...keys, sandbox: sandbox !== undefined },
    consoleUrl: config.consoleUrl ?? null,
    note: (text) => log.warn(text),
    nodes: () => Promise.reject(new Error('operations on API keys never query nodes')),
  };
}

async function learnKeys({ requestDb, now }: Context, authenticator: Authenticator, oldestSeconds: number) {
  const limit = MAX_REMEMBERED;
  authenticator.learn(await findNewestApiKeys(requestDb, now(), { oldestSeconds, limit }));
}

function startKeyLoop(context: Context, authenticator: Authenticator) {
  const { requestDb, log, now } = context;
  return startLoop({
    name: 'new keys, and last-used times',
    log,
    maxPauseMs: TOUCH_KEYS_MS,
    run: async () => {
      await learnKeys(context, authenticator, NEW_KEY_S);
      const used = authenticator.takeUsed();
      if (used.length > 0) await touchApiKeys(requestDb, used, now());
      return TOUCH_KEYS_MS;
    },
  });
}

/** Registers the pages for payers. */
async function registerPages(app: FastifyInstance, context: Context): Promise<void> {
  const { requestDb: db, keyRing, log, metrics, now, random, pools, publicUrl } = context;
  const usdt = Object.fromEntries(pools.map(({ network, usdt }) => [network, accountToAddress(usdt)]));
  const lookUp = { readTransaction: createReaders(context), limits: createLookupLimits(now) };
  const signer = createReceiptSigner({ db, keyRing, log, now, random });
  await signer.prepare();
  const deps = { db, now, site: { publicUrl, usdt, proofOf: context.addressGuard.proofOf } };
  limitPages(app, deps);
  registerCheckout(app, deps);
  registerLive(app, { ...deps, log, metrics });
  registerLogos(app, { db });
  registerLookup(app, { ...deps, ...lookUp });
  registerAsk(app, { ...deps, ...lookUp });
  registerReceipts(app, { ...deps, signer });
}

/** Creates the transaction readers for payers' look-ups, one for each network. They have a separate node request budget. */
function createReaders({ config, pools, requestDb: db, now, log }: Context) {
  const budget = createLookupBudget(now, config.lookupsPerMinute);
  const readers = pools.map(({ network, pool, usdt }) => {
    const spend: TransactionReaderDeps['spend'] = ({ askedFor, client }) => budget.take(network, askedFor, client);
    return [network, createTransactionReader({ db, network, pool, usdt, now, log, spend })] as const;
  });
  return Object.fromEntries(readers);
}
