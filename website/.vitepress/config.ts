import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { defineConfig, type MarkdownOptions } from 'vitepress';
import MOVED from '../moved.json' with { type: 'json' };

const ROOT = resolve(import.meta.dirname, '../..');
const DOCS = join(ROOT, 'docs');
/** A copy, because a page's imports are resolved from its own folder. */
const PAGES = resolve(import.meta.dirname, '../pages');
/** Pages outside docs/ that the site needs too. */
const MORE_PAGES = ['SECURITY.md', 'CHANGELOG.md'];
/** The site can be opened from any folder of any server. */
const BASE = process.env['DOCS_BASE'] ?? '/';
type Markdown = Parameters<NonNullable<MarkdownOptions['config']>>[0];

/** Headings as GitHub names them, whose anchors the pages use. */
const slugify = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/**
 * Returns a link's target on this site, such as `/guides/backup.md#rules` or `/files/compose.yaml`. Returns `null` for targets that the
 * site doesn't have, such as folders. `page` is a path below docs/, or one of `MORE_PAGES`.
 */
function targetOf(href: string, page: string): string | null {
  if (/^([a-z]+:|#)/.test(href)) return href;
  const [path = '', anchor = ''] = href.split(/(?=#)/);
  const folder = MORE_PAGES.includes(page) ? '.' : join('docs', dirname(page));
  const file = join(folder, path, path.endsWith('/') ? 'README.md' : '');
  if (!existsSync(join(ROOT, file))) return null;
  if (!/\.(md|png)$/.test(file)) return publishFile(file);
  if (MORE_PAGES.includes(file)) return `/${file}${anchor}`;
  if (!file.startsWith('docs/')) return null;
  return `/${file.slice('docs/'.length).replace(/README\.md$/, 'index.md')}${anchor}`;
}

/** Copies a file that a page links to, such as `deploy/prometheus/rules.yml`, to the site. Returns its address. */
function publishFile(file: string): string | null {
  if (statSync(join(ROOT, file)).isDirectory()) return null;
  cpSync(join(ROOT, file), join(PAGES, 'public/files', file));
  return `/files/${file}`;
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

/** Rewrites links between pages and to files. A link whose target the site doesn't have becomes text. */
function keepLinksInside(markdown: Markdown): void {
  markdown.core.ruler.push('links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let isOutside = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const target = targetOf(token.attrGet('href') ?? '', env.relativePath.replace(/index\.md$/, 'README.md'));
          isOutside = target === null;
          if (target === null) token.attrs = [];
          else if (target.startsWith('/files/')) {
            // VitePress leaves such links alone: it adds no base, and looks for no page.
            token.attrSet('href', BASE + target.slice(1));
            token.attrSet('download', '');
          } else token.attrSet('href', target);
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
      return target === null ? [] : [{ text: name, link: target.replace(/\.md$/, '') }];
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
for (const page of MORE_PAGES) cpSync(join(ROOT, page), join(PAGES, page));

export default defineConfig({
  title: 'Quittance',
  description: 'USDT on TRON, straight to your own addresses',
  srcDir: PAGES,
  outDir: resolve(import.meta.dirname, '../dist'),
  cacheDir: resolve(import.meta.dirname, '../node_modules/.cache'),
  base: BASE,
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md' },
  markdown: {
    config: (markdown) => [keepLinksInside, hideBraces].forEach((change) => void change(markdown)),
    anchor: { slugify },
    html: false,
  },
  // Addresses of a machine of the reader.
  ignoreDeadLinks: 'localhostLinks',
  buildEnd: ({ outDir }) => writeRedirects(outDir),
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        // Pages for contributors use the same words, and would come before the guides. VitePress sends this function to the browser.
        miniSearch: {
          searchOptions: { boostDocument: (id: string) => (/\/(decisions|contributing)\//.test(id) ? 0.05 : 1) },
        },
      },
    },
    sidebar: readSidebar(),
    outline: [2, 3],
  },
});
