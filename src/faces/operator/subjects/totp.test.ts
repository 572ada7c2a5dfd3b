import { expect, test } from 'vitest';
import { unixMs } from '../../../core/domain/time.ts';
import { totpCode, totpLink, totpStepOf } from './totp.ts';

const SECRET = Buffer.from('12345678901234567890');

// From RFC 6238, appendix B, SHA-1: the last six of the eight digits.
test.each([
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
])('at %i s the code is that of RFC 6238: %s', (seconds, code) => {
  expect(totpCode(SECRET, Math.floor(seconds / 30))).toBe(code);
  expect(totpStepOf(SECRET, code, unixMs(seconds * 1000))).toBe(Math.floor(seconds / 30));
});

test('a code counts one period early and late, and anything but six digits never', () => {
  const now = unixMs(1_111_111_111_000);
  const present = Math.floor(now / 30_000);
  const stepOf = (offset: number) => totpStepOf(SECRET, totpCode(SECRET, present + offset), now);
  expect([-2, -1, 0, 1, 2].map(stepOf)).toEqual([null, present - 1, present, present + 1, null]);
  for (const text of ['', '05047', '0504711', ' 050471', '٠٥٠٤٧١', '05047x'])
    expect(totpStepOf(SECRET, text, now)).toBeNull();
});

test('an authenticator app reads the link', () => {
  const { secret, uri } = totpLink(SECRET, { login: 'ann@shop.example', issuer: 'Quittance shop' });
  expect(secret).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
  expect(uri).toBe(`otpauth://totp/Quittance%20shop:ann%40shop.example?secret=${secret}&issuer=Quittance%20shop`);
});
