import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { defineConfig, type MarkdownOptions } from 'vitepress';
import MOVED from '../moved.json' with { type: 'json' };

const DOCS = resolve(import.meta.dirname, '../../docs');
/** A copy, from where the pages find what they import. */
const PAGES = resolve(import.meta.dirname, '../pages');
type Markdown = Parameters<NonNullable<MarkdownOptions['config']>>[0];

/** Headings as GitHub names them, whose anchors the pages use. */
const slugify = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** A page as this site calls it; `null`: it stands outside of docs/, so that the site does not have it. */
function targetOf(href: string, page: string): string | null {
  if (/^([a-z]+:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const within = normalize(join(dirname(page), path));
  const file = path.endsWith('/') ? join(within, 'README.md') : within;
  if (within.startsWith('..') || !existsSync(join(DOCS, file)) || !/\.(md|png)$/.test(file)) return null;
  const shown = `${path.endsWith('/') ? `${path}README.md` : path}`.replace(/README\.md$/, 'index.md');
  return anchor === undefined ? shown : `${shown}#${anchor}`;
}

/** Vue takes braces for its own, also as entities, unless it is told not to look. */
function hideBraces(markdown: Markdown): void {
  const { text, code_inline: code } = markdown.renderer.rules;
  for (const [name, render] of Object.entries({ text, code_inline: code })) {
    if (render === undefined) continue;
    markdown.renderer.rules[name] = (...given) => {
      const shown = render(...given);
      return /\{\{/.test(shown) ? `<span v-pre>${shown}</span>` : shown;
    };
  }
}

/** Rewrites links between pages, and shows those that lead out of docs/ as text. */
function keepLinksInside(markdown: Markdown): void {
  markdown.core.ruler.push('links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let isOutside = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const target = targetOf(token.attrGet('href') ?? '', env.relativePath.replace(/index\.md$/, 'README.md'));
          isOutside = target === null;
          if (target !== null) token.attrSet('href', target);
          else token.attrs = [];
        }
        if (isOutside && /^link_(open|close)$/.test(token.type)) token.tag = 'span';
        if (token.type === 'link_close') isOutside = false;
      }
    }
  });
}

/** The readers and their pages, as docs/README.md lists them. */
function readSidebar() {
  const sections = readFileSync(join(DOCS, 'README.md'), 'utf8').split(/^## /m).slice(1);
  return sections.map((section) => {
    const [text = '', ...lines] = section.split('\n');
    const links = lines.flatMap((line) => [...line.matchAll(/\[([^\]]+)\]\(([^)#]+)(#[^)]*)?\)/g)]);
    const items = links.flatMap(([, name = '', path = '', anchor]) => {
      const target = anchor === undefined ? targetOf(path, 'README.md') : null;
      return target === null ? [] : [{ text: name, link: `/${target.replace(/\.md$/, '')}` }];
    });
    return { text, items, collapsed: false };
  });
}

/** Leads from a page's former address to its present one, with the anchor that was asked for. */
function writeRedirects(folder: string): void {
  for (const [from, to] of Object.entries(MOVED)) {
    const file = join(folder, `${from}.html`);
    const target = `${'../'.repeat(from.split('/').length - 1)}${to}.html`;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${target}"><link rel="canonical" href="${target}"><title>Moved</title><script>location.replace(${JSON.stringify(target)} + location.hash)</script><p><a href="${target}">This page has moved.</a></p>\n`,
    );
  }
}

rmSync(PAGES, { recursive: true, force: true });
cpSync(DOCS, PAGES, { recursive: true });

export default defineConfig({
  title: 'Quittance',
  description: 'USDT on TRON, straight to your own addresses',
  srcDir: PAGES,
  outDir: resolve(import.meta.dirname, '../dist'),
  cacheDir: resolve(import.meta.dirname, '../node_modules/.cache'),
  // It can be opened from any folder of any server.
  base: process.env['DOCS_BASE'] ?? '/',
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md' },
  markdown: {
    config: (markdown) => [keepLinksInside, hideBraces].forEach((change) => void change(markdown)),
    anchor: { slugify },
    html: false,
  },
  // Addresses of a machine of the reader.
  ignoreDeadLinks: 'localhostLinks',
  buildEnd: ({ outDir }) => writeRedirects(outDir),
  themeConfig: { search: { provider: 'local' }, sidebar: readSidebar(), outline: [2, 3] },
});
