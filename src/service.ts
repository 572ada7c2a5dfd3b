import { notePromotion } from './payments/note-timeline.ts';
import { type Context, createContext } from './service/context.ts';
import { keepRequirement } from './service/keep-requirement.ts';
import { openDatabases, poolsOf } from './service/open-databases.ts';
import { patiently } from './service/patiently.ts';
import { prepareSchema } from './service/prepare-schema.ts';
import { prepareTroubles } from './service/prepare-troubles.ts';
import type { ServiceOptions } from './service/service-options.ts';
import { startApi } from './service/start-api.ts';
import { startAuditHead } from './service/start-audit-head.ts';
import { startManifest } from './service/start-manifest.ts';
import { startMetrics } from './service/start-metrics.ts';
import { startTroubles } from './service/start-troubles.ts';
import { startWatchers } from './service/start-watchers.ts';
import { startWebhooks } from './service/start-webhooks.ts';
import { claimLedger } from './store/db/claim-ledger.ts';
import type { Database } from './store/db/database.ts';

export type { ServiceOptions };

export type Service = {
  /** Where the API listens; `null` without the role `api`. */
  url: string | null;
  metricsUrl: string | null;
  db: Database;
  /** Starts the role `console`, which loads every use case: what else there is need not wait for it. Its URL; `null` where it is off. */
  startConsole(): Promise<string | null>;
  stop(): Promise<void>;
};

/** Wires and starts the roles of one process over one database. `stop` ends them in the opposite order, within seconds. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log } = options;
  const known = prepareTroubles(options);
  const databases = openDatabases(options, known.shortage.onShortage);
  const { db } = databases;
  const started: { stop(): Promise<unknown> }[] = [];
  // What only asks the database now and then may wait for one that is away, so it stops beside the rest.
  const beside: { stop(): Promise<unknown> }[] = [];
  let isStopped = false;
  const stop = async () => {
    isStopped = true;
    const besideEnded = Promise.all(beside.splice(0).map((part) => part.stop()));
    for (const part of started.splice(0).reverse()) await part.stop();
    await besideEnded;
    await Promise.all(poolsOf(databases).map((pool) => pool.close()));
  };
  try {
    // With the master key of another ledger nothing is written, and no row is called changed.
    await patiently(log, () => db.sealer(false));
    await prepareSchema(options, db);
    const isSealed = options.keyRing !== null && (config.rowMacs === 'ledger' || config.rowMacs === 'require');
    const ledgerId = await patiently(log, () => claimLedger(db, { isSealed }));
    await keepRequirement(config, ledgerId, log);
    await patiently(log, () => notePromotion({ db, log }));
    const context = createContext(options, databases, known);
    beside.push(await startTroubles(context));
    const manifest = await startManifest(context);
    if (manifest !== null) started.push(manifest);
    beside.push(startAuditHead(context));
    const metricsServer = await startMetrics(context);
    if (metricsServer !== null) started.push(metricsServer);
    const api = config.roles.includes('api') ? await startApi(context) : null;
    if (api !== null) started.push(api);
    // The pools close before the API stops, because its look-ups would otherwise wait for a node that hangs.
    started.push({ stop: () => Promise.all(context.pools.map(({ pool }) => pool.close())) });
    if (config.roles.includes('watcher')) started.push(...(await startWatchers(context)));
    if (config.roles.includes('webhooks')) started.push(await startWebhooks(context));
    return {
      url: api?.url ?? null,
      metricsUrl: metricsServer?.url ?? null,
      db,
      startConsole: async () => {
        const operators = await startOperators(context, options);
        if (isStopped) await operators?.stop();
        else if (operators !== null) started.push(operators);
        return operators?.url ?? null;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startOperators(context: Context, options: ServiceOptions) {
  if (options.console == null || !options.config.roles.includes('console')) return null;
  const { startConsole } = await import('./service/start-console.ts');
  return startConsole(context, options, options.console);
}
