import { refuse } from './refusal.ts';
import { decodeBase64 } from './secret.ts';

/** A `Headers` object, or the headers of a Node.js request. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export type SignedHeaders = { id: string; timestamp: string; signatures: Uint8Array[] };

/** An id contains no dot, because a dot separates the signed parts. Otherwise an attacker could move bytes from one part to the next. */
const ID = /^[A-Za-z0-9_-]{1,255}$/;
/** `Number` and `parseInt` would also accept signs, spaces, fractions and exponents, which are never part of a signed timestamp. */
const TIMESTAMP = /^[1-9][0-9]{0,11}$/;
const SIGNATURE = /^[a-z0-9]{1,8},[\w+/=-]{1,200}$/;
/** During a rotation there are two signatures. Any more would only cost time. */
const MAX_SIGNATURES = 16;
const MAX_SIGNATURE_HEADER = 4096;

/** Real values: `evt_01h455vb4pex5vsknk084sn02q`, `1767225600`, `v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=`. */
export function readHeaders(headers: WebhookHeaders): SignedHeaders {
  const id = required(headers, 'webhook-id');
  if (!ID.test(id)) return refuse('HEADER_MALFORMED', 'webhook-id must be 1 to 255 letters, digits, _ and -.');
  const timestamp = required(headers, 'webhook-timestamp');
  if (!TIMESTAMP.test(timestamp)) {
    return refuse('HEADER_MALFORMED', 'webhook-timestamp must be Unix seconds, in digits only.');
  }
  return { id, timestamp, signatures: readSignatures(required(headers, 'webhook-signature')) };
}

/** Returns the id in the header, or null if the header is missing, repeated or malformed. */
export function findId(headers: WebhookHeaders): string | null {
  const [id, ...others] = valuesOf(headers, 'webhook-id');
  return typeof id === 'string' && others.length === 0 && ID.test(id) ? id : null;
}

/** Returns the signatures of version 1, the only version so far. Signatures of other versions are ignored. */
function readSignatures(header: string): Uint8Array[] {
  const items = header.length > MAX_SIGNATURE_HEADER ? [] : header.split(' ');
  if (items.length === 0 || items.length > MAX_SIGNATURES) {
    return refuse('HEADER_MALFORMED', `webhook-signature must contain 1 to ${MAX_SIGNATURES} signatures.`);
  }
  const signatures = items.flatMap((item) => {
    const bytes = item.startsWith('v1,') ? decodeBase64(item.slice(3)) : null;
    const isReadable = item.startsWith('v1,') ? bytes?.length === 32 : SIGNATURE.test(item);
    if (!isReadable) {
      return refuse('HEADER_MALFORMED', 'webhook-signature must contain "v1," and the base64 of 32 bytes.');
    }
    return bytes ?? [];
  });
  if (signatures.length === 0)
    return refuse('HEADER_MALFORMED', 'webhook-signature contains no signature of version v1.');
  return signatures;
}

function required(headers: WebhookHeaders, name: string): string {
  const values = valuesOf(headers, name);
  if (values.length === 0) return refuse('HEADER_MISSING', `The header ${name} is missing.`);
  const [value] = values;
  // If repeated headers were joined by ", ", the format checks reject them, because no valid value contains that.
  if (values.length > 1 || typeof value !== 'string') {
    return refuse('HEADER_MALFORMED', `The header ${name} was sent more than once.`);
  }
  return value;
}

function valuesOf(headers: WebhookHeaders, name: string): unknown[] {
  if (isHeaders(headers)) return [headers.get(name)].filter((value) => value !== null);
  return Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name && value !== undefined ? [value] : [],
  );
}

function isHeaders(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}
