import { createHmac, timingSafeEqual } from 'node:crypto';
import { base32nopad } from '@scure/base';
import type { UnixMs } from '../../domain/time.ts';

/** RFC 6238 with SHA-1, six digits and 30 s: the one combination that every authenticator app knows. */
const PERIOD_MS = 30_000;
const DIGITS = 6;
/** Of SHA-1, as RFC 4226 recommends. */
export const TOTP_SECRET_BYTES = 20;

/**
 * The period of a code that fits now, or in the period before or after: clocks of telephones are off. `null` for any other text. Compares all
 * three in constant time.
 */
export function totpStepOf(secret: Uint8Array, code: string, now: UnixMs): number | null {
  const present = Math.floor(now / PERIOD_MS);
  const given = Buffer.alloc(DIGITS);
  if (TOTP_CODE.test(code)) given.write(code);
  let found: number | null = null;
  for (const step of [present - 1, present, present + 1]) {
    if (timingSafeEqual(given, Buffer.from(totpCode(secret, step)))) found = step;
  }
  return found;
}

/** What a code of an app looks like; anything else is taken for a recovery code. */
export const TOTP_CODE = /^\d{6}$/;

/** The code of a period (RFC 4226, section 5.3). */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** The secret as people type it, and the link that an authenticator app reads from a QR code. */
export function totpLink(secret: Uint8Array, { login, issuer }: { login: string; issuer: string }) {
  const text = base32nopad.encode(secret);
  const label = [issuer, login].map(encodeURIComponent).join(':');
  return { secret: text, uri: `otpauth://totp/${label}?secret=${text}&issuer=${encodeURIComponent(issuer)}` };
}
