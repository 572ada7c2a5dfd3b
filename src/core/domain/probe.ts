import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/**
 * The doctor sends a request to this path of the public URL. The doctor and the service then prove to each other that they use the same
 * ledger.
 */
export const PROBE_PATH = '/probe';
/** The value is `NONCE.PROOF`, both in hex. */
export const PROBE_HEADER = 'x-quittance-probe';

export const PROBE_PAUSE_MS = 500;

/**
 * The first event in the response. `proof` is the service's proof. `forwarded` says whether the doctor's made-up X-Forwarded-For header
 * arrived at the service not at all, unchanged, or changed. `isProxyTrusted` says whether the request's sender is a trusted proxy.
 */
export type ProbeAnswer = { proof: string; forwarded: 'none' | 'same' | 'other'; isProxyTrusted: boolean };

/** An address reserved for documentation (RFC 5737). */
export const MADE_UP_CLIENT = '192.0.2.77';

/** Returns one side's proof that it knows the ledger's id. The two sides have different proofs. */
export function proveProbe(ledgerId: string, side: 'doctor' | 'service', nonce: string): string {
  return bytesToHex(hmac(sha256, utf8ToBytes(ledgerId), utf8ToBytes(`quittance probe\n${side}\n${nonce}`)));
}

const ASKED = /^([0-9a-f]{32})\.([0-9a-f]{64})$/;

/** Returns the caller's nonce if the caller proves that it knows the ledger, otherwise `null`. */
export function readProbe(ledgerId: string, header: string): string | null {
  const [, nonce = '', proof = ''] = ASKED.exec(header) ?? [];
  return proof !== '' && proof === proveProbe(ledgerId, 'doctor', nonce) ? nonce : null;
}

/** Returns the first event in a response, or `null` if there's none. */
export function readProbeAnswer(text: string): ProbeAnswer | null {
  const [, data = ''] = /^event: probe\ndata: (\{.*\})$/m.exec(text) ?? [];
  try {
    const { proof, forwarded, isProxyTrusted } = JSON.parse(data) as Partial<Record<keyof ProbeAnswer, unknown>>;
    const isWhole = typeof proof === 'string' && typeof isProxyTrusted === 'boolean';
    if (!isWhole || (forwarded !== 'none' && forwarded !== 'same' && forwarded !== 'other')) return null;
    return { proof, forwarded, isProxyTrusted };
  } catch {
    return null;
  }
}
