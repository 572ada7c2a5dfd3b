import { createHash, randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { formatApiKey } from '../../domain/api-key.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { insertAddress, markRetired } from '../../store/addresses.ts';
import { insertApiKey } from '../../store/api-keys.ts';
import type { Database } from '../../store/database.ts';
import { insertProject } from '../../store/projects.ts';
import { changeWebhookEndpoint, enableWebhookEndpoint, findWebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { type AccountHex, accountFromPublicKey, accountToAddress, type TronAddress } from '../../tron/address.ts';
import { addWebhookEndpoint } from '../../webhooks/add-endpoint.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';

type SandboxAddress = { id: string; account: AccountHex; address: TronAddress };

/** What the demo project of a sandbox is made of. Ids are UUIDs. Kept in the data directory, because keys are stored hashed. */
export type SandboxSecrets = {
  projectId: string;
  keyId: string;
  apiKey: string;
  endpointId: string;
  webhookSecret: string;
  addresses: SandboxAddress[];
  /** Takes no new invoices, and is watched like the others. */
  retired: SandboxAddress;
};

const ADDRESSES = 3;

/** Reads the demo project's secrets, or makes them. Written before the project is, so that a crash between leaves no orphan. */
export async function loadSandboxSecrets(dataDir: string, nowMs: number): Promise<SandboxSecrets> {
  const path = join(dataDir, 'sandbox-secrets.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  const kept = text === null ? null : (JSON.parse(text) as Omit<SandboxSecrets, 'retired'> & Partial<SandboxSecrets>);
  // Data directories of earlier releases have no retired address.
  if (kept?.retired !== undefined) return kept as SandboxSecrets;
  const secrets = { ...(kept ?? createSecrets(nowMs)), retired: createAddress(nowMs) };
  await writeJson(path, secrets);
  return secrets;
}

/** Writes a file of this user alone, whole or not at all. */
export async function writeJson(path: string, value: object): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  await writeFile(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path);
}

function createSecrets(nowMs: number): Omit<SandboxSecrets, 'retired'> {
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

/** Nobody needs to spend from a demo address, so its private key is forgotten at once. */
function createAddress(nowMs: number): SandboxAddress {
  const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
  return { id: uuidV7(nowMs, randomBytes(10)), account, address: accountToAddress(account) };
}

/** Puts the demo project into the database; what is there already stays. The inbox may have moved to another port. */
export async function seedSandbox(
  db: Database,
  keyRing: KeyRing,
  secrets: SandboxSecrets,
  inboxUrl: string,
): Promise<void> {
  const { projectId } = secrets;
  await insertProject(db, {
    id: projectId,
    name: 'Sandbox',
    network: 'devnet',
    maxSurchargeMicro: 10_000n,
    invoiceLifetimeMs: 30 * 60_000,
    maxUnpaid: null,
    maxUnpaidPerMinute: null,
  });
  await insertApiKey(db, {
    id: secrets.keyId,
    projectId,
    name: 'sandbox',
    secretSha256: createHash('sha256').update(secrets.apiKey).digest(),
    allowedCidrs: null,
    expiresAt: null,
  });
  for (const { id, account, address } of secrets.addresses)
    await insertAddress(db, { id, projectId, account, address });
  await db.transaction(async (tx) => {
    // Retired once, not at every start: an operator may have put it back into use.
    if (!(await insertAddress(tx, { ...secrets.retired, projectId }))) return;
    await markRetired(tx, [secrets.retired.id], unixMs(systemClock.now()));
  });
  const { endpointId: id, webhookSecret: secret } = secrets;
  const deps = { db, keyRing, now: unixMs(systemClock.now()), random: randomBytes };
  await addWebhookEndpoint(deps, { id, projectId, url: inboxUrl, secret, description: 'inbox of the sandbox' });
  const endpoint = await findWebhookEndpoint(db, id);
  if (endpoint === null) throw new Error('the endpoint of the sandbox vanished; endpoints are never deleted');
  const { description, event_types: eventTypes } = endpoint;
  await changeWebhookEndpoint(db, id, { url: inboxUrl, description, eventTypes });
  await enableWebhookEndpoint(db, id);
}
