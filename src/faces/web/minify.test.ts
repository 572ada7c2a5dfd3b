import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../core/runtime/package.ts';
import { shrinkScript, shrinkStyle } from './assets.ts';

const read = (name: string) => readFileSync(new URL(`public/${name}`, PACKAGE_ROOT), 'utf8');

/** The tokens of a script. Line breaks count where they end a statement. */
const tokensOf = (text: string) => ts.transpile(text, { target: ts.ScriptTarget.ESNext, removeComments: true });

test.each(['checkout.js', 'console.js'])('%s is the same program without what is only for its readers', (name) => {
  const text = read(name);
  const shrunk = shrinkScript(text);
  expect(tokensOf(shrunk)).toBe(tokensOf(text));
  expect(shrunk).not.toMatch(/^\s|^\/\/|\n\n/m);
  expect(shrunk.length).toBeLessThan(text.length * 0.85);
});

/** Words, strings and punctuation, without the whitespace between them. */
const partsOf = (text: string) =>
  text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/;(\s*\})/g, '$1')
    .match(/"[^"]*"|[^\s{};,>:"]+|[{};,>:]/g);

test.each(['tokens.css', 'checkout.css', 'console.css'])(
  '%s says the same without comments and spare whitespace',
  (name) => {
    const text = read(name);
    const shrunk = shrinkStyle(text);
    expect(partsOf(shrunk)).toEqual(partsOf(text));
    expect(shrunk).not.toMatch(/\/\*|\n| {2}|; |\{ | \{/);
  },
);

test('whitespace that means something stays', () => {
  expect(
    shrinkStyle(
      '@media screen and (a: b) {\n  p  a,\n  q > b {\n    width: calc(1px + 2px); content: " (" attr(title) ")";\n  }\n}\n',
    ),
  ).toBe('@media screen and (a:b){p a,q>b{width:calc(1px + 2px);content:" (" attr(title) ")"}}');
});
