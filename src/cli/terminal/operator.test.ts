import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { readOperator } from './terminal.ts';

test('who acts is --by, else who called sudo, else the user of the operating system', () => {
  expect(readOperator(' Ann ', { SUDO_USER: 'bob' })).toBe('Ann');
  expect(readOperator(undefined, { SUDO_USER: 'bob' })).toBe('bob');
  expect(readOperator(undefined, {})).toBe(userInfo().username);
});

test.each(['', '  ', 'a\nb', 'x'.repeat(201)])('--by %j is refused', (name) => {
  expect(() => readOperator(name, {})).toThrow('--by');
});

test.each([
  '4f'.repeat(32),
  `tx ${'4f'.repeat(32)}`,
  'legal winner thank year wave sausage worth useful legal winner thank yellow',
])('--by that looks like a secret is refused and not repeated: the record is kept for ever', (name) => {
  expect(() => readOperator(name, {})).toThrow(
    /^--by: this looks like a (private key|seed phrase)\. (?!.*(4f4f|sausage))/,
  );
});
