import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, inject, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Three usual changes, as patches of the files that a person edits: a note on API keys that can change later, an alarm about keys that soon
 * expire, and a cause of wrong amounts with its scenario. Recorded files, generated pages and the changelog aren't part of them. `files` and
 * `tests` are their numbers, which may only fall.
 */
const CHANGES = [
  {
    name: 'field',
    files: 4,
    tests: 1,
    recipes: ['Add a field to an operation', 'Add an operation', 'Add a console page'],
  },
  { name: 'alarm', files: 3, tests: 0, recipes: ['Add an alarm'] },
  { name: 'cause', files: 5, tests: 1, recipes: ['Add a cause and its scenario'] },
];

const patchOf = (name: string) => `test/changes/${name}.patch`;

function run(command: string, args: readonly string[], cwd = ROOT) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  return { isDone: status === 0, text: `${stdout}${stderr}` };
}

/** Returns the paths of a patch, whether it applies or not. */
function filesOf(name: string): string[] {
  const { text } = run('git', ['apply', '--numstat', patchOf(name)]);
  return [...text.matchAll(/^\d+\t\d+\t(.+)$/gm)].map(([, path = '']) => path);
}

test.each(CHANGES)('the change $name applies, and edits no more files than before', ({ name, files, tests }) => {
  const paths = filesOf(name);
  expect(paths).not.toEqual([]);
  const ofTests = paths.filter((path) => path.startsWith('test/'));
  expect(paths.length - ofTests.length).toBeLessThanOrEqual(files);
  expect(ofTests.length).toBeLessThanOrEqual(tests);
  const patch = patchOf(name);
  const { isDone, text } = run('git', ['apply', '--check', patch]);
  const renewal = [
    `${patch} no longer applies. To renew it, commit your work and run these commands; between them, edit the files until "npx tsc" is silent:`,
    `git apply --reject ${patch}`,
    `git add --intent-to-add ${paths.join(' ')}`,
    `git diff -- ${paths.join(' ')} > /tmp/${name}.patch && git reset --hard && mv /tmp/${name}.patch ${patch}`,
  ].join('\n');
  expect(isDone, `${renewal}\n\n${text}`).toBe(true);
});

test.each(CHANGES)('the recipes of the change $name name every file that it edits', ({ name, recipes }) => {
  const page = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const sections = recipes.map((recipe) => {
    const [, section = ''] = new RegExp(`### ${recipe}\\n([^]*?)\\n##`).exec(page) ?? [];
    expect(section, recipe).not.toBe('');
    expect(section.trim().split('\n').length, recipe).toBeLessThanOrEqual(8);
    return section;
  });
  const named = [...sections.join('\n').matchAll(/`([^`\s]+)`/g)].map(([, text = '']) => text);
  const isNamed = (path: string) =>
    named.some((text) => {
      const [start = '', end] = text.split('*');
      if (text.endsWith('/')) return path.includes(text);
      return end === undefined
        ? path.endsWith(text) && basename(path) === basename(text)
        : path.startsWith(start) && path.endsWith(end);
    });
  const paths = filesOf(name);
  expect(paths).not.toEqual([]);
  expect(paths.filter((path) => !isNamed(path))).toEqual([]);
});

test.runIf(inject('everyCase'))('with all three changes, the program compiles', () => {
  const copy = mkdtempSync(join(tmpdir(), 'quittance-changes-'));
  try {
    cpSync(ROOT, copy, { recursive: true, filter: (path) => !/\/(node_modules|\.git|\.quittance|dist)$/.test(path) });
    for (const folder of ['node_modules', 'test/node_modules']) symlinkSync(join(ROOT, folder), join(copy, folder));
    for (const { name } of CHANGES) expect(run('git', ['apply', patchOf(name)], copy).text).toBe('');
    expect(run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', copy]).text).toBe('');
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
});
