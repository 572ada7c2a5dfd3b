import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

/**
 * A command that would fetch one of our packages by name. None is published, so anyone who registered such a name could run code on every
 * reader's machine. `npx --no` and a path to a tarball or folder fetch nothing.
 */
const FETCHES =
  /\b(?:npx(?! --no )|(?:npm|pnpm) (?:exec|x)|pnpx|pnpm dlx|yarn dlx|bunx)(?: -\S+)* (?:@quittance\/|quittance\b)|\b(?:npm|pnpm|yarn|bun|deno) (?:global )?(?:i|install|add)\b[^\n`]*? (?:npm:)?(?:@quittance\/|quittance(?![-\w./]*\.tgz))/;

const files = execFileSync(
  'git',
  [
    'ls-files',
    '-z',
    '--',
    'README.md',
    'CONTRIBUTING.md',
    'docs',
    'src',
    'packages/sdk',
    'plugins',
    'deploy',
    'website',
  ],
  {
    cwd: ROOT,
    encoding: 'utf8',
  },
)
  .split('\0')
  .filter(
    (path) =>
      /\.(?:md|mdx|ts|js|mjs|cjs|php|py|sh|json|yaml|yml|html|txt)$/.test(path) && !path.endsWith('package-lock.json'),
  );

test('no document and no output tells anyone to fetch an unpublished package by its name', () => {
  const found = files.flatMap((path) =>
    readFileSync(new URL(path, ROOT), 'utf8')
      .split('\n')
      .flatMap((line, index) => (FETCHES.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
  expect(files.length).toBeGreaterThan(500);
  expect(found).toEqual([]);
});

test.each([
  ['npx quittance start', true],
  ['npx --yes quittance start', true],
  ['npm exec quittance', true],
  ['npm install --global quittance', true],
  ['npm i -g quittance', true],
  ['npm install express @quittance/sdk', true],
  ['yarn add @quittance/sdk', true],
  ['deno add npm:@quittance/sdk', true],
  ['npm run quittance -- start', false],
  ['npx --no quittance start', false],
  ['npm install ./quittance-0.1.0.tgz', false],
  ['npm install …/quittance-sdk-0.1.0.tgz express', false],
])('"%s" fetches by name: %s', (line, fetches) => {
  expect(FETCHES.test(line)).toBe(fetches);
});

test.each(['medusa', 'vendure'])('npm fetches no SDK by itself for the plugin of %s', (shop) => {
  const plugin = JSON.parse(readFileSync(new URL(`plugins/${shop}/package.json`, ROOT), 'utf8'));
  expect(plugin.peerDependenciesMeta).toEqual({ '@quittance/sdk': { optional: true } });
});
