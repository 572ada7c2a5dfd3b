import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { loadedFrom } from './import-graph.ts';
import { ROLES } from './measure.ts';
import { readSourceTree } from './source-tree.ts';

const files = readSourceTree(resolve(import.meta.dirname, '../..'));
const foldersLoadedBy = (roles: keyof typeof ROLES) =>
  new Set(loadedFrom(ROLES[roles], files).map(({ path }) => path.split('/').slice(0, 3).join('/')));

test('the role watcher loads no face but the server of metrics', () => {
  expect([...foldersLoadedBy('watcher')].filter((folder) => folder.startsWith('src/faces/'))).toEqual([
    'src/faces/web',
  ]);
});

test('the role webhooks loads what it sends to operators, and no other face', () => {
  expect([...foldersLoadedBy('webhooks')].filter((folder) => folder.startsWith('src/faces/')).sort()).toEqual([
    'src/faces/notify',
    'src/faces/web',
  ]);
});

test('the role api loads of what operators do only the operations on endpoints, which its keys may use', () => {
  const paths = loadedFrom(ROLES.api, files).map(({ path }) => path);
  const subjects = paths.filter((path) => /^src\/faces\/operator\/[^/]+\//.test(path));
  expect(subjects.sort()).toEqual([
    'src/faces/operator/input/problems.ts',
    'src/faces/operator/input/readers.ts',
    'src/faces/operator/subjects/webhook-sending.ts',
    'src/faces/operator/subjects/webhooks.ts',
    'src/faces/operator/webhooks/diagnose.ts',
  ]);
  expect(paths.filter((path) => /^src\/(faces\/(admin|console|notify)|cli|developer)\//.test(path))).toEqual([]);
});

test('the role console loads the console, so the search sees what it looks for', () => {
  expect(foldersLoadedBy('console')).toContain('src/faces/console');
});
