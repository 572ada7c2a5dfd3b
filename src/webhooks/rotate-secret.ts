import { type UnixMs, unixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Database } from '../store/database.ts';
import { lockWebhookEndpoint } from '../store/endpoint-desk.ts';
import { endWebhookSecrets, findActiveSecrets } from '../store/webhook-secrets.ts';
import { addEndpointSecret, openEndpointSecrets } from './endpoint-secrets.ts';

export type Rotation =
  /** `formerEndsAt`: until then the former secret signs beside the new one. `isFormerLost`: it could not be opened any more. */
  | { kind: 'rotated'; formerEndsAt: UnixMs; isFormerLost: boolean }
  | { kind: 'unknown' }
  /** The secret that was given signs already. */
  | { kind: 'same' }
  /** An earlier rotation goes on until `endsAt`: a third secret would keep receivers guessing. */
  | { kind: 'overlapping'; endsAt: UnixMs };

/**
 * Gives an endpoint a new secret (`whsec_…`), all or nothing. The former one goes on signing for `overlapMs`; 0 ends it and all that
 * are still ending at once. One that cannot be opened signs nothing, so it ends at once.
 */
export async function rotateEndpointSecret(
  { db, keyRing, now, random }: { db: Database; keyRing: KeyRing; now: UnixMs; random: (size: number) => Uint8Array },
  { endpointId, secret, overlapMs }: { endpointId: string; secret: string; overlapMs: number },
): Promise<Rotation> {
  return db.transaction(async (tx) => {
    if ((await lockWebhookEndpoint(tx, endpointId)) === null) return { kind: 'unknown' };
    const active = await findActiveSecrets(tx, [endpointId], now);
    const opened = await openEndpointSecrets(keyRing, active);
    if (opened.some((each) => each.kind === 'ok' && each.secret === secret)) return { kind: 'same' };
    const isFormerLost = active.some(({ ends_at }, index) => ends_at === null && opened[index]?.kind !== 'ok');
    const ending = active.flatMap(({ ends_at }, index) =>
      opened[index]?.kind === 'ok' && ends_at !== null ? [ends_at] : [],
    );
    if (overlapMs > 0 && ending.length > 0) return { kind: 'overlapping', endsAt: unixMs(Math.max(...ending)) };
    const formerEndsAt = unixMs(now + (isFormerLost ? 0 : overlapMs));
    await endWebhookSecrets(tx, endpointId, formerEndsAt);
    await addEndpointSecret(tx, keyRing, { endpointId, secret, now, random });
    return { kind: 'rotated', formerEndsAt, isFormerLost };
  });
}
