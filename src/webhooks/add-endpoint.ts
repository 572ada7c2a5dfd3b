import type { UnixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Database } from '../store/database.ts';
import { insertWebhookEndpoint } from '../store/webhook-endpoints.ts';
import { addEndpointSecret } from './endpoint-secrets.ts';

/** Ids are UUIDs; `secret` is `whsec_…`; `eventTypes` null stands for all. */
export type NewEndpoint = {
  id: string;
  projectId: string;
  url: string;
  secret: string;
  description?: string;
  eventTypes?: readonly string[] | null;
};

/** Adds an endpoint with its secret, sealed. `false` if one with this id exists, which stays as it is. */
export async function addWebhookEndpoint(
  { db, keyRing, now, random }: { db: Database; keyRing: KeyRing; now: UnixMs; random: (size: number) => Uint8Array },
  endpoint: NewEndpoint,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    if (!(await insertWebhookEndpoint(tx, endpoint))) return false;
    await addEndpointSecret(tx, keyRing, { endpointId: endpoint.id, secret: endpoint.secret, now, random });
    return true;
  });
}
