import { expect, test } from 'vitest';
import { BOUNDS, measurePages, readWritten, sentencesOf } from './measure-docs.ts';

const pages = readWritten();

test('the pages that people write stay short, and their sentences and cells too', () => {
  const { words, longestPage, wordsOfSentence } = measurePages(pages);
  expect(pages.length).toBeGreaterThan(40);
  expect(words).toBeLessThanOrEqual(BOUNDS.words);
  expect([longestPage, longestPage.words <= BOUNDS.wordsOfPage]).toEqual([longestPage, true]);
  expect(wordsOfSentence).toBeLessThanOrEqual(BOUNDS.wordsOfSentence);
});

test('guides and tutorials show commands, and every table cell is short', () => {
  const guides = measurePages(pages.filter(({ path }) => /^(guides|start)\//.test(path)));
  expect(guides.blocks).toBeGreaterThanOrEqual(BOUNDS.blocksOfGuides);
  expect(measurePages(pages).longCells.count).toBe(0);
});

test('a page is measured by its prose, its cells and its blocks', () => {
  const text = '# A b\n\nOne two. Three `four five` [six seven](x.md).\n\n| a | b c |\n|---|---|\n\n```sh\nls\n```\n';
  expect(sentencesOf(text)).toEqual(['One two.', 'Three code six seven.']);
  expect(measurePages([{ path: 'a.md', text }])).toMatchObject({ pages: 1, wordsOfSentence: 3, longCells: { of: 2 } });
});
