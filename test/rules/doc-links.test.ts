import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import MOVED from '../../website/moved.json' with { type: 'json' };
import { anchorsOf, deadLinks, withoutBlocks } from '../support/document-links.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .map((name) => `docs/${name}`)
  .concat('README.md', 'CONTRIBUTING.md', 'STYLE.md', 'CHANGELOG.md', 'packages/sdk/README.md')
  .filter((name) => name.endsWith('.md'));

test('every link between the documents leads to a file and a heading that are there', () => {
  expect(PAGES.length).toBeGreaterThan(70);
  expect(PAGES.flatMap((page) => deadLinks(ROOT, page))).toEqual([]);
});

test('a page that had another name before leads there, and no page has that name again', () => {
  for (const [from, to] of Object.entries(MOVED)) {
    expect([from, existsSync(join(ROOT, 'docs', `${from}.md`))]).toEqual([from, false]);
    expect([to, existsSync(join(ROOT, 'docs', `${to}.md`))]).toEqual([to, true]);
  }
});

test('every file of the source that the documents name is there', () => {
  // History pages name files that are gone, and the plugins' page names files of a shop.
  const others = /^(CHANGELOG|docs\/contributing\/measurements\/.*|docs\/guides\/plugins)\.md$/;
  const pages = PAGES.filter((page) => !others.test(page));
  const named = pages.flatMap((page) =>
    [...withoutBlocks(readFileSync(join(ROOT, page), 'utf8')).matchAll(/`((?:src|test|build|bench)\/[\w./-]+)`/g)].map(
      ([, path = '']) => ({ page, path }),
    ),
  );
  expect(named.length).toBeGreaterThan(70);
  expect(named.filter(({ path }) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every section that a text of the source names is a heading of its document, and every alarm is explained there', () => {
  const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|js)$/.test(name) && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
    .join('\n');
  const named = [
    ...[...source.matchAll(/["“]([^"”\n$]{3,60})["”] in (docs\/[\w/-]+\.md)/g)].map(([, section = '', page = '']) => ({
      section,
      page,
    })),
    ...[...source.matchAll(/(docs\/[\w/-]+\.md), ["“]([^"”\n$]{3,60})["”]/g)].map(([, page = '', section = '']) => ({
      section,
      page,
    })),
  ];
  expect(named.length).toBeGreaterThan(25);
  const hasSection = ({ section, page }: { section: string; page: string }) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    return /^[a-z]+(?:-[a-z]+)+$/.test(section)
      ? text.includes(`\`${section}\``)
      : anchorsOf(text).has(section.toLowerCase().replaceAll(' ', '-'));
  };
  expect(named.filter((each) => !hasSection(each))).toEqual([]);
});

test('a heading is known by the anchor that GitHub gives it', () => {
  const text = "# One, [two](x.md) & `three_4`\n```sh\n# none\n```\n## It's\n## Its\n";
  expect([...anchorsOf(text)]).toEqual(['one-two--three_4', 'its', 'its-1']);
});
