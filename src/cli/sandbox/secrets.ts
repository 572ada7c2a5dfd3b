import { createHash, randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { formatApiKey } from '../../domain/api-key.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { insertAddress } from '../../store/addresses.ts';
import { insertApiKey } from '../../store/api-keys.ts';
import type { Database } from '../../store/database.ts';
import { insertProject } from '../../store/projects.ts';
import { insertWebhookEndpoint, updateWebhookEndpointUrl } from '../../store/webhook-endpoints.ts';
import { type AccountHex, accountFromPublicKey, accountToAddress, type TronAddress } from '../../tron/address.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';

/** What the demo project of a sandbox is made of. Ids are UUIDs. Kept in the data directory, because keys are stored hashed. */
export type SandboxSecrets = {
  projectId: string;
  keyId: string;
  apiKey: string;
  endpointId: string;
  webhookSecret: string;
  addresses: { id: string; account: AccountHex; address: TronAddress }[];
};

const ADDRESSES = 3;

/** Reads the demo project's secrets, or makes them. Written before the project is, so that a crash between leaves no orphan. */
export async function loadSandboxSecrets(dataDir: string, nowMs: number): Promise<SandboxSecrets> {
  const path = join(dataDir, 'sandbox-secrets.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text !== null) return JSON.parse(text) as SandboxSecrets;
  const secrets = createSecrets(nowMs);
  await writeJson(path, secrets);
  return secrets;
}

/** Writes a file of this user alone, whole or not at all. */
export async function writeJson(path: string, value: object): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  await writeFile(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path);
}

function createSecrets(nowMs: number): SandboxSecrets {
  const uuid = () => uuidV7(nowMs, randomBytes(10));
  const keyId = uuid();
  return {
    projectId: uuid(),
    keyId,
    apiKey: formatApiKey('devnet', keyId, randomBytes(32)),
    endpointId: uuid(),
    webhookSecret: createWebhookSecret(randomBytes),
    addresses: Array.from({ length: ADDRESSES }, () => {
      // Nobody needs to spend from a demo address, so its private key is forgotten at once.
      const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
      return { id: uuid(), account, address: accountToAddress(account) };
    }),
  };
}

/** Puts the demo project into the database; what is there already stays. The inbox may have moved to another port. */
export async function seedSandbox(db: Database, secrets: SandboxSecrets, inboxUrl: string): Promise<void> {
  const { projectId } = secrets;
  await insertProject(db, {
    id: projectId,
    name: 'Sandbox',
    network: 'devnet',
    maxSurchargeMicro: 10_000n,
    invoiceLifetimeMs: 30 * 60_000,
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
  await insertWebhookEndpoint(db, { id: secrets.endpointId, projectId, url: inboxUrl, secret: secrets.webhookSecret });
  await updateWebhookEndpointUrl(db, secrets.endpointId, inboxUrl);
}
