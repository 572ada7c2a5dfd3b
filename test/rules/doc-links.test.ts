import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .map((name) => `docs/${name}`)
  .concat('README.md', 'CONTRIBUTING.md', 'STYLE.md', 'CHANGELOG.md', 'sdk/README.md')
  .filter((name) => name.endsWith('.md'));

/** Headings as GitHub names them in a URL: `## What is told, and when` → `what-is-told-and-when`, a second one `…-1`. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  const visible = text.replace(/^```[\s\S]*?^```/gm, '');
  for (const [, heading = ''] of visible.matchAll(/^#{1,6} +(.+)$/gm)) {
    const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = shown.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function deadLinks(page: string): string[] {
  const base = new URL(page, `file://${ROOT}`);
  const text = readFileSync(base, 'utf8').replace(/^```[\s\S]*?^```/gm, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target) && !isThere(new URL(target, base)))
    .map((target) => `${page}: ${target}`);
}

function isThere(url: URL): boolean {
  const anchor = decodeURIComponent(url.hash.slice(1));
  url.hash = '';
  const path = fileURLToPath(url);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  return anchor === '' || anchorsOf(readFileSync(path, 'utf8')).has(anchor);
}

test('every link between the documents leads to a file and a heading that are there', () => {
  expect(PAGES.length).toBeGreaterThan(70);
  expect(PAGES.flatMap(deadLinks)).toEqual([]);
});

test('a heading is known by the anchor that GitHub gives it', () => {
  const text = "# One, [two](x.md) & `three_4`\n```sh\n# none\n```\n## It's\n## Its\n";
  expect([...anchorsOf(text)]).toEqual(['one-two--three_4', 'its', 'its-1']);
});
