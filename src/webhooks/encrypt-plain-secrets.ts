import { encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Sql } from '../store/db/database.ts';
import { clearPlainSecret, lockPlainSecrets, stopEncryption } from '../store/outbox/webhook-secrets.ts';
import { storeEndpointSecret } from './endpoint-secrets.ts';
import { parseSecret } from './sign.ts';

type Deps = {
  /** Asked only if there is something to seal: the key may have to be made. */
  keyRing(): Promise<KeyRing>;
  log: Pick<Logger, 'info' | 'error'>;
  now(): UnixMs;
  random(size: number): Uint8Array;
};

/**
 * Seals the secrets that an earlier release stored as plain text, in the transaction of the upgrade that makes the table of sealed ones.
 * At no other time is a plain secret taken for one of ours.
 */
export async function encryptPlainSecrets(tx: Sql, { keyRing, log, now, random }: Deps): Promise<void> {
  let count = 0;
  for (;;) {
    const batch = await lockPlainSecrets(tx);
    if (batch.length === 0) break;
    const ring = await keyRing();
    await stopEncryption(tx);
    await ring.reload();
    for (const { endpointId, secret } of batch) {
      const endpoint = encodeId('whe', endpointId);
      if (isSecret(secret)) await storeEndpointSecret(tx, ring, { endpointId, secret, now: now(), random });
      else log.error({ endpoint }, 'a webhook endpoint has a malformed secret, which never signed; rotate it');
      await clearPlainSecret(tx, endpointId);
    }
    count += batch.length;
  }
  if (count > 0)
    log.info({ endpoints: count }, 'webhook secrets that a former release stored as plain text are sealed');
}

function isSecret(text: string): boolean {
  try {
    parseSecret(text);
    return true;
  } catch {
    return false;
  }
}
