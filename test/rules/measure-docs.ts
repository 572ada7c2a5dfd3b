import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATED } from './reference-pages.ts';

const DOCS = join(import.meta.dirname, '../../docs');

/** The limits of hand-written pages. Generated pages, decisions and measurements don't count. */
export const BOUNDS = { words: 40_000, wordsOfPage: 2500, wordsOfSentence: 20, wordsOfCell: 12, blocksOfGuides: 4 };

export type Page = { path: string; text: string };

export type Measures = {
  pages: number;
  words: number;
  longestPage: { path: string; words: number };
  wordsOfSentence: number;
  /** Table cells above the word limit, out of all cells. */
  longCells: { count: number; of: number };
  /** Code blocks per 1,000 words. */
  blocks: number;
};

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** Reads the hand-written pages, by their paths below docs/. */
export function readWritten(): Page[] {
  const isWritten = (path: string) =>
    path.endsWith('.md') &&
    !/^(decisions|contributing\/measurements)\//.test(path.replaceAll('\\', '/')) &&
    !GENERATED.includes(path);
  return readdirSync(DOCS, { recursive: true, encoding: 'utf8' })
    .filter(isWritten)
    .map((path) => ({ path, text: readFileSync(join(DOCS, path), 'utf8') }));
}

export function measurePages(pages: readonly Page[]): Measures {
  const lengths = pages.map(({ path, text }) => ({ path, words: wordsOf(text) }));
  const [longestPage = { path: '', words: 0 }] = lengths.toSorted((a, b) => b.words - a.words);
  const words = lengths.reduce((sum, each) => sum + each.words, 0);
  const sentences = pages.flatMap(({ text }) => sentencesOf(text)).map(wordsOf);
  const cells = pages.flatMap(({ text }) => cellsOf(text)).map(wordsOf);
  const blocks = pages.reduce((sum, { text }) => sum + (text.match(/^ *```\w/gm)?.length ?? 0), 0);
  return {
    pages: pages.length,
    words,
    longestPage,
    wordsOfSentence: round(sentences.reduce((sum, each) => sum + each, 0) / Math.max(1, sentences.length)),
    longCells: { count: cells.filter((count) => count > BOUNDS.wordsOfCell).length, of: cells.length },
    blocks: round((blocks * 1000) / Math.max(1, words)),
  };
}

const round = (value: number) => Math.round(value * 10) / 10;

const withoutBlocks = (text: string) => text.replace(/^ *```[\s\S]*?^ *```$/gm, '');
/** A link counts by its words, inline code as one word. */
const shownOf = (text: string) => text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/`[^`]*`/g, 'code');

/** Returns the sentences of paragraphs and lists, without headings and tables. */
export function sentencesOf(text: string): string[] {
  const prose = shownOf(withoutBlocks(text))
    .split('\n')
    .filter((line) => !/^(#|\s*\||>?\s*$)/.test(line))
    .map((line) => line.replace(/^\s*(?:[-*>]|\d+\.)\s+(?:\[[ x]\]\s*)?/, ''));
  return prose.flatMap((line) => line.split(/(?<=[.!?:])["”)*]*\s+/)).filter((each) => wordsOf(each) > 0);
}

function cellsOf(text: string): string[] {
  const rows = shownOf(withoutBlocks(text))
    .split('\n')
    .filter((line) => /^\s*\|(?!\s*-)/.test(line));
  return rows.flatMap((row) => row.trim().slice(1, -1).split('|'));
}

/** Measures the pages of each folder. */
export function measureFolders(): ReadonlyMap<string, Measures> {
  const pages = readWritten();
  const folderOf = ({ path }: Page) => path.split('/').slice(0, -1).join('/') || '.';
  const folders = [...new Set(pages.map(folderOf))].toSorted();
  const measured = folders.map((folder) => [folder, measurePages(pages.filter((page) => folderOf(page) === folder))]);
  return new Map([...(measured as [string, Measures][]), ['together', measurePages(pages)]]);
}

if (process.argv[1] === import.meta.filename) {
  for (const [folder, { pages, words, longestPage, wordsOfSentence, longCells, blocks }] of measureFolders()) {
    const parts = [
      `${pages} pages`,
      `${words} words`,
      `longest ${longestPage.path} ${longestPage.words}`,
      `${wordsOfSentence} words a sentence`,
      `${longCells.count} of ${longCells.of} cells over ${BOUNDS.wordsOfCell} words`,
      `${blocks} code blocks for each 1,000 words`,
    ];
    process.stdout.write(`${folder}: ${parts.join(', ')}\n`);
  }
}
