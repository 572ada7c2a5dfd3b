import { createHmac, timingSafeEqual } from 'node:crypto';

/** The headers of one attempt, as defined by Standard Webhooks. */
export type SignedHeaders = {
  'content-type': 'application/json';
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
  'webhook-protocol': 'v2';
};

/**
 * Signs one attempt: HMAC-SHA256 over `{id}.{timestamp}.{body}`, once per secret, so that a receiver can use either secret during a
 * rotation. Specification: github.com/standard-webhooks/standard-webhooks. `timestampSeconds` is the time of this attempt. Throws a
 * RangeError if the signed text would be ambiguous, or if a secret is malformed.
 */
export function signWebhook(message: {
  id: string;
  timestampSeconds: number;
  body: string | Uint8Array;
  secrets: readonly string[];
}): SignedHeaders {
  const { id, timestampSeconds, body, secrets } = message;
  if (!ID.test(id)) throw new RangeError(`not a webhook id: ${id}`);
  if (!Number.isSafeInteger(timestampSeconds) || timestampSeconds < 1) {
    throw new RangeError(`not a time in seconds: ${timestampSeconds}`);
  }
  if (secrets.length === 0 || secrets.length > MAX_SIGNATURES) {
    throw new RangeError(`a webhook needs 1 to ${MAX_SIGNATURES} secrets, not ${secrets.length}`);
  }
  const timestamp = String(timestampSeconds);
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => signature(parseSecret(secret), id, timestamp, body)).join(' '),
    'webhook-protocol': 'v2',
  };
}

export type Verification =
  | { kind: 'valid'; id: string; timestampSeconds: number }
  | { kind: 'invalid'; reason: string };

/**
 * Verifies a webhook as a receiver should: using the body's raw bytes, before parsing anything. A time more than `toleranceSeconds` away
 * from `nowMs` is refused, so that a recorded request can't be replayed later. Real headers: `webhook-id: evt_01h455vb4pex5vsknk084sn02q`,
 * `webhook-timestamp: 1767225600`, `webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=`.
 */
export function verifyWebhook(
  rawBody: Uint8Array,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  secret: string,
  { nowMs, toleranceSeconds = 300 }: { nowMs: number; toleranceSeconds?: number },
): Verification {
  const key = parseSecret(secret);
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const signatures = headers['webhook-signature'];
  if (typeof id !== 'string' || !ID.test(id)) return invalid('webhook-id is missing or malformed');
  if (typeof timestamp !== 'string' || !TIMESTAMP.test(timestamp)) {
    return invalid('webhook-timestamp is missing or is not Unix seconds in digits');
  }
  if (typeof signatures !== 'string') return invalid('webhook-signature is missing');
  const apartSeconds = Math.abs(Math.floor(nowMs / 1000) - Number(timestamp));
  if (apartSeconds > toleranceSeconds) {
    return invalid(
      `webhook-timestamp differs from the current time by ${apartSeconds} s, but at most ${toleranceSeconds} s are allowed`,
    );
  }
  const candidates = signatures.split(' ');
  if (candidates.length > MAX_SIGNATURES) return invalid('webhook-signature contains too many signatures');
  const expected = signature(key, id, timestamp, rawBody);
  const matching = candidates.filter((candidate) => isSameText(candidate, expected));
  if (matching.length === 0)
    return invalid('no v1 signature matches: the secret is different, or the body was changed');
  return { kind: 'valid', id, timestampSeconds: Number(timestamp) };
}

/** Creates a signing secret: `whsec_` and 32 random bytes in base64. Outside tests, `random` is `randomBytes` from node:crypto. */
export function createWebhookSecret(random: (size: number) => Uint8Array): string {
  const bytes = random(SECRET_BYTES);
  if (bytes.length !== SECRET_BYTES) throw new RangeError(`a webhook secret needs ${SECRET_BYTES} random bytes`);
  return formatSecret(bytes);
}

/** Formats a 24- to 64-byte secret. */
export function formatSecret(bytes: Uint8Array): string {
  return SECRET_PREFIX + Buffer.from(bytes).toString('base64');
}

/** Parses a secret into its bytes. Throws a RangeError if the secret is invalid; the message doesn't contain the secret. */
export function parseSecret(secret: string): Buffer {
  const bytes = SECRET.test(secret) ? Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64') : Buffer.alloc(0);
  // Compares the text as well, because several base64 texts can decode to the same bytes.
  const isSecret =
    bytes.length >= SECRET_BOUNDS.min && bytes.length <= SECRET_BOUNDS.max && formatSecret(bytes) === secret;
  if (!isSecret) throw new RangeError('a webhook secret is whsec_ and the base64 of 24 to 64 bytes; this one is not');
  return bytes;
}

const SECRET_PREFIX = 'whsec_';
/** The size of the secrets that Quittance creates. Imported ones may have 24 to 64 bytes, as Standard Webhooks recommends. */
const SECRET_BYTES = 32;
const SECRET_BOUNDS = { min: 24, max: 64 };
const SECRET = /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/;
/** Contains no dot, because a dot separates the signed parts. */
const ID = /^[A-Za-z0-9_-]{1,255}$/;
const TIMESTAMP = /^[1-9][0-9]{0,11}$/;
/** During a rotation there are two signatures. Many more than this would only cost the receiver time. */
const MAX_SIGNATURES = 16;

function signature(key: Buffer, id: string, timestamp: string, body: string | Uint8Array): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

/** Compares texts of equal length in constant time. A signature's length isn't secret. */
export function isSameText(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function invalid(reason: string): Verification {
  return { kind: 'invalid', reason };
}
