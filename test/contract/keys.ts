import { createHash, randomBytes } from 'node:crypto';
import { formatApiKey, type Scope } from '../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import type { Network } from '../../src/core/domain/network.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { insertApiKey } from '../../src/faces/operator/subjects/keys.ts';

/** Adds another key to a project. `expiresAtMs` is in Unix milliseconds. */
export async function addKey(
  db: Database,
  projectId: string,
  options: { network?: Network; allowedCidrs?: string[]; expiresAtMs?: number; scopes?: readonly Scope[] | null } = {},
): Promise<{ keyId: string; apiKey: string }> {
  const { network = 'devnet', allowedCidrs = null, expiresAtMs, scopes = null } = options;
  const keyId = uuidV7(Date.now(), randomBytes(10));
  const apiKey = formatApiKey(network, keyId, randomBytes(32));
  await insertApiKey(db, {
    id: keyId,
    projectId,
    name: 'further',
    secretSha256: createHash('sha256').update(apiKey).digest(),
    allowedCidrs,
    scopes,
    expiresAt: expiresAtMs === undefined ? null : unixMs(expiresAtMs),
  });
  return { keyId, apiKey };
}
