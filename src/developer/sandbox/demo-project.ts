import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { formatApiKey } from '../../domain/api-key.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { commandActor } from '../../operator/actor.ts';
import { enableEndpoint } from '../../operator/subjects/webhook-sending.ts';
import { addWebhookEndpoint, updateEndpoint } from '../../operator/subjects/webhooks.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { writePrivateFile } from '../../runtime/private-file.ts';
import { insertApiKey } from '../../store/access/api-keys.ts';
import type { Database } from '../../store/db/database.ts';
import { insertAddress, markRetired } from '../../store/ledger/addresses.ts';
import { insertProject } from '../../store/ledger/projects.ts';
import { type AccountHex, accountToAddress, type TronAddress } from '../../tron/address.ts';
import { accountFromPublicKey } from '../../tron/public-key.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';

type DemoAddress = { id: string; account: AccountHex; address: TronAddress };

/** The parts of a sandbox's demo project. Ids are UUIDs. The data directory keeps them, because keys are stored hashed. */
export type DemoSecrets = {
  projectId: string;
  keyId: string;
  apiKey: string;
  endpointId: string;
  webhookSecret: string;
  addresses: DemoAddress[];
  /** Takes no new invoices, and is watched like the others. */
  retired: DemoAddress;
};

const ADDRESSES = 3;

/** Reads the demo project's secrets, or makes them. Written before the project is, so that a crash between leaves no orphan. */
export async function loadDemoSecrets(dataDir: string, nowMs: number): Promise<DemoSecrets> {
  const path = join(dataDir, 'sandbox-secrets.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  const kept = text === null ? null : (JSON.parse(text) as Omit<DemoSecrets, 'retired'> & Partial<DemoSecrets>);
  // Data directories of earlier releases have no retired address.
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

/** A demo address never needs to be spent from, so its private key is forgotten at once. */
function createAddress(nowMs: number): DemoAddress {
  const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
  return { id: uuidV7(nowMs, randomBytes(10)), account, address: accountToAddress(account) };
}

/** Puts the demo project into the database; rows that are there already stay. The inbox may have moved to another port. */
export async function seedDemoProject(
  db: Database,
  keyRing: KeyRing,
  secrets: DemoSecrets,
  inboxUrl: string,
): Promise<void> {
  const { projectId } = secrets;
  await insertProject(db, {
    id: projectId,
    name: 'Sandbox',
    network: 'devnet',
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
  for (const address of secrets.addresses) await insertAddress(db, { ...address, projectId });
  await db.transaction(async (tx) => {
    // Retired once, not at every start: an operator may have put it back into use.
    if (!(await insertAddress(tx, { ...secrets.retired, projectId }))) return;
    await markRetired(tx, [secrets.retired.id], unixMs(systemClock.now()));
  });
  const { endpointId: id, webhookSecret: secret } = secrets;
  const now = () => unixMs(systemClock.now());
  const deps = { db, keyRing, now: now(), random: randomBytes };
  await addWebhookEndpoint(deps, { id, projectId, url: inboxUrl, secret, description: 'inbox of the sandbox' });
  const endpointId = encodeId('whe', id);
  await updateEndpoint.run({ db, now, config: { webhooks: { localTargets: true } } }, ACTOR, {
    endpointId,
    url: inboxUrl,
  });
  await enableEndpoint.run({ db, now }, ACTOR, { endpointId });
}

const ACTOR = commandActor('sandbox');
