import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
// @ts-expect-error it has no types
import { npmCommand } from '../../build/npm.js';
import MOVED from '../../website/moved.json' with { type: 'json' };

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** URLs that a page fetches by itself; links may lead anywhere. */
const FETCHED = /<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="([^"]+)"/g;

test('the pages under docs/ become a site with a search, which fetches nothing from elsewhere', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-website-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['docs', 'website', 'deploy', 'migrations', 'compose.yaml', 'SECURITY.md', 'CHANGELOG.md']) {
    const isOurs = (path: string) => !/website\/(node_modules|pages|dist)/.test(path);
    await cp(join(ROOT, name), join(folder, name), { recursive: true, filter: isOurs });
  }
  const [file, ...first] = npmCommand();
  const npm = (...args: string[]) => run(file, [...first, ...args], { cwd: join(folder, 'website') });
  await npm('ci', '--ignore-scripts', '--no-audit', '--no-fund');
  // The build itself fails on a link to a missing page.
  await npm('run', 'build');

  const site = join(folder, 'website/dist');
  const names = await readdir(join(folder, 'docs'), { recursive: true });
  const pages = names.filter((name) => name.endsWith('.md')).map((name) => name.replace(/README\.md$/, 'index.md'));
  expect(pages.length).toBeGreaterThan(100);
  for (const page of pages) {
    const html = await readFile(join(site, page.replace(/\.md$/, '.html')), 'utf8');
    const fetched = [...html.matchAll(FETCHED)].map(([, url = '']) => url);
    expect(fetched.filter((url) => !url.startsWith('/') || url.startsWith('//'))).toEqual([]);
  }
  // Links to files outside docs/ lead to copies of them, so that operators can download them.
  expect(await readFile(join(site, 'guides/install.html'), 'utf8')).toContain('href="/files/compose.yaml"');
  await expect(readFile(join(site, 'files/compose.yaml'), 'utf8')).resolves.toContain('services:');
  expect(await readFile(join(site, 'explained/security.html'), 'utf8')).toContain('href="/SECURITY.html"');
  await expect(readFile(join(site, 'SECURITY.html'), 'utf8')).resolves.toContain('<h1');
  for (const [from, to] of Object.entries(MOVED)) {
    const html = await readFile(join(site, `${from}.html`), 'utf8');
    const [, target = ''] = /url=([^"]+)"/.exec(html) ?? [];
    await expect(readFile(join(site, dirname(from), target), 'utf8')).resolves.toContain('<h1');
    expect(target).toContain(to);
  }
  const chunks = await readdir(join(site, 'assets/chunks'));
  const index = chunks.find((name) => name.startsWith('@localSearchIndex')) ?? '';
  expect(await readFile(join(site, 'assets/chunks', index), 'utf8')).toContain('allocation');
});
