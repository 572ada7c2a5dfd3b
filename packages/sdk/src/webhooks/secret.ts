/** One secret, or all secrets that are valid during a rotation (at most 8). */
export type Secrets = string | readonly string[];

/** During a rotation there are two secrets. Each costs one HMAC per request, even for forged requests. */
const MAX_SECRETS = 8;
const BOUNDS = { min: 24, max: 64 };

/**
 * Returns the bytes of each secret, which consists of `whsec_` and the standard base64 of 24 to 64 bytes. Throws a TypeError that doesn't
 * contain the secret.
 */
export function readSecrets(secrets: Secrets): Uint8Array<ArrayBuffer>[] {
  const list = typeof secrets === 'string' ? [secrets] : secrets;
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_SECRETS) {
    throw new TypeError(`pass the webhook secret of the endpoint, or an array of 1 to ${MAX_SECRETS} secrets`);
  }
  return list.map(readSecret);
}

function readSecret(secret: unknown): Uint8Array<ArrayBuffer> {
  if (typeof secret === 'string' && secret.startsWith('whsec_')) {
    const bytes = decodeBase64(secret.slice('whsec_'.length));
    if (bytes !== null && bytes.length >= BOUNDS.min && bytes.length <= BOUNDS.max) return bytes;
  }
  throw new TypeError('a webhook secret is whsec_ and the base64 of 24 to 64 bytes');
}

/** Decodes standard base64 with padding, in its canonical form. Returns null for any other text. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(text);
    return btoa(binary) === text ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}
