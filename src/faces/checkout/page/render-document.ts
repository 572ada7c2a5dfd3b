import { accentPalette } from '../../../core/domain/brand/colour.ts';
import { readAsset } from '../../web/assets.ts';
import { type Html, html, rawHtml } from '../../web/html.ts';
import type { Words } from '../words/words.ts';

/** The payer page's assets. The style is inlined into each page; `embed` is for shops' own pages. */
export const ASSETS = { css: readAsset('checkout.css'), js: readAsset('checkout.js'), embed: readAsset('embed.js') };

type DocumentInput = {
  title: string;
  words: Words;
  /** The nonce of the response's Content-Security-Policy. */
  nonce: string;
  main: Html;
  /** The merchant's colour, such as `#0a6549`. */
  accent?: string | null;
  /** Absent if the document has no script. `path`: the script sends requests below this path. `texts`: the script's texts. */
  script?: { path: string; texts: Record<string, string> };
};

/** Renders a complete document with its style inlined so that one response is enough to pay. */
export function renderDocument({ title, words, nonce, main, accent = null, script }: DocumentInput): string {
  const data = script && html` data-path="${script.path}" data-texts="${JSON.stringify(script.texts)}"`;
  return html`<!doctype html>
<html lang="${words.language}" dir="${words.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no">
<title>${title}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${rawHtml(ASSETS.css.text + accentStyle(accent))}</style>
${script ? html`<script src="${ASSETS.js.url}" nonce="${nonce}" defer></script>` : null}
</head>
<body${data ?? null}>
<main>
${main}
</main>
</body>
</html>
`.html;
}

/** Only computed colours from the palette, with six hex digits each, are inserted into the style. */
function accentStyle(accent: string | null): string {
  if (accent === null) return '';
  const { light, dark } = accentPalette(accent);
  const rule = (colours: typeof light) =>
    `:root{--accent:${colours.accent};--on-accent:${colours.onAccent};--tint:${colours.tint}}`;
  return `${rule(light)}@media screen and (prefers-color-scheme:dark){${rule(dark)}}`;
}
