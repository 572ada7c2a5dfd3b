import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Devnet, startDevnet } from '@quittance/devnet';
import { encodeId } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import { type Logger, logLostConnections } from '../../core/runtime/log.ts';
import { requireKeyRing } from '../../core/runtime/open-key-ring.ts';
import { PACKAGE_ROOT } from '../../core/runtime/package.ts';
import { createParts } from '../../core/runtime/parts.ts';
import { addressColumn } from '../../core/store/db/address-column.ts';
import { type Connection, type Database, openDatabase, type Seals } from '../../core/store/db/database.ts';
import { migrate } from '../../core/store/db/migrate.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import { createSeals } from '../../core/store/db/seals.ts';
import type { ServiceDatabase } from '../../core/store/embedded/embedded.ts';
import { openNewestSecrets } from '../../core/webhooks/endpoint-secrets.ts';
import { encryptPlainSecrets } from '../../core/webhooks/watch-endpoints.ts';
import type { Config } from '../../server/config/config.ts';
import type { ServiceOptions } from '../../server/context.ts';
import { startService } from '../../server/service.ts';
import { SCENARIO_NAMES, type Scenario } from '../scenarios/scenarios.ts';
import { startInbox } from './inbox.ts';
import { payWith } from './pay-invoice.ts';
import {
  removeSandboxFile,
  type SandboxFile,
  sandboxNetwork,
  sandboxNotRunning,
  writeSandboxFile,
} from './sandbox-file.ts';
import {
  createFreshProject,
  type DemoSecrets,
  endProject,
  loadDemoSecrets,
  seedDemoProject,
} from './sandbox-projects.ts';
import type { Sandbox } from './with-sandbox.ts';

/**
 * Runs everything that a first try needs in one process, with the embedded PostgreSQL: a local TRON network, all roles, a demo project and
 * a receiver for its webhooks. Its state is in the data directory and survives restarts.
 */
export async function runSandbox(
  config: Config,
  log: Logger,
  { connection, owner }: ServiceDatabase,
): Promise<{ healthUrl: string | null; stop(): Promise<void> }> {
  const { dataDir } = config;
  const parts = createParts();
  try {
    await removeSandboxFile(dataDir, null);
    const devnet = await parts.add(startNetwork(config, log));
    if (config.databaseUrl !== null) {
      log.warn(
        'No network is configured, so Quittance runs the sandbox, which has its own database and ignores DATABASE_URL. Commands still use DATABASE_URL: unset it to try the sandbox',
      );
    }
    // It uses its own database even if DATABASE_URL names another.
    const keyRing = await requireKeyRing({ ...config, databaseUrl: null }, (message) => log.warn(message));
    await prepareTables(owner ?? connection, keyRing, log);
    const judge = { mode: 'ledger', onProblem: () => undefined } as const;
    const db = openSandboxDatabase(
      connection,
      log,
      createSeals(judge, async () => keyRing),
    );
    await parts.add({ stop: () => db.close() });
    const secrets = await loadDemoSecrets(dataDir, systemClock.now());
    // The secret may have been rotated by hand, like any endpoint's.
    const getSecret = async () =>
      (await openNewestSecrets({ db, keyRing }, secrets.endpointId)).find(({ endsAt }) => endsAt === null)?.secret ??
      secrets.webhookSecret;
    const inbox = await parts.add(
      startInbox({ host: '127.0.0.1', port: 0, file: join(dataDir, 'inbox.jsonl'), getSecret, clock: systemClock }),
    );
    // Runs before the service starts so that nothing is sent to the inbox's previous port.
    await seedDemoProject(db, keyRing, secrets, inbox.url);
    const networks = { devnet: sandboxNetwork(devnet) };
    const { blockMs } = config.devnet;
    let running: Sandbox | null = null;
    const sandbox = createSandboxControls(() => running ?? sandboxNotRunning(dataDir), {
      ...{ keyRing, localTargets: config.webhooks.localTargets },
    });
    const sandboxToken = randomBytes(32).toString('base64url');
    const service = await parts.add(
      startService({
        ...{ config: { ...config, networks }, connection, keyRing, log, blockMs, sandbox },
        console: config.console && {
          ...config.console,
          url: config.consoleUrl,
          config: { ...config, networks, databaseUrl: null },
          sandboxToken,
        },
      }),
    );
    const urls = { baseUrl: service.url ?? '', inboxUrl: inbox.url };
    const file = toSandboxFile(urls, { ...secrets, webhookSecret: await getSecret() }, devnet);
    running = { ...file, db, projectUuid: secrets.projectId };
    await parts.add({ stop: () => removeSandboxFile(dataDir, process.pid) });
    await writeSandboxFile(dataDir, file);
    log.info({ url: service.url, metricsUrl: service.metricsUrl }, 'sandbox ready');
    process.stdout.write(quickStart(file, `order-${Math.floor(systemClock.now() / 1000)}`));
    const consoleUrl = await service.startConsole();
    if (consoleUrl !== null) process.stdout.write(consoleLink(`${consoleUrl}/sandbox/${sandboxToken}`));
    return { healthUrl: service.url, stop: parts.stop };
  } catch (error) {
    await parts.stop().catch(() => undefined);
    throw error;
  }
}

async function startNetwork(config: Config, log: Logger): Promise<Devnet> {
  const dataDir = join(config.dataDir, 'devnet');
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const onError = (error: unknown) => log.error({ err: error }, 'the local network could not write a block; retrying');
  return startDevnet({ ...config.devnet, dataDir, onError });
}

