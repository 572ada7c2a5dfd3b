import { expect, test } from 'vitest';
import { assertNever } from './assert-never.ts';
import { AppError } from './errors.ts';

test('an error has its code, is not retryable unless it is said, and has a cause only where one is given', () => {
  const plain = new AppError('NO_NODE', 'no node is left');
  expect(plain).toMatchObject({ name: 'AppError', code: 'NO_NODE', message: 'no node is left', retryable: false });
  expect('cause' in plain).toBe(false);
  const cause = new Error('refused');
  expect(new AppError('NO_NODE', 'no node is left', { retryable: true, cause })).toMatchObject({
    retryable: true,
    cause,
  });
});

test('a case that the compiler could not see is told with its value', () => {
  expect(() => assertNever({ kind: 'new' } as never)).toThrow('unexpected value: {"kind":"new"}');
});
