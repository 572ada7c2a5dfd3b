import { createHash, randomBytes } from 'node:crypto';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { insertApiKey } from '../../src/faces/operator/subjects/keys.ts';
import type { GrowthShop } from '../growth/shop.ts';

/** Creates an API key whose secret is known. */
export async function newKey(db: Database, { projectId }: GrowthShop): Promise<string> {
  const id = uuidV7(Date.now(), randomBytes(10));
  const key = formatApiKey('devnet', id, randomBytes(32));
  const secretSha256 = createHash('sha256').update(key).digest();
  await insertApiKey(db, { id, projectId, name: 'load', secretSha256, allowedCidrs: null, expiresAt: null });
  return key;
}
