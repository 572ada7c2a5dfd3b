import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { type Devnet, startDevnet } from '@quittance/devnet';
import { type AccountHex, accountToAddress, type TronAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { formatApiKey, SCOPES, type Scope } from '../../core/domain/api-key.ts';
import { AppError } from '../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import { type Logger, logLostConnections } from '../../core/runtime/log.ts';
import { requireKeyRing } from '../../core/runtime/open-key-ring.ts';
import { PACKAGE_ROOT } from '../../core/runtime/package.ts';
import { createParts } from '../../core/runtime/parts.ts';
import { writePrivateFile } from '../../core/runtime/private-file.ts';
import { addressColumn } from '../../core/store/db/address-column.ts';
import { type Connection, type Database, openDatabase, type Seals } from '../../core/store/db/database.ts';
import { migrate } from '../../core/store/db/migrate.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import { createSeals } from '../../core/store/db/seals.ts';
import { count } from '../../core/store/db/statement.ts';
import type { ServiceDatabase } from '../../core/store/embedded/embedded.ts';
import { insertAddress, markRetired } from '../../core/store/ledger/addresses.ts';
import { insertProject } from '../../core/store/ledger/projects.ts';
import { listWebhookEndpoints } from '../../core/store/outbox/webhook-endpoints.ts';
import { openNewestSecrets } from '../../core/webhooks/endpoint-secrets.ts';
import { createWebhookSecret } from '../../core/webhooks/sign.ts';
import { encryptPlainSecrets } from '../../core/webhooks/watch-endpoints.ts';
import { commandActor } from '../../faces/operator/actor.ts';
import { FieldError, nameProblem } from '../../faces/operator/input/problems.ts';
import { insertApiKey, listApiKeys, revokeKey } from '../../faces/operator/subjects/keys.ts';
import { archiveProject } from '../../faces/operator/subjects/projects.ts';
import { disableEndpoint, enableEndpoint } from '../../faces/operator/subjects/webhook-sending.ts';
import { addWebhookEndpoint, readWebhookUrl, updateEndpoint } from '../../faces/operator/subjects/webhooks.ts';
import type { Config } from '../../server/config/config.ts';
import type { ServiceOptions } from '../../server/context.ts';
import { startService } from '../../server/service.ts';
import { SCENARIO_NAMES, type Scenario } from '../scenarios/scenarios.ts';
import { startInbox } from './inbox.ts';
import { payWith } from './pay-invoice.ts';
import {
  removeSandboxFile,
  type Sandbox,
  type SandboxFile,
  sandboxNetwork,
  sandboxNotRunning,
  writeSandboxFile,
} from './sandbox-file.ts';

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

type DemoAddress = { id: string; account: AccountHex; address: TronAddress };

/** The parts of a sandbox's project. Ids are UUIDs. They are stored in the data directory, because the database has only hashes of keys. */
type DemoSecrets = {
  projectId: string;
  keyId: string;
  apiKey: string;
  endpointId: string;
  webhookSecret: string;
  addresses: DemoAddress[];
  /** The address doesn't get new invoices, but it's watched like the others. */
  retired: DemoAddress;
};

const ADDRESSES = 3;

/**
 * Reads or creates the demo project's secrets. They are written before the project is created so that a crash in between doesn't leave an
 * orphan.
 */
async function loadDemoSecrets(dataDir: string, nowMs: number): Promise<DemoSecrets> {
  const path = join(dataDir, 'sandbox-secrets.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  const kept = text === null ? null : (JSON.parse(text) as Omit<DemoSecrets, 'retired'> & Partial<DemoSecrets>);
  // Data directories from earlier releases don't have a retired address.
  if (kept?.retired !== undefined) return kept as DemoSecrets;
  const secrets = { ...(kept ?? createSecrets(nowMs)), retired: createAddress(nowMs) };
  await writePrivateFile(path, `${JSON.stringify(secrets, null, 2)}\n`);
  return secrets;
}

function createSecrets(nowMs: number): Omit<DemoSecrets, 'retired'> {
  const uuid = () => uuidV7(nowMs, randomBytes(10));
  const keyId = uuid();
  return {
    projectId: uuid(),
    keyId,
    apiKey: formatApiKey('devnet', keyId, randomBytes(32)),
    endpointId: uuid(),
    webhookSecret: createWebhookSecret(randomBytes),
    addresses: Array.from({ length: ADDRESSES }, () => createAddress(nowMs)),
  };
}

/** A demo address never needs to be spent from, so its private key is discarded at once. */
function createAddress(nowMs: number): DemoAddress {
  const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
  return { id: uuidV7(nowMs, randomBytes(10)), account, address: accountToAddress(account) };
}

/** Adds a project with its key and addresses; existing rows are left alone. The project has the same limits as in production. */
function seedProject(
  db: Database,
  { projectId, ...secrets }: Omit<DemoSecrets, 'endpointId' | 'webhookSecret'>,
  { name, scopes }: { name: string; scopes?: readonly Scope[] },
): Promise<void> {
  return db.transaction(async (tx) => {
    await insertProject(tx, { id: projectId, name, network: 'devnet', invoiceLifetimeMs: 30 * 60_000 });
    await insertApiKey(tx, {
      ...{ id: secrets.keyId, projectId, name: 'sandbox', allowedCidrs: null, expiresAt: null },
      secretSha256: createHash('sha256').update(secrets.apiKey).digest(),
      ...(scopes && { scopes }),
    });
    for (const address of secrets.addresses) await insertAddress(tx, { ...address, projectId });
    // The address is retired only when it's added and not at every start, because an operator may have activated it again.
    if (!(await insertAddress(tx, { ...secrets.retired, projectId }))) return;
    await markRetired(tx, [secrets.retired.id], unixMs(systemClock.now()));
  });
}

/** Adds the demo project; existing rows are left alone. Updates the inbox's URL, because its port may have changed. */
async function seedDemoProject(db: Database, keyRing: KeyRing, secrets: DemoSecrets, inboxUrl: string): Promise<void> {
  const { projectId } = secrets;
  await seedProject(db, secrets, { name: 'Sandbox' });
  const { endpointId: id, webhookSecret: secret } = secrets;
  const now = () => unixMs(systemClock.now());
  const deps = { db, keyRing, now: now(), random: randomBytes };
  await addWebhookEndpoint(deps, { id, projectId, url: inboxUrl, secret, description: 'sandbox inbox' });
  const endpointId = encodeId('whe', id);
  await updateEndpoint.run({ db, now, config: { webhooks: { localTargets: true } } }, ACTOR, {
    endpointId,
    url: inboxUrl,
  });
  await enableEndpoint.run({ db, now }, ACTOR, { endpointId });
}

/** With more projects, every start and every project list would be noticeably slower. */
const MAX_PROJECTS = 500;

type CreateProject = NonNullable<ServiceOptions['sandbox']>['createProject'];
type FreshProjectDeps = { db: Database; keyRing: KeyRing; localTargets: boolean };

/**
 * Creates a project for one test, with a key that can do everything, and an endpoint if requested. Stores nothing if the request is
 * refused.
 */
async function createFreshProject(
  { db, keyRing, localTargets }: FreshProjectDeps,
  { name, webhookUrl }: Parameters<CreateProject>[0],
): ReturnType<CreateProject> {
  const problem = nameProblem(name);
  if (problem !== null) throw new FieldError('name', problem);
  const place = { field: 'webhookUrl', example: 'http://127.0.0.1:3000/hook' };
  const url = webhookUrl === null ? null : readWebhookUrl(webhookUrl, 'devnet', { webhooks: { localTargets } }, place);
  if ((await countProjects(db)) >= MAX_PROJECTS) {
    const fix =
      'end the projects of finished tests with DELETE /sandbox/projects, or start a sandbox on an empty data directory';
    throw new AppError('SANDBOX_REFUSED', `The sandbox has ${MAX_PROJECTS} projects, which is the limit: ${fix}.`);
  }
  const now = unixMs(systemClock.now());
  const secrets = { ...createSecrets(now), retired: createAddress(now) };
  await seedProject(db, secrets, { name, scopes: SCOPES });
  const { projectId, apiKey, endpointId: id, webhookSecret: secret } = secrets;
  if (url !== null) await addWebhookEndpoint({ db, keyRing, now, random: randomBytes }, { id, projectId, url, secret });
  const endpoint = url === null ? null : { endpointId: encodeId('whe', id), url, secret };
  return { projectId: encodeId('prj', projectId), name, apiKey, endpoint };
}

/**
 * Ends a project: nothing is sent for it, it accepts no orders, and its keys are revoked. The demo project can't be ended. Throws
 * `SANDBOX_REFUSED`.
 */
async function endProject(db: Database, projectUuid: string, demoUuid: string): Promise<void> {
  if (projectUuid === demoUuid) {
    const fix = 'send the key that POST /sandbox/projects returned';
    throw new AppError('SANDBOX_REFUSED', `This key belongs to the demo project, which cannot be ended: ${fix}.`);
  }
  const deps = { db, now: () => unixMs(systemClock.now()) };
  for (const { id, disabledAt } of await listWebhookEndpoints(db, projectUuid)) {
    if (disabledAt !== null) continue;
    await disableEndpoint.run(deps, ACTOR, { endpointId: encodeId('whe', id), reason: 'the project has ended' });
  }
  await archiveProject.run(deps, ACTOR, { projectId: encodeId('prj', projectUuid) });
  // Keys are revoked last so that an interrupted request can be repeated.
  for (const { id, revokedAt } of await listApiKeys(db, projectUuid)) {
    if (revokedAt === null) await revokeKey.run(deps, ACTOR, { uuid: id });
  }
}

const ACTOR = commandActor('sandbox');

/** Counts the local network's projects in use. */
const countProjects = answerOf(
  'sandbox-projects-count',
  { count },
  `select count(*) from projects where network = 'devnet' and archived_at is null`,
  () => [],
  ([row]) => row?.count ?? 0,
);
