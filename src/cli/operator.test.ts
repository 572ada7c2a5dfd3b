import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { readOperator } from './operator.ts';

test('who acts is --by, else who called sudo, else the user of the operating system', () => {
  expect(readOperator(' Ann ', { SUDO_USER: 'bob' })).toBe('Ann');
  expect(readOperator(undefined, { SUDO_USER: 'bob' })).toBe('bob');
  expect(readOperator(undefined, {})).toBe(userInfo().username);
});

test.each(['', '  ', 'a\nb', 'x'.repeat(201)])('--by %j is refused', (name) => {
  expect(() => readOperator(name, {})).toThrow('--by');
});
