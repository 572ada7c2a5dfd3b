import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Returns the links of a page (such as `docs/reference/api.md` in the folder `root`) that lead to no file, or to no heading of a file. */
export function deadLinks(root: string, page: string): string[] {
  const base = new URL(page, pathToFileURL(`${root}/`));
  const text = withoutBlocks(readFileSync(base, 'utf8'));
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)|<img src="([^"]+)"/g)].map(
    ([, link, image]) => link ?? image ?? '',
  );
  return targets
    .filter((target) => !/^[a-z]+:/.test(target) && !isThere(new URL(target, base)))
    .map((target) => `${page}: ${target}`);
}

/** Removes the code blocks of a page. */
export const withoutBlocks = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, '');

/** Returns the anchors that GitHub gives headings: `## What is told, and when` → `what-is-told-and-when`, a second one `…-1`. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of withoutBlocks(text).matchAll(/^#{1,6} +(.+)$/gm)) {
    const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = shown.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function isThere(url: URL): boolean {
  const anchor = decodeURIComponent(url.hash.slice(1));
  url.hash = '';
  const path = fileURLToPath(url);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  return anchor === '' || anchorsOf(readFileSync(path, 'utf8')).has(anchor);
}
