import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** The doctor asks the service through its public URL, and each proves to the other that it works on the same ledger. */
export const PROBE_PATH = '/probe';
/** `NONCE.PROOF`, both in hex. */
export const PROBE_HEADER = 'x-quittance-probe';

/** Between the two events of the answer. */
export const PROBE_PAUSE_MS = 500;

/**
 * What the first event says. `proof`: that of the service. `forwarded`: what became of the X-Forwarded-For that the doctor made up on its
 * way: the service saw `none`, the same, or another one. `isProxyTrusted`: whether who sent the request is a trusted proxy.
 */
export type ProbeAnswer = { proof: string; forwarded: 'none' | 'same' | 'other'; isProxyTrusted: boolean };

/** An address of the documentation (RFC 5737), which nobody has. */
export const MADE_UP_CLIENT = '192.0.2.77';

/** The proof of one side that it knows the id of the ledger; the other side's is another one. */
export function proveProbe(ledgerId: string, side: 'doctor' | 'service', nonce: string): string {
  return bytesToHex(hmac(sha256, utf8ToBytes(ledgerId), utf8ToBytes(`quittance probe\n${side}\n${nonce}`)));
}

const ASKED = /^([0-9a-f]{32})\.([0-9a-f]{64})$/;

/** The nonce of who proves that it knows the ledger; `null` for anybody else. */
export function readProbe(ledgerId: string, header: string): string | null {
  const [, nonce = '', proof = ''] = ASKED.exec(header) ?? [];
  return proof !== '' && proof === proveProbe(ledgerId, 'doctor', nonce) ? nonce : null;
}

/** The first event of an answer; `null` where it is none. */
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
