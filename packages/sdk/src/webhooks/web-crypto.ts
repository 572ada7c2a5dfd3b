type Subtle = (typeof globalThis.crypto)['subtle'];

/** Computes HMAC-SHA256 with one key. */
export type Hmac = (message: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>;

export async function createHmac(key: Uint8Array<ArrayBuffer>): Promise<Hmac> {
  const subtle = await findSubtle();
  const imported = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return async (message) => new Uint8Array(await subtle.sign('HMAC', imported, message));
}

export async function digest(
  name: 'SHA-256' | 'SHA-512',
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await (await findSubtle()).digest(name, bytes));
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export async function findSubtle(): Promise<Subtle> {
  // Some runtimes have no `globalThis.crypto`, although the types say that all of them do.
  const known = (globalThis.crypto as { subtle?: Subtle } | undefined)?.subtle;
  if (known !== undefined) return known;
  try {
    // Only Node.js 18 reaches this line. Bundlers for workers leave this import unchanged, because of the comments or because it may fail.
    const { webcrypto } = await import(/* webpackIgnore: true */ /* @vite-ignore */ 'node:crypto');
    return webcrypto.subtle;
  } catch {
    throw new Error('this runtime has no Web Crypto, which the SDK needs to verify signatures');
  }
}
