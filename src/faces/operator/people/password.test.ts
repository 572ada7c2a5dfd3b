import { expect, test } from 'vitest';
import { createRecoveryCodes, recoveryCodeHash } from '../subjects/sign-in.ts';
import { passwordProblem } from './password.ts';

const problemOf = (password: string) => passwordProblem(password, 'annsmith@shop.example');

test.each([
  ...['', 'elevenchars', '🦉'.repeat(11)],
  ...['password1234', 'PASSWORD!!2026', 'Dragon!Dragon!2026', '1qaz2wsx3edc', 'Quittance-2026'],
  ...['123456789012', '098765432109', 'abcdefghijkl', 'qwertyuiop123!', '121212121212', 'aaaaaaaaaaaa'],
  ...['Ann.Smith-2026!', 'é'.repeat(513)],
])('nobody may have the password %j', (password) => {
  expect(problemOf(password)).toMatch(/^(has \d+ characters|is longer|is too common)/);
});

test.each([
  ...[
    'a heron stands in the reeds',
    'dragon heron password reeds',
    'Zk9$wq2!mN7x',
    '🦉🌲🪨💧🌙⭐🔥🌊🍂🐟🦔🌻',
    'пять зелёных уток',
  ],
  'x7#Lm2'.repeat(170),
])('the password %j is taken', (password) => {
  expect(problemOf(password)).toBeNull();
});

test('a recovery code is known however it is typed, and only that one', () => {
  const codes = createRecoveryCodes((bytes) => Buffer.alloc(bytes, 0x42));
  const [code = ''] = codes;
  expect(codes).toHaveLength(10);
  const typed = [code, code.toUpperCase(), code.replaceAll('-', ''), ` ${code.replaceAll('-', ' ')} `];
  for (const text of typed) expect(recoveryCodeHash(text)).toEqual(recoveryCodeHash(code));
  expect(recoveryCodeHash(`1${code.slice(1).replaceAll('1', 'l')}`)).toEqual(recoveryCodeHash(`1${code.slice(1)}`));
  for (const text of ['', '123456', `${code}0`, code.slice(1), code.replace(/.$/, 'u')]) {
    expect(recoveryCodeHash(text)).toBeNull();
  }
});