function toSandboxFile(
  { baseUrl, inboxUrl }: Pick<SandboxFile, 'baseUrl' | 'inboxUrl'>,
  { apiKey, projectId, webhookSecret, addresses, retired }: DemoSecrets,
  { url: nodeUrl, grpcUrl, grpcSolidityUrl, usdtContract, payer }: Devnet,
): SandboxFile {
  return {
    ...{ baseUrl, apiKey, projectId: encodeId('prj', projectId), webhookSecret, inboxUrl },
    ...{ nodeUrl, grpcUrl, grpcSolidityUrl, usdtContract },
    addresses: addresses.map(({ address }) => address),
    retiredAddress: retired.address,
    ...{ payer, pid: process.pid },
  };
}

/** Opens a single connection in addition to the service's own. */
function openSandboxDatabase(connection: Connection, log: Logger, seals?: Seals): Database {
  const onError = logLostConnections(log);
  const sealing = seals === undefined ? {} : { seals };
  return openDatabase({ connection, poolSize: 1, applicationName: 'quittance', onError, ...sealing });
}

async function prepareTables(owner: Connection, keyRing: KeyRing, log: Logger): Promise<void> {
  const db = openSandboxDatabase(owner, log);
  const now = () => unixMs(systemClock.now());
  const deps = { keyRing: async () => keyRing, log, now, random: randomBytes };
  try {
    const applied = await migrate(db, { encryptPlainSecrets: (tx) => encryptPlainSecrets(tx, deps) });
    if (applied.length > 0) log.info({ migrations: applied }, 'the database schema was upgraded');
  } finally {
    await db.close();
  }
}

/** Commands that a newcomer can paste, from the first invoice to its webhook. `order` is an external id without an invoice. */
export function quickStart({ baseUrl, apiKey, inboxUrl }: SandboxFile, order: string): string {
  return `
Quittance sandbox: a local TRON network, a demo project, test money only. Paste these into another terminal:

1. Create an invoice:

   curl -sS ${baseUrl}/v1/invoices \\
     -H 'X-Api-Key: ${apiKey}' \\
     -H 'Idempotency-Key: ${order}' \\
     -H 'Content-Type: application/json' \\
     -d '{"amount":"25.00","asset":"USDT","network":"TRON","externalId":"${order}"}'

2. Open the checkoutUrl from the response in a browser.

3. Pay it (in this directory):

   ${quittanceCommand()} sandbox pay ${order}

4. See the webhooks that were received and verified:

   curl -sS ${inboxUrl}

Ctrl-C stops everything; the next start continues where this one stopped.

`;
}

/** This is printed last, because it becomes known a moment later. */
function consoleLink(link: string): string {
  return `See the payment in the console, as the merchant does. This link signs you in:

   ${link}

`;
}

/**
 * An installed package doesn't include the sources, so npm's scripts don't work there. A package that npm didn't install, such as the
 * Debian package, has no npx. `--no` keeps npx from fetching whatever the registry holds under our name.
 */
function quittanceCommand(): string {
  if (existsSync(new URL('src/', PACKAGE_ROOT))) return 'npm run quittance --';
  return PACKAGE_ROOT.href.includes('/node_modules/') ? 'npx --no quittance' : 'quittance';
}

/** Implements `/sandbox/…`. `sandbox` returns the sandbox once it's running. Each request acts only for its key's project. */
export function createSandboxControls(
  sandbox: () => Sandbox,
  settings: { keyRing: KeyRing; localTargets: boolean },
): NonNullable<ServiceOptions['sandbox']> {
  return {
    scenarios: SCENARIO_NAMES,
    pay: async ({ projectId: projectUuid, apiKey }, target, scenario) => {
      const running = sandbox();
      const retiredAddress = await findRetiredAddress(running.db, projectUuid);
      const own = { ...running, projectUuid, apiKey, retiredAddress, isOfKey: true };
      return payWith(own, { target, scenario: scenario as Scenario, withInvoice: null });
    },
    advance: async ({ projectId }, seconds) => ({
      invoices: await bringDeadlinesForward(sandbox().db, projectId, seconds),
    }),
    createProject: async (wanted) => createFreshProject({ ...settings, db: sandbox().db }, wanted),
    endProject: async ({ projectId }) => {
      const { db, projectUuid } = sandbox();
      return endProject(db, projectId, projectUuid);
    },
  };
}

/**
 * Brings forward the deadlines of up to 10,000 pending invoices in a local project (UUID) by this much, but not to before their creation.
 * Returns how many.
 */
const bringDeadlinesForward = answerOf(
  'sandbox-invoices-bring-deadlines-forward',
  { count: 'int4' },
  `select count(hurry_devnet_invoice(checkout_token, greatest(created_at, expires_at - $2 * interval '1 second')))::int4 as count
   from (select checkout_token, created_at, expires_at from invoices where project_id = $1 and status = 'PENDING' order by id desc limit 10000) i`,
  (projectId: string, seconds: number) => [projectId, seconds],
  ([row]) => row?.count ?? 0,
);

/** Finds a project's retired address that can still be paid. */
const findRetiredAddress = answerOf(
  'sandbox-retired-address',
  { address: 'address' },
  `select ${addressColumn('a')} as address from addresses a
   where a.project_id = $1 and a.retired_at is not null and a.barred_at is null order by a.position limit 1`,
  (projectId: string) => [projectId],
  ([row]) => row?.address ?? null,
);
