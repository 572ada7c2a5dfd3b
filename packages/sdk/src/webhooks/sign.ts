import type { WebhookEvent } from '../types.ts';
import { readSecrets } from './secret.ts';
import { createHmac } from './web-crypto.ts';

export type SignOptions = { now?: (() => number) | undefined };

/**
 * Returns a webhook as Quittance would send it, for testing a receiver: `body`, and the `headers` that `verify` accepts. `now` returns the
 * time of the attempt (like `Date.now`). Rejects with a TypeError for an invalid secret or event.
 */
export async function sign(
  event: Pick<WebhookEvent, 'id'> & object,
  secret: string,
  { now = Date.now }: SignOptions = {},
) {
  if (!/^[\w-]{1,100}$/.test(event.id)) throw new TypeError('the event needs an id');
  const [key] = readSecrets(secret);
  const body = JSON.stringify(event);
  const timestamp = String(Math.floor(now() / 1000));
  const message = new TextEncoder().encode(`${event.id}.${timestamp}.${body}`);
  const mac = await (await createHmac(key as Uint8Array<ArrayBuffer>))(message);
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': event.id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${btoa(String.fromCharCode(...mac))}`,
      'webhook-protocol': 'v2',
    },
  };
}
