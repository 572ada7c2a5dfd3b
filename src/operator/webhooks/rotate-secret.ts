import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Database } from '../../store/db/database.ts';
import { endWebhookSecrets, findActiveSecrets } from '../../store/outbox/webhook-secrets.ts';
import { addEndpointSecret, openEndpointSecrets } from '../../webhooks/endpoint-secrets.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { parseDuration } from '../input/duration.ts';
import { FieldError } from '../input/field-error.ts';
import { readGivenSecret } from '../input/read-given-secret.ts';
import { recordActions } from '../record-actions.ts';
import { type KeyDeps, openEncryptionKeys } from '../subjects/master-keys.ts';
import { lockWebhookEndpoint, readEndpointId, refuseAdapter, selectEndpoint } from './select-endpoint.ts';
import type { RotatedSecretView } from './views.ts';

const MAX_OVERLAP_MS = 30 * 86_400_000;

/** Reads how long former secrets go on signing, 0 to 30 days, and the new secret; without one it is made. Errors: `INVALID_ARGUMENT`. */
export function readRotation({ overlap, secret }: { overlap: string; secret?: string | undefined }) {
  const overlapMs = /^0[mhd]?$/.test(overlap) ? 0 : parseDuration(overlap);
  if (overlapMs === null || overlapMs > MAX_OVERLAP_MS) {
    throw new FieldError('overlap', `is ${clip(overlap)}: give 0, or a duration of up to 30d such as 24h`);
  }
  return { overlapMs, secret: secret === undefined ? null : readGivenSecret(secret) };
}

type Deps = KeyDeps & { db: Database; random: (size: number) => Uint8Array };
type Input = ReturnType<typeof readRotation> & { endpointId: string; isKeyLost: boolean };

/** Gives an endpoint a new secret, which is shown this one time if it was made here. Errors: `NOT_FOUND`, `CONFLICT`, `CONFIG_INVALID`. */
export async function rotateSecret(
  deps: Deps,
  actor: Actor,
  { endpointId: id, overlapMs, secret: given, isKeyLost }: Input,
): Promise<RotatedSecretView> {
  const endpointId = readEndpointId(id);
  const keyRing = await openEncryptionKeys(deps, { isKeyLost });
  const secret = given ?? createWebhookSecret(deps.random);
  const rotation = { endpointId, secret, overlapMs };
  const { formerEndsAt, isFormerLost } = await rotateEndpointSecret(
    { ...deps, keyRing, now: deps.now() },
    actor,
    rotation,
  );
  return {
    ...{ endpointId: id, secret: given === null ? secret : null },
    ...{ formerSecretEndsAt: toIso(formerEndsAt), isFormerSecretLost: isFormerLost },
  };
}

/**
 * Gives an endpoint (UUID) a new secret (`whsec_…`), all or nothing. The former one goes on signing for `overlapMs`, until `formerEndsAt`;
 * 0 ends it at once, and all that are still ending. A former secret that no key opens signs nothing, so it ends at once (`isFormerLost`).
 */
export async function rotateEndpointSecret(
  { db, keyRing, now, random }: { db: Database; keyRing: KeyRing; now: UnixMs; random: (size: number) => Uint8Array },
  actor: Actor,
  { endpointId: uuid, secret, overlapMs }: { endpointId: string; secret: string; overlapMs: number },
): Promise<{ formerEndsAt: UnixMs; isFormerLost: boolean }> {
  const endpointId = encodeId('whe', uuid);
  return db.transaction(async (tx) => {
    const endpoint = await selectEndpoint(tx, actor, endpointId, lockWebhookEndpoint);
    refuseAdapter(endpoint);
    const { projectId } = endpoint;
    const active = await findActiveSecrets(tx, [uuid], now);
    const opened = await openEndpointSecrets(keyRing, active);
    if (opened.some((each) => each.kind === 'ok' && each.secret === secret)) {
      throw new AppError('CONFLICT', `${endpointId} signs with this secret already; nothing was changed`);
    }
    const isFormerLost = active.some(({ endsAt }, index) => endsAt === null && opened[index]?.kind !== 'ok');
    const ending = active.flatMap(({ endsAt }, index) => (opened[index]?.kind === 'ok' && endsAt) || []);
    if (overlapMs > 0 && ending.length > 0) {
      // A third secret would keep receivers guessing.
      throw new AppError(
        'CONFLICT',
        say`${endpointId} was rotated before, and its former secret signs until ${toIso(unixMs(Math.max(...ending)))}: wait until then, or end all former secrets at once with ${{ field: 'overlap' }} 0`,
      );
    }
    const formerEndsAt = unixMs(now + (isFormerLost ? 0 : overlapMs));
    await endWebhookSecrets(tx, uuid, formerEndsAt);
    await addEndpointSecret(tx, keyRing, { endpointId: uuid, secret, now, random });
    const detail = { formerSecretEndsAt: toIso(formerEndsAt) };
    await recordActions(tx, actor, now, [{ projectId, action: 'webhook.rotated', subject: endpointId, detail }]);
    return { formerEndsAt, isFormerLost };
  });
}
