import { type Html, html } from '../web/html.ts';
import { ASSETS, assetUrl } from './assets.ts';

/** A whole page around its content. Only a page with a `path` has the script, which polls what stands below that path. */
export function renderDocument({ title, path, main }: { title: string; path: string | null; main: Html }): string {
  return html`<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assetUrl(ASSETS.css)}">
${path === null ? null : html`<script src="${assetUrl(ASSETS.js)}" defer></script>`}
</head>
<body${path === null ? null : html` data-path="${path}"`}>
<main>
${main}
</main>
</body>
</html>
`.html;
}
