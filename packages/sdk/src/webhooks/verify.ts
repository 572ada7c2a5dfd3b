import { joinBytes } from '../read-bounded.ts';
import type { WebhookEvent } from '../types.ts';
import { copyBytes, MAX_BODY_BYTES, RAW_BODY_ADVICE } from './raw-body.ts';
import { findId, readHeaders, type SignedHeaders, type WebhookHeaders } from './read-headers.ts';
import { Refusal, refuse } from './refusal.ts';
import { decodeBase64, readSecrets, type Secrets } from './secret.ts';
import { type Diagnosis, WebhookVerificationError } from './verification-error.ts';
import { createHmac, digest, type Hmac, toHex } from './web-crypto.ts';

export type { WebhookHeaders } from './read-headers.ts';

export type VerifyOptions = {
  /** By how many seconds the time of the attempt may differ from `now` (like `Date.now`), in either direction. Default: 300. */
  toleranceSeconds?: number | undefined;
  now?: (() => number) | undefined;
  /** The receiver's project (`prj_…`). Events of other projects are rejected, even if the signature is valid. */
  projectId?: string | undefined;
  /** Whether a string body is the base64 of the bytes, as AWS Lambda passes it: `event.isBase64Encoded`. */
  isBase64Encoded?: boolean | undefined;
};

/**
 * The beginning of the text whose HMAC shows which secret a receiver has. It contains a space, which no webhook-id does, so it can't be
 * used to sign a webhook.
 */
const CHECK_PREFIX = 'quittance diagnostic v1\n';

/**
 * Verifies a webhook and returns its event. `rawBody` contains the bytes as received, or the exact string (`await request.text()`), before
 * any parser. It's parsed only after a signature has matched. Rejects with a WebhookVerificationError, or with a TypeError for an invalid
 * secret or tolerance.
 */
export async function verify(
  rawBody: Uint8Array | ArrayBuffer | string,
  headers: WebhookHeaders,
  secret: Secrets,
  { toleranceSeconds = 300, now = Date.now, projectId, isBase64Encoded }: VerifyOptions = {},
): Promise<WebhookEvent> {
  // With a tolerance of NaN, every time would be accepted.
  if (!(toleranceSeconds >= 0)) throw new TypeError('toleranceSeconds must be 0 or more');
  const hmacs = await Promise.all(readSecrets(secret).map(createHmac));
  const receivedAt = Math.floor(now() / 1000);
  const body = isBase64Encoded && typeof rawBody === 'string' ? decodeBase64(rawBody) : copyBytes(rawBody);
  try {
    if (body === null) return refuse('BODY_NOT_RAW', `The body was passed as ${nameOf(rawBody)}. ${RAW_BODY_ADVICE}.`);
    if (body.length > MAX_BODY_BYTES) {
      return refuse('BODY_TOO_LARGE', `The body has ${body.length} bytes, but the limit is ${MAX_BODY_BYTES}.`);
    }
    const signed = readHeaders(headers);
    checkTime(Number(signed.timestamp), receivedAt, toleranceSeconds);
    await checkSignature(signed, body, hmacs);
    return parseEvent(body, signed.id, projectId);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const diagnosis = await diagnose(receivedAt, body, headers, hmacs);
    throw new WebhookVerificationError(error.code, error.message, diagnosis);
  }
}

function checkTime(timestamp: number, receivedAt: number, toleranceSeconds: number): void {
  const agoSeconds = receivedAt - timestamp;
  if (Math.abs(agoSeconds) <= toleranceSeconds) return;
  const [code, side] =
    agoSeconds > 0 ? (['TIMESTAMP_TOO_OLD', 'before'] as const) : (['TIMESTAMP_TOO_NEW', 'after'] as const);
  refuse(
    code,
    `webhook-timestamp is ${Math.abs(agoSeconds)} s ${side} this machine's time, but the tolerance is ${toleranceSeconds} s. Check the clock.`,
  );
}

async function checkSignature(
  { id, timestamp, signatures }: SignedHeaders,
  body: Uint8Array,
  hmacs: readonly Hmac[],
): Promise<void> {
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const message = joinBytes([prefix, body], prefix.length + body.length);
  const expected = await Promise.all(hmacs.map((hmac) => hmac(message)));
  // Every signature is compared with every secret, so that the duration doesn't reveal which of them matched.
  const matches = signatures.flatMap((given) => expected.filter((right) => isEqual(given, right)));
  if (matches.length > 0) return;
  refuse('SIGNATURE_MISMATCH', 'No signature matches: the secret is wrong, or the body was changed.');
}

/** Compares in constant time. Both have the 32 bytes of an HMAC-SHA256. */
function isEqual(given: Uint8Array, right: Uint8Array): boolean {
  let difference = given.length ^ right.length;
  right.forEach((byte, at) => {
    difference |= byte ^ (given[at] ?? 0);
  });
  return difference === 0;
}

function parseEvent(body: Uint8Array, id: string, projectId?: string): WebhookEvent {
  let event: Partial<WebhookEvent> | null = null;
  try {
    event = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    // It isn't JSON, so it's rejected as malformed below.
  }
  const isEvent = event?.id === id && typeof event.type === 'string' && typeof event.data === 'object';
  if (isEvent && (projectId ?? event?.projectId) === event?.projectId) return event as WebhookEvent;
  return refuse('EVENT_MALFORMED', 'The body is not the event that webhook-id names.');
}

async function diagnose(
  receivedAt: number,
  body: Uint8Array<ArrayBuffer> | null,
  headers: WebhookHeaders,
  hmacs: readonly Hmac[],
): Promise<Diagnosis> {
  const isHashed = body !== null && body.length <= MAX_BODY_BYTES;
  return {
    receivedAt,
    bodySha256: isHashed ? toHex(await digest('SHA-256', body)) : null,
    bodyBytes: body?.length ?? null,
    secretCheck: await checkSecrets(headers, hmacs),
  };
}

async function checkSecrets(headers: WebhookHeaders, hmacs: readonly Hmac[]): Promise<string | null> {
  const id = findId(headers);
  if (id === null) return null;
  const message = new TextEncoder().encode(CHECK_PREFIX + id);
  const checks = await Promise.all(hmacs.map(async (hmac) => toHex(await hmac(message)).slice(0, 8)));
  return checks.join(',');
}

function nameOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  return typeof value === 'object' ? 'a parsed object' : `a ${typeof value}`;
}
