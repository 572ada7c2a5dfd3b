import { createHash } from 'node:crypto';
import { readAsset } from '../../web/assets.ts';
import { type Html, html, rawHtml } from '../../web/html.ts';
import { PROBLEMS } from '../../web/problem.ts';
import { LANGUAGES } from './code-examples.ts';
import { prose } from './page-pieces.ts';

/** Shows the programs of the chosen language alone, where a browser can. */
const CHOICE = `${LANGUAGES.map(({ id }) => `main:has(#in-${id}:checked) .${id}`).join(',')}{display:block}`;
const STYLE = readAsset('docs.css').text + CHOICE;

/** Of pages with the one style and nothing else; `data:` is the empty icon, which keeps browsers from asking for one. */
export const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export function renderDocument(title: string, main: Html, nav: Html | null = null): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${rawHtml(STYLE)}</style>
</head>
<body>
<header><h1>${title}</h1></header>
${nav}
<main>
${main}
</main>
</body>
</html>
`.html;
}

/** The page that the `type` of every error names. */
export function renderErrors(): string {
  const problems = Object.entries(PROBLEMS).map(
    ([code, { status, title, advice }]) =>
      html`<h2 id="${code}"><code>${code}</code> (${status})</h2><p>${title}. ${prose(advice)}</p>`,
  );
  const main = html`<p>Every error is <code>application/problem+json</code> (RFC 9457): decide by its <code>code</code>, show people <code>detail</code>, give the operator <code>requestId</code>. Codes may be added. <a href="/docs">The reference</a> says which an operation can answer.</p>
${problems}`;
  return renderDocument('Errors of the Quittance API', main);
}
