import { encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Sql } from '../store/db/database.ts';
import type { LeasedDelivery } from '../store/outbox/deliveries.ts';
import { findActiveSecrets, type StoredSecret } from '../store/outbox/webhook-secrets.ts';
import type { SignableDelivery } from './attempt-delivery.ts';
import { openEndpointSecrets } from './endpoint-secrets.ts';

/** A delivery whose endpoint's secrets cannot be opened is due again after this pause. No attempt was made, so none counts. */
export const UNSIGNABLE_PAUSE_MS = 60_000;

type SecretOpener = (
  deliveries: readonly LeasedDelivery[],
  now: UnixMs,
) => Promise<{ signable: SignableDelivery[]; unsignable: LeasedDelivery[] }>;

/**
 * Opens the secrets of the endpoints of a leased batch, for that batch only: a rotation counts from the next batch on, and no secret stays
 * in memory. A delivery is not attempted without the current secret of its endpoint; a former secret that does not open is left out.
 */
export function createSecretOpener({ db, keyRing, log }: { db: Sql; keyRing: KeyRing; log: Logger }): SecretOpener {
  let loggedAt = Number.NEGATIVE_INFINITY;
  const report = (unopened: readonly StoredSecret[], unsigned: readonly string[], now: UnixMs) => {
    if (unopened.length + unsigned.length === 0 || Math.abs(now - loggedAt) < UNSIGNABLE_PAUSE_MS) return;
    loggedAt = now;
    const reported = unopened
      .slice(0, MAX_LOGGED)
      .map((row) => ({ endpointId: encodeId('whe', row.endpointId), masterKeyId: row.masterKeyId }));
    const endpoints = unsigned.slice(0, MAX_LOGGED).map((id) => encodeId('whe', id));
    log.error(
      { unopened: reported, waitingEndpoints: endpoints },
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
      // The rows of an endpoint begin with its current secret.
      if (each?.kind !== 'ok') continue;
      if (row.endsAt === null) secrets.set(row.endpointId, [each.secret]);
      else secrets.get(row.endpointId)?.push(each.secret);
    }
    const unopened = rows.filter((_, index) => opened[index]?.kind !== 'ok');
    report(
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

const MAX_LOGGED = 10;
