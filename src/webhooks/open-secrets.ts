import { encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Sql } from '../store/database.ts';
import type { LeasedDelivery } from '../store/deliveries.ts';
import { findActiveSecrets, type StoredSecret } from '../store/webhook-secrets.ts';
import type { SignableDelivery } from './attempt-delivery.ts';
import { openEndpointSecrets } from './endpoint-secrets.ts';

/** A delivery whose endpoint's secrets cannot be opened is due again so much later; nothing was attempted, and nothing counts. */
export const UNSIGNABLE_PAUSE_MS = 60_000;

type SecretOpener = (
  deliveries: readonly LeasedDelivery[],
  now: UnixMs,
) => Promise<{ signable: SignableDelivery[]; unsignable: LeasedDelivery[] }>;

/**
 * Opens the secrets of the endpoints of what was leased, for that batch only: what is rotated counts from the next batch on, and no
 * secret stays in memory. Without the current secret of its endpoint nothing is attempted; a former one that does not open is left out.
 */
export function createSecretOpener({ db, keyRing, log }: { db: Sql; keyRing: KeyRing; log: Logger }): SecretOpener {
  let toldAt = Number.NEGATIVE_INFINITY;
  const tell = (unopened: readonly StoredSecret[], unsigned: readonly string[], now: UnixMs) => {
    if (unopened.length + unsigned.length === 0 || Math.abs(now - toldAt) < UNSIGNABLE_PAUSE_MS) return;
    toldAt = now;
    const told = unopened
      .slice(0, MAX_TOLD)
      .map((row) => ({ endpointId: encodeId('whe', row.endpoint_id), masterKeyId: row.master_key_id }));
    const endpoints = unsigned.slice(0, MAX_TOLD).map((id) => encodeId('whe', id));
    log.error(
      { unopened: told, waitingEndpoints: endpoints },
      'secrets of webhook endpoints cannot be opened, and the events of these endpoints wait: give this process the master keys that sealed them (quittance master-key status), or rotate the secrets',
    );
  };
  return async (deliveries, now) => {
    const ids = [...new Set(deliveries.map(({ endpointId }) => endpointId))];
    const rows = await findActiveSecrets(db, ids, now);
    const opened = await openEndpointSecrets(keyRing, rows);
    const secrets = new Map<string, string[]>();
    for (const [index, row] of rows.entries()) {
      const each = opened[index];
      // Of each endpoint the current one comes first.
      if (each?.kind !== 'ok') continue;
      if (row.ends_at === null) secrets.set(row.endpoint_id, [each.secret]);
      else secrets.get(row.endpoint_id)?.push(each.secret);
    }
    const unopened = rows.filter((_, index) => opened[index]?.kind !== 'ok');
    tell(
      unopened,
      ids.filter((id) => !secrets.has(id)),
      now,
    );
    const signable = deliveries.flatMap((delivery) => {
      const of = secrets.get(delivery.endpointId);
      return of === undefined ? [] : [{ ...delivery, secrets: of }];
    });
    return { signable, unsignable: deliveries.filter(({ endpointId }) => !secrets.has(endpointId)) };
  };
}

const MAX_TOLD = 10;
