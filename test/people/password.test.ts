import { expect, test } from 'vitest';
import { deriveByScrypt, hashPassword, isPassword } from '../../src/faces/operator/people/password.ts';

test('a password is known by its hash, which is of scrypt with its cost and a salt of its own', async () => {
  const [stored, other] = await Promise.all(['a heron stands', 'a heron stands'].map((text) => hashPassword(text)));
  expect(stored).toMatch(/^scrypt\$15\$8\$3\$[A-Za-z0-9+/]{22}==\$[A-Za-z0-9+/]{43}=$/);
  expect(other).not.toBe(stored);
  expect(await isPassword('a heron stands', stored ?? '', deriveByScrypt)).toBe(true);
  expect(await isPassword('a heron stood', stored ?? '', deriveByScrypt)).toBe(false);
  expect(await isPassword('a heron stands', null, deriveByScrypt)).toBe(false);
});

test('the same letters written in two ways are one password', async () => {
  const stored = await hashPassword('Grüße aus Köln'.normalize('NFD'));
  expect(await isPassword('Grüße aus Köln'.normalize('NFC'), stored, deriveByScrypt)).toBe(true);
});
