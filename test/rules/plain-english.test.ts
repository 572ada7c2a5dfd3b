import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import RULES from './plain-english.json' with { type: 'json' };
import { GENERATED } from './reference-pages.ts';
import { SOURCE_FOLDERS } from './source-tree.ts';

const ROOT = join(import.meta.dirname, '../..');

type Place = 'strings' | 'comments' | 'docs';
const PLACES: readonly Place[] = ['strings', 'comments', 'docs'];

/**
 * How often a phrase of `plain-english.json` may still occur. Reviewing finds more than counting does: a budget may only fall, although a
 * phrase that is right in its place counts too. `STYLE.md` says how to write instead.
 */
const BUDGETS: Record<string, readonly [strings: number, comments: number, docs: number]> = {
  'for-ever': [0, 0, 3],
  anew: [0, 0, 2],
  told: [0, 1, 4],
  'tells-of': [0, 0, 1],
  stands: [1, 2, 2],
  away: [0, 0, 0],
  nobody: [0, 5, 2],
  whoever: [0, 3, 3],
  'go-on': [0, 0, 2],
  'all-the-same': [0, 0, 0],
  besides: [0, 3, 0],
  'is-no': [0, 1, 2],
  'of-ours': [0, 1, 2],
  takes: [1, 15, 3],
  'makes-anew': [3, 4, 4],
  comes: [2, 5, 0],
  look: [1, 3, 1],
  'what-subject': [0, 5, 1],
  'at-hand': [0, 0, 0],
  vouch: [2, 0, 8],
  mend: [0, 0, 1],
  'heed-bear': [1, 0, 0],
  'becomes-of': [0, 0, 2],
  'for-because': [0, 31, 7],
  'put-right': [0, 0, 0],
  former: [0, 0, 1],
  'in-place-of': [0, 0, 1],
  'in-all': [0, 0, 0],
  'knows-that-there-is': [0, 4, 1],
  'a-hole': [0, 0, 0],
  desk: [0, 0, 0],
};

/** Returns the sentences of a TypeScript file: its comments, and strings of three words or more, except SQL and imports. */
function proseOf(path: string, text: string): { strings: string[]; comments: string[] } {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const strings: string[] = [];
  const comments = new Map<number, string>();
  const visit = (node: ts.Node): void => {
    const around = [
      ...(ts.getLeadingCommentRanges(text, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.end) ?? []),
    ];
    for (const { pos, end } of around) comments.set(pos, text.slice(pos, end));
    if (ts.isImportDeclaration(node)) return;
    const isText =
      ts.isStringLiteral(node) ||
      ts.isNoSubstitutionTemplateLiteral(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddle(node) ||
      ts.isTemplateTail(node);
    if (isText && /\w \w+ \w/.test(node.text) && !SQL.test(node.text)) strings.push(node.text);
    node.forEachChild(visit);
  };
  visit(source);
  return { strings, comments: [...comments.values()] };
}

const SQL =
  /^\s*(select|insert|update|delete|with|create|alter|grant|lock|values|union|and|where|from|join|left|order)\b/;

const pathsBelow = (folder: string, isMeant: (path: string) => boolean) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter(isMeant);
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

type Text = { path: string; text: string };

/** Reads all text that people see, by place. */
function readProse(): Record<Place, Text[]> {
  const prose: Record<Place, Text[]> = { strings: [], comments: [], docs: [] };
  const isSource = (path: string) => path.endsWith('.ts') && !path.endsWith('.test.ts');
  for (const path of SOURCE_FOLDERS.flatMap((folder) => pathsBelow(folder, isSource))) {
    const { strings, comments } = proseOf(path, read(path));
    prose.strings.push(...strings.map((text) => ({ path, text })));
    prose.comments.push(...comments.map((text) => ({ path, text })));
  }
  // The text of generated pages is counted in the code that generates them.
  const isPage = (path: string) =>
    path.endsWith('.md') &&
    !/decisions|measurements|node_modules/.test(path) &&
    !GENERATED.includes(path.replace(/^docs\//, ''));
  for (const path of ['README.md', 'CONTRIBUTING.md', 'STYLE.md', ...pathsBelow('docs', isPage)])
    prose.docs.push({ path, text: read(path) });
  return prose;
}

/** Returns each occurrence of a phrase with its context. */
const find = (texts: readonly Text[], pattern: string) =>
  texts.flatMap(({ path, text }) =>
    [...text.matchAll(new RegExp(pattern, 'g'))].map(
      ({ index, 0: { length } }) => `${path}: …${text.slice(Math.max(0, index - 30), index + length + 30)}…`,
    ),
  );

const prose = readProse();
const found = new Map(RULES.map(({ rule, pattern }) => [rule, PLACES.map((place) => find(prose[place], pattern))]));

test.each(RULES)('"$rule" is said no more often than before; say instead: $instead', ({ rule }) => {
  for (const [at, hits] of (found.get(rule) ?? []).entries()) {
    const budget = BUDGETS[rule]?.[at] ?? 0;
    expect(hits.length > budget ? hits : [], `${PLACES[at]} may have ${budget}`).toEqual([]);
  }
});

test('a budget is lowered once clearly fewer are left', () => {
  const loose = Object.entries(BUDGETS).filter(([rule, budgets]) =>
    budgets.some((budget, at) => budget > 5 + 1.2 * (found.get(rule)?.[at]?.length ?? 0)),
  );
  expect(loose.map(([rule]) => [rule, found.get(rule)?.map(({ length }) => length)])).toEqual([]);
});

test('a phrase is found in strings, templates and comments, and neither in SQL nor in a name', () => {
  const { strings, comments } = proseOf(
    'a.ts',
    `/** It stands here. */ const stands = 'select stands from a'; // told of it
     throw new Error(\`\${stands} is said anew here\` + 'nobody is told');`,
  );
  const count = (texts: string[], pattern: string) =>
    find(
      texts.map((text) => ({ path: 'a.ts', text })),
      pattern,
    ).length;
  expect(count(strings, '\\bstands\\b')).toBe(0);
  expect([count(strings, '\\banew\\b'), count(strings, '\\bnobody\\b')]).toEqual([1, 1]);
  expect([count(comments, '\\bstands\\b'), count(comments, '\\btold of\\b')]).toEqual([1, 1]);
});
