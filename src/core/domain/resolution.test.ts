import { expect, test } from 'vitest';
import { noteProblem, RESOLUTIONS, readResolution } from './resolution.ts';

test('what can be done about a transfer is one of four', () => {
  expect(RESOLUTIONS).toEqual(['refunded', 'fulfilled-manually', 'own-deposit', 'kept']);
  expect(RESOLUTIONS.map(readResolution)).toEqual(RESOLUTIONS);
  expect(['paid', '', 'Kept', 'toString'].map(readResolution)).toEqual([null, null, null, null]);
});

test('a former name means the resolution that has another name now', () => {
  expect(['credited-outside', 'ignored'].map(readResolution)).toEqual(['fulfilled-manually', 'kept']);
});

test('a note has up to 2000 characters, each counted once', () => {
  for (const note of ['', 'x', 'é 漢字 🍵 — “quoted”', '🍵'.repeat(2000)]) expect(noteProblem(note)).toBeNull();
  expect(noteProblem('🍵'.repeat(2001))).toBe('has 2001 characters: use at most 2000');
});

test.each(['a\nb', '\t', '\0', '\u007f', '\u0085', '\u2028', '\u2029', '\ud83d'])(
  'a note with %j is not one line',
  (note) => {
    expect(noteProblem(`refunded ${note}`)).toBe(
      'contains a control character, such as a line break: write it on one line',
    );
  },
);
