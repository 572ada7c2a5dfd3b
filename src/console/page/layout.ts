import { keyMode } from '../../domain/network.ts';
import type { ListedProjectView } from '../../operator/projects/views.ts';
import { readAsset } from '../../web/assets.ts';
import { type Html, html } from '../../web/html.ts';
import { urlTo, type Visit } from './visit.ts';

export const ASSETS = { css: readAsset('console.css'), js: readAsset('console.js') };

const SCREENS = [
  ['Today', '/', 't'],
  ['Invoices', '/invoices', 'i'],
  ['Unmatched', '/unmatched', 'u'],
  ['Addresses', '/addresses', 'a'],
] as const;

/** `about`: the project of the page. `beside`: what stands at the right of the heading. */
export type Page = { title: string; main: Html; about?: ListedProjectView | null; beside?: Html; status?: number };

/** A whole page. `visit` `null`: it is not known who asks. */
export function renderLayout(visit: Visit | null, { title, main, about = null, beside }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no">
<title>${title} – Quittance</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${ASSETS.css.url}">
<script src="${ASSETS.js.url}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
${about === null ? null : renderBand(about)}<div class="bar">
<p class="brand">${MARK}Quittance</p>
${visit === null ? null : renderNavigation(visit, about)}
</div>
</header>
<main id="main" tabindex="-1">
<div class="head"><h1>${title}</h1>${visit === null || about === null ? null : renderSwitch(visit, about)}${beside ?? null}</div>
${main}
</main>
${visit === null ? null : renderFooter(visit)}
<p id="said" class="unseen" role="status"></p>
</body>
</html>
`.html;
}

/** The payer's page has it beside what was paid. */
export const MARK = html`<svg aria-hidden="true" width="24" height="24" viewBox="0 0 24 24" fill="currentColor"><circle cx="12" cy="12" r="11"/><path d="m7.5 12.5 3 3 6-6.5" fill="none" stroke="var(--card)" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

/** Nobody should take test money for money. */
function renderBand({ network }: ListedProjectView): Html | null {
  if (keyMode(network) === 'live') return null;
  return html`<p class="band"><strong>Test network</strong> <span>${network}: no real money</span></p>
`;
}

function renderNavigation(visit: Visit, about: ListedProjectView | null): Html {
  const links = SCREENS.map(([name, path, key]) => {
    const isHere = path === '/' ? visit.path === '/' : visit.path.startsWith(path);
    return html`<li><a href="${urlTo(visit, path, about)}" data-go="${key}"${isHere ? html` aria-current="page"` : null}>${name}</a></li>`;
  });
  const kept =
    visit.projects.length > 1 && about !== null
      ? html`<input type="hidden" name="project" value="${about.projectId}">`
      : null;
  return html`<nav aria-label="Screens"><ul>${links}</ul></nav>
<form role="search" action="/find">${kept}<label class="unseen" for="q">Find an order, invoice, checkout link, address, transaction or amount</label><input id="q" name="q" type="search" placeholder="Order, address, transaction, amount" maxlength="500" autocomplete="off" autocapitalize="off" spellcheck="false" required><button class="quiet">Find</button></form>`;
}

/** Links, because a form would need a button without the script. */
function renderSwitch(visit: Visit, about: ListedProjectView): Html | null {
  if (visit.projects.length < 2) return html`<p class="project"><bdi>${about.name}</bdi></p>`;
  const links = visit.projects.slice(0, MAX_SWITCHED).map((project) => {
    const here = project.projectId === about.projectId ? html` aria-current="true"` : null;
    return html`<li><a href="${urlTo(visit, listOf(visit.path), project)}"${here}><bdi>${project.name}</bdi> <small>${project.network}</small></a></li>`;
  });
  return html`<details class="project"><summary><span class="unseen">Project: </span><bdi>${about.name}</bdi></summary><ul>${links}</ul></details>`;
}

/** More would not be found in a menu; the address of a page takes any. */
const MAX_SWITCHED = 50;

/** One thing of a project is not there in another, but its list is. */
function listOf(path: string): string {
  return SCREENS.find(([, screen]) => screen !== '/' && path.startsWith(screen))?.[1] ?? '/';
}

function renderFooter({ actor }: Visit): Html {
  return html`<footer><p>You are <bdi>${actor.name}</bdi>, ${actor.role}. <button type="button" class="link" data-open="keys" hidden>Keyboard shortcuts</button></p><form method="post" action="/sign-out"><button class="link">Sign out</button></form></footer>
<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keyboard shortcuts</h2>
<dl class="facts"><dt><kbd>/</kbd></dt><dd>find</dd><dt><kbd>g</kbd> <kbd>t</kbd></dt><dd>Today</dd><dt><kbd>g</kbd> <kbd>i</kbd></dt><dd>Invoices</dd><dt><kbd>g</kbd> <kbd>u</kbd></dt><dd>Unmatched</dd><dt><kbd>g</kbd> <kbd>a</kbd></dt><dd>Addresses</dd><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next, previous row</dd><dt><kbd>Enter</kbd></dt><dd>open the row</dd><dt><kbd>r</kbd></dt><dd>resolve it</dd><dt><kbd>?</kbd></dt><dd>this list</dd></dl>
<label class="check"><input type="checkbox" id="keys-on"> Single keys are shortcuts</label>
<form method="dialog"><button>Close</button></form></dialog>`;
}
