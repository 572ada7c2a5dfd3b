import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { importedFile } from './source-tree.ts';

/** This many test files run in less than two minutes on two cores. */
const MOST = 20;

/**
 * Returns the tests of `npm test` that cover changed files: all rules, the changed tests, then the tests that reach a changed file through
 * the fewest imports. A file that no module imports, such as a page or a migration, is covered by tests that name it or its folder.
 */
export function relatedTests(root: string, changed: readonly string[]): string[] {
  const texts = new Map<string, string>();
  for (const folder of ['src', 'packages', 'test'])
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }))
      if (path.endsWith('.ts') && !path.includes('node_modules'))
        texts.set(posix.join(folder, path), readFileSync(join(root, folder, path), 'utf8'));
  const importers = new Map<string, string[]>();
  for (const [path, text] of texts)
    for (const [, specifier = ''] of text.matchAll(/(?:from|import\()\s*'([.@][^']+)'/g)) {
      const to = importedFile(path, specifier);
      if (to !== null) importers.set(to, [...(importers.get(to) ?? []), path]);
    }
  const naming = (path: string) =>
    [...texts]
      .filter(([, text]) => text.includes(basename(path)) || text.includes(`/${posix.dirname(path)}/'`))
      .map(([of]) => of);
  const found = new Set(changed);
  for (const path of found) {
    const next = path.endsWith('.ts') ? importers.get(path) : naming(path);
    for (const each of next ?? []) found.add(each);
  }
  const isTest = (path: string) =>
    /^(src|packages|test)\/(?!(long|ha|image|deb|clients|plugins)\/).*\.test\.ts$/.test(path);
  const rules = [...texts.keys()].filter((path) => path.startsWith('test/rules/') && isTest(path));
  return [...new Set([...[...found].filter(isTest).slice(0, MOST), ...rules])].filter((path) => texts.has(path));
}

/** Returns the uncommitted files, or else those of the last commit. With `since`, returns everything after that commit. */
export function changedFiles(root: string, since?: string): string[] {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);
  const open = [...git('diff', '--name-only', since ?? 'HEAD'), ...git('ls-files', '--others', '--exclude-standard')];
  return open.length > 0 ? open : git('diff', '--name-only', 'HEAD~1', 'HEAD');
}
