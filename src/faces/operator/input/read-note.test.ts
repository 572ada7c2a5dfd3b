import { expect, test } from 'vitest';
import type { FieldProblem } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { readNote } from './readers.ts';

function problemsOf(text: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  readNote(text, problems);
  return problems;
}

test('a note is trimmed, and none is an empty one', () => {
  const problems: FieldProblem[] = [];
  expect(readNote(' old wallet ', problems)).toBe('old wallet');
  expect(readNote(undefined, problems)).toBe('');
  expect(problems).toEqual([]);
});

test.each([
  ['4f'.repeat(32), 'a private key', 'tx 3a4f…'],
  ['legal winner thank year wave sausage worth useful legal winner thank yellow', 'a seed phrase', 'with punctuation'],
])('a note that looks like a secret is refused without repeating it, with a way out', (text, kind, wayOut) => {
  const [problem, ...others] = problemsOf(text);
  expect(others).toEqual([]);
  expect(problem?.subject).toEqual(say`${{ field: 'note' }}`);
  expect(String(problem?.message)).toContain(`this looks like ${kind}`);
  expect(String(problem?.message)).toContain(wayOut);
  expect(String(problem?.message)).not.toMatch(/4f4f4|sausage/);
});

test.each(['a\nb', 'a\u0000b', 'x'.repeat(2001)])(
  'a note of several lines or more than 2,000 characters is refused',
  (text) => {
    expect(problemsOf(text)).toMatchObject([{ subject: say`${{ field: 'note' }}` }]);
  },
);
