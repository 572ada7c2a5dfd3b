import { NIL_UUID } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { lockSecretsUnderOtherKeys, type StoredSecret, stopEncryption } from '../../store/outbox/webhook-secrets.ts';
import { reencryptEndpointSecret } from '../../webhooks/endpoint-secrets.ts';

/** `lostEndpoints`: ids of endpoints with a secret that should still sign, but that no key opens. */
type ReencryptResult = { resealed: number; lostEndpoints: string[] };

/**
 * Seals every secret under the current key of the ring, in batches of 500. When this returns, the other keys of the ring seal
 * nothing that they open, and no process that reads the same keys goes on sealing with them. Can be cut off and repeated at any
 * time, beside running services.
 */
export async function reencryptSecrets(db: Database, ring: KeyRing, now: UnixMs): Promise<ReencryptResult> {
  let resealed = 0;
  let after = NIL_UUID;
  for (;;) {
    const batch = await db.transaction((tx) => reencryptBatch(tx, ring, after));
    resealed += batch.resealed;
    if (batch.last === null) break;
    after = batch.last;
  }
  // This waits for processes that began to seal before the current key was the current one.
  const rest = await db.transaction(async (tx) => {
    await stopEncryption(tx);
    return reencryptRest(tx, ring, now);
  });
  return { resealed: resealed + rest.resealed, lostEndpoints: rest.lostEndpoints };
}

/** Few secrets came meanwhile; the other secrets found here cannot be opened. */
async function reencryptRest(tx: Sql, ring: KeyRing, now: UnixMs): Promise<ReencryptResult> {
  const lost = new Set<string>();
  let resealed = 0;
  let after = NIL_UUID;
  for (;;) {
    const batch = await reencryptBatch(tx, ring, after);
    resealed += batch.resealed;
    for (const row of batch.unopened) if (row.endsAt === null || row.endsAt > now) lost.add(row.endpointId);
    if (batch.last === null) return { resealed, lostEndpoints: [...lost] };
    after = batch.last;
  }
}

/** `last`: the next batch starts after this id; `null` if nothing was found. */
async function reencryptBatch(tx: Sql, ring: KeyRing, after: string) {
  const rows = await lockSecretsUnderOtherKeys(tx, ring.current().id, after);
  const unopened: StoredSecret[] = [];
  for (const row of rows) if ((await reencryptEndpointSecret(tx, ring, row)) !== 'ok') unopened.push(row);
  return { resealed: rows.length - unopened.length, unopened, last: rows.at(-1)?.id ?? null };
}
