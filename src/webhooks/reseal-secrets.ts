import { NIL_UUID } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Database, Sql } from '../store/database.ts';
import { lockSecretsUnderOtherKeys, type StoredSecret, stopSealing } from '../store/webhook-secrets.ts';
import { resealEndpointSecret } from './endpoint-secrets.ts';

/** `lostEndpoints`: ids of endpoints that have a secret which still signs and no key opens. */
type ResealResult = { resealed: number; lostEndpoints: string[] };

/**
 * Seals every secret under the current key of the ring, in batches of 500. When this returns, the other keys of the ring seal
 * nothing that they open, and no process that reads the same keys goes on sealing with them. Can be cut off and repeated at any
 * time, beside running services.
 */
export async function resealSecrets(db: Database, ring: KeyRing, now: UnixMs): Promise<ResealResult> {
  let resealed = 0;
  let after = NIL_UUID;
  for (;;) {
    const batch = await db.transaction((tx) => resealBatch(tx, ring, after));
    resealed += batch.resealed;
    if (batch.last === null) break;
    after = batch.last;
  }
  // Who began to seal before the current key was the current one is waited for here.
  const rest = await db.transaction(async (tx) => {
    await stopSealing(tx);
    return resealRest(tx, ring, now);
  });
  return { resealed: resealed + rest.resealed, lostEndpoints: rest.lostEndpoints };
}

/** What came meanwhile is little; what is found besides cannot be opened. */
async function resealRest(tx: Sql, ring: KeyRing, now: UnixMs): Promise<ResealResult> {
  const lost = new Set<string>();
  let resealed = 0;
  let after = NIL_UUID;
  for (;;) {
    const batch = await resealBatch(tx, ring, after);
    resealed += batch.resealed;
    for (const row of batch.unopened) if (row.ends_at === null || row.ends_at > now) lost.add(row.endpoint_id);
    if (batch.last === null) return { resealed, lostEndpoints: [...lost] };
    after = batch.last;
  }
}

/** `last` is the id to go on behind, or `null` where nothing was found. */
async function resealBatch(tx: Sql, ring: KeyRing, after: string) {
  const rows = await lockSecretsUnderOtherKeys(tx, ring.current().id, after);
  const unopened: StoredSecret[] = [];
  for (const row of rows) if ((await resealEndpointSecret(tx, ring, row)) !== 'ok') unopened.push(row);
  return { resealed: rows.length - unopened.length, unopened, last: rows.at(-1)?.id ?? null };
}
