import { randomBytes, randomUUID } from 'node:crypto';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { addWebhookEndpoint, type NewEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';

/** The keys of every service and dispatcher in one test file. */
export const TEST_KEY_RING = createKeyRing([createMasterKey()]);

/** Adds an endpoint with its secret, as the command does. */
export async function addTestEndpoint(
  db: Database,
  endpoint: Omit<NewEndpoint, 'id'> & { id?: string },
): Promise<{ id: string }> {
  const id = endpoint.id ?? randomUUID();
  const deps = { db, keyRing: TEST_KEY_RING, now: unixMs(Date.now()), random: randomBytes };
  if (!(await addWebhookEndpoint(deps, { ...endpoint, id }))) throw new Error(`there is an endpoint ${id} already`);
  return { id };
}
