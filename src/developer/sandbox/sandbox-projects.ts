import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { type AccountHex, accountToAddress, type TronAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { formatApiKey, SCOPES, type Scope } from '../../core/domain/api-key.ts';
import { AppError } from '../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import { writePrivateFile } from '../../core/runtime/private-file.ts';
import type { Database } from '../../core/store/db/database.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import { count } from '../../core/store/db/statement.ts';
import { insertAddress, markRetired } from '../../core/store/ledger/addresses.ts';
import { insertProject } from '../../core/store/ledger/projects.ts';
import { listWebhookEndpoints } from '../../core/store/outbox/webhook-endpoints.ts';
import { createWebhookSecret } from '../../core/webhooks/sign.ts';
import { commandActor } from '../../faces/operator/actor.ts';
import { FieldError, nameProblem } from '../../faces/operator/input/problems.ts';
import { insertApiKey, listApiKeys, revokeKey } from '../../faces/operator/subjects/keys.ts';
import { archiveProject } from '../../faces/operator/subjects/projects.ts';
import { disableEndpoint, enableEndpoint } from '../../faces/operator/subjects/webhook-sending.ts';
import { addWebhookEndpoint, readWebhookUrl, updateEndpoint } from '../../faces/operator/subjects/webhooks.ts';
import type { ServiceOptions } from '../../server/context.ts';

type DemoAddress = { id: string; account: AccountHex; address: TronAddress };

/** The parts of a sandbox's project. Ids are UUIDs. They are stored in the data directory, because the database has only hashes of keys. */
export type DemoSecrets = {
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
export async function loadDemoSecrets(dataDir: string, nowMs: number): Promise<DemoSecrets> {
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
export async function seedDemoProject(
  db: Database,
  keyRing: KeyRing,
  secrets: DemoSecrets,
  inboxUrl: string,
): Promise<void> {
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
export async function createFreshProject(
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
export async function endProject(db: Database, projectUuid: string, demoUuid: string): Promise<void> {
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
