import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { twoWayPairs } from './import-graph.ts';
import { measureSource } from './measure.ts';
import { readSource, readSourceTree } from './source-tree.ts';

const body = (lines: number) => `${'  step();\n'.repeat(lines)}`;

function measure(texts: Record<string, string>) {
  return measureSource(Object.entries(texts).map(([path, text]) => readSource(path, text)));
}

test('the lengths of files are counted by nearest rank', () => {
  const { fileLines } = measure({ 'src/a.ts': body(351), 'src/b.ts': body(350), 'src/c.ts': body(7) });
  expect(fileLines).toEqual({ median: 350, p90: 351, max: 351 });
});

test('a cycle is found through imports of types, values, re-exports and late ones', () => {
  const { importCycles } = measure({
    'src/a.ts': "import type { B } from './b.ts';\n",
    'src/b.ts': "export { c } from './c/c.ts';\n",
    'src/c/c.ts': "const d = import('../d.ts');\n",
    'src/d.ts': "type A = import('./a.ts').A;\nimport './e.ts';\n",
    'src/e.ts': "import 'node:fs';\n",
  });
  expect(importCycles).toEqual([['src/a.ts', 'src/b.ts', 'src/c/c.ts', 'src/d.ts']]);
});

test('two folders that import each other are a pair, even one within the other', () => {
  const { twoWayPairs } = measure({
    'src/cli/main.ts': "import './x/x.ts';\n",
    'src/cli/x/x.ts': "import '../terminal.ts';\nimport '../../store/read.ts';\n",
    'src/cli/terminal.ts': '',
    'src/store/read.ts': "import '@quittance/tron/tron';\n",
    'packages/tron/src/tron.ts': "import type { T } from '../../../src/store/deep/t.ts';\n",
    'src/store/deep/t.ts': '',
  });
  expect(twoWayPairs).toEqual({ fullDepth: ['src/cli <-> src/cli/x'], topLevel: ['packages/tron <-> src/store'] });
});

test('a running service imports what it may come to, and neither commands nor the sandbox', () => {
  const { importedByService } = measure({
    'src/server/main.ts': "import './service.ts';\nawait import('../cli/sandbox.ts');\nawait import('./late.ts');\n",
    'src/server/service.ts': "import type { A } from './a.ts';\n",
    'src/server/a.ts': 'export type A = 1;\n',
    'src/server/late.ts': '',
    'src/cli/sandbox.ts': body(10),
  });
  expect(importedByService).toEqual({ fromMain: { files: 4, lines: 5 }, fromService: { files: 2, lines: 2 } });
});

test('the largest flat folder is that of most files directly within it', () => {
  const files = { 'src/a.ts': '', 'src/b/b.ts': '', 'src/b/c.ts': '', 'src/b/d/d.ts': '' };
  expect(measure(files).largestFlatFolder).toEqual({ folder: 'src/b', files: 2 });
});

test('no two folders of the source import each other', () => {
  expect(twoWayPairs(readSourceTree(resolve(import.meta.dirname, '../..')))).toEqual([]);
});

test('of the exported functions those are counted that one other file takes', () => {
  const files = {
    'src/a.ts': 'export function one() {}\nexport function two() {}\nexport function none() {}\nfunction own() {}\n',
    'src/b.ts': "import { one, two } from './a.ts';\n",
    'src/c.ts': "import { two as second } from './a.ts';\n",
  };
  expect(measure(files).takenOnce).toEqual({ functions: 3, once: 1 });
});
