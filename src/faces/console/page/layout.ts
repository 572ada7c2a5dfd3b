import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../../core/domain/errors.ts';
import { keyMode } from '../../../core/domain/network.ts';
import { createTally, type Logger } from '../../../core/runtime/log.ts';
import { ACTIONS, type ActionName } from '../../operator/actions.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { readAsset, sendCompressed } from '../../web/assets.ts';
import { type Html, html } from '../../web/html.ts';
import { Problem } from '../../web/problem.ts';
import { alert, keepProject } from './pieces.ts';
import { Forbidden, urlTo, type Visit } from './visit.ts';
import { type Labels, renderText } from './words.ts';

export const ASSETS = { css: readAsset('console.css'), js: readAsset('console.js') };

/** The screens in menu order, each with its key after `g`, and the action that a person must be allowed to take to see it. */
const SCREENS: readonly (readonly [name: string, path: string, key: string, action: ActionName])[] = [
  ['Today', '/', 't', 'showToday'],
  ['Invoices', '/invoices', 'i', 'listInvoices'],
  ['Unmatched', '/unmatched', 'u', 'listTransfers'],
  ['Webhooks', '/webhooks', 'w', 'listEndpoints'],
  ['Addresses', '/addresses', 'a', 'listAddresses'],
  ['Chain', '/chain', 'c', 'showStatus'],
  ['Reports', '/reports', 'b', 'showReport'],
  ['Requests', '/requests', 'q', 'listRequests'],
  ['Settings', '/settings', 's', 'showSettings'],
];

const screensOf = ({ actor }: Visit) => SCREENS.filter(([, , , action]) => isAllowed(actor, action));

/**
 * `about` is the page's project, and `beside` is the content to the right of the heading. `said` reports the outcome of the action that led
 * here, and `problem` why the request was refused. With `refreshS`, the browser reloads the page after that many seconds. `isFraming` is
 * set if the page contains a frame with a console page.
 */
export type Page = {
  title: string;
  main: Html;
  about?: ListedProjectView | null;
  beside?: Html | null;
  said?: Html | string | null;
  problem?: Html | null;
  status?: number;
  refreshS?: number | null;
  isFraming?: true;
};

/** Renders a whole page. `visit` is `null` if the visitor is unknown. */
function renderLayout(visit: Visit | null, { title, main, about = null, beside, said = null, problem = null }: Page) {
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
<p id="stale" class="notice" role="status" hidden></p>
${said && html`<p class="good" role="status">${said}</p>`}${problem && alert(problem)}${main}
</main>
${visit === null ? null : renderFooter(visit)}
<p id="said" class="unseen" role="status"></p>
</body>
</html>
`.html;
}

/** The payment page shows the same mark beside a paid amount. */
export const MARK = html`<svg aria-hidden="true" width="24" height="24" viewBox="0 0 24 24" fill="currentColor"><circle cx="12" cy="12" r="11"/><path d="m7.5 12.5 3 3 6-6.5" fill="none" stroke="var(--card)" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

/** Makes sure that no one mistakes test money for real money. */
function renderBand({ network }: ListedProjectView): Html | null {
  if (keyMode(network) === 'live') return null;
  return html`<p class="band"><strong>Test network</strong> <span>${network}: no real money</span></p>
`;
}

function renderNavigation(visit: Visit, about: ListedProjectView | null): Html {
  const here = screenAt(visit.path);
  const links = screensOf(visit).map((screen) => {
    const [name, path, key] = screen;
    return html`<li><a href="${urlTo(visit, path, about)}" data-go="${key}"${screen === here ? html` aria-current="page"` : null}>${name}</a></li>`;
  });
  // A phone shows the list on demand. A wide screen always shows it.
  return html`<form role="search" action="/find">${keepProject(visit, about)}<label class="unseen" for="q">Find an order, invoice, payment link, address, transaction, amount or request</label><input id="q" name="q" type="search" placeholder="Order, address, transaction, amount" maxlength="500" autocomplete="off" autocapitalize="off" spellcheck="false" required><button class="quiet">Find</button></form>
<nav aria-label="Screens"><details><summary>${here?.[0] ?? 'Screens'}</summary><ul>${links}</ul></details><ul>${links}</ul></nav>`;
}

/** Returns the screen that a path belongs to. */
function screenAt(path: string) {
  return SCREENS.find(([, screen]) => (screen === '/' ? path === '/' : path.startsWith(screen)));
}

/** Renders links, because a form would need a button in browsers without the script. */
function renderSwitch(visit: Visit, about: ListedProjectView): Html | null {
  if (visit.projects.length < 2) return html`<p class="project"><bdi>${about.name}</bdi></p>`;
  const offered = visit.projects.filter((each) => each.archivedAt === null || each.projectId === about.projectId);
  const links = offered.slice(0, MAX_SWITCHED).map((project) => {
    const here = project.projectId === about.projectId ? html` aria-current="true"` : null;
    return html`<li><a href="${urlTo(visit, listOf(visit.path), project)}"${here}><bdi>${project.name}</bdi> <small>${project.network}</small></a></li>`;
  });
  return html`<details class="project"><summary><span class="unseen">Project: </span><bdi>${about.name}</bdi></summary><ul>${links}</ul></details>`;
}

/** Pages within a screen that exist for every project. */
const OF_PROJECT = ['/settings/project', '/settings/keys'];

/** Returns the path to open after switching projects. An item belongs to the old project, so the new project's list is opened instead. */
function listOf(path: string): string {
  return OF_PROJECT.find((each) => path.startsWith(each)) ?? screenAt(path)?.[1] ?? '/';
}

/** People wouldn't find a project in a longer menu. The URL of a page accepts any project. */
const MAX_SWITCHED = 50;

function renderFooter(visit: Visit): Html {
  const { actor } = visit;
  const goes = screensOf(visit).map(([name, , key]) => html`<dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${name}</dd>`);
  return html`<footer><p>You are <a href="/settings/me"><bdi>${actor.name}</bdi></a>, ${actor.role}. <button type="button" class="link" data-open="keys" hidden>Keyboard shortcuts</button></p><form method="post" action="/sign-out"><button class="link">Sign out</button></form></footer>
<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keyboard shortcuts</h2>
<dl class="facts"><dt><kbd>/</kbd></dt><dd>find</dd>${goes}<dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next, previous row</dd><dt><kbd>Enter</kbd></dt><dd>open the row</dd><dt><kbd>r</kbd></dt><dd>resolve it</dd><dt><kbd>?</kbd></dt><dd>this list</dd></dl>
<label class="check"><input type="checkbox" id="keys-on"> Single keys are shortcuts</label>
<form method="dialog"><button>Close</button></form></dialog>`;
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** Allows only the console's own style and script, no foreign frames, and no cached copy after signing out. */
export const HEADERS = {
  'Content-Security-Policy': POLICY,
  // With `no-referrer`, browsers would send forms without an origin.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  visit: Visit | null,
  page: Page,
): Promise<FastifyReply> {
  reply
    .code(page.status ?? (page.problem ? 400 : 200))
    .headers({
      ...HEADERS,
      ...(page.isFraming ? { 'Content-Security-Policy': `${POLICY}; frame-src 'self'` } : {}),
      ...(page.refreshS == null ? {} : { Refresh: String(page.refreshS) }),
    })
    .type('text/html; charset=utf-8');
  return sendCompressed(request, reply, renderLayout(visit, page));
}

const STATUS: Readonly<Record<string, readonly [status: number, title: string]>> = {
  INVALID_ARGUMENT: [400, 'This request is not valid'],
  USAGE: [403, 'This form was rejected'],
  FORBIDDEN: [403, 'Your role does not allow this'],
  NOT_FOUND: [404, 'Not found'],
  CONFLICT: [409, 'Nothing was changed'],
  DATABASE_UNAVAILABLE: [503, 'The database is not responding'],
  NO_NODE: [503, 'No node is responding'],
  NODE_REFUSED: [503, 'The nodes did not respond'],
  ADDRESS_DAMAGED: [503, 'An address was changed in the database'],
  ROW_CHANGED: [503, 'A row was changed in the database'],
  ADDRESS_NOT_VOUCHED: [503, 'An address is not signed'],
};

/** Shows the command line's error text, as a list. `labels` are the labels for a form's fields. */
export function describeProblem({ text, problems }: AppError, labels: Labels = {}): Html {
  const list = problems.map(({ message }) => html`<li>${renderText(message, labels)}</li>`);
  return html`<p>${renderText(text, labels)}</p>${list.length === 0 ? null : html`<ul>${list}</ul>`}`;
}

/** Describes a mistake in the input. Throws every other error again. */
export function describeMistake(error: unknown, labels?: Labels): Html {
  if (error instanceof AppError && error.code === 'INVALID_ARGUMENT') return describeProblem(error, labels);
  throw error;
}

/** Returns the page for an error, or `null` for an unexpected error. */
function errorPage(error: unknown, requestId: string): Page | null {
  const page = (status: number, title: string, text: Html): Page => ({
    ...{ title, status },
    main: html`<section class="card" role="alert">${text}<p class="hint">Request <code>${requestId}</code></p><p><a href="/">Today</a></p></section>`,
  });
  if (error instanceof Forbidden) {
    const { role } = ACTIONS[error.action];
    const who =
      role === 'owner'
        ? 'Only an owner can do this'
        : `Only an ${role} or an owner can do this`.replace('An viewer', 'A viewer, an operator');
    return page(
      403,
      'Your role does not allow this',
      html`<p>${who}. Ask an owner to do it, or to give you a different role.</p>`,
    );
  }
  if (error instanceof Problem) return page(error.status, 'This request was rejected', html`<p>${error.message}</p>`);
  if (!(error instanceof AppError)) {
    // The server itself refused the request, because the form is too large or can't be parsed.
    const { statusCode = 500, message = '' } = error as { statusCode?: number; message?: string };
    return statusCode >= 500 ? null : page(statusCode, 'This request was rejected', html`<p>${message}</p>`);
  }
  const [status, title] = STATUS[error.code] ?? [500, 'This failed'];
  const wait = status === 503 ? html`<p>Nothing was changed. Pages that only show data retry automatically.</p>` : null;
  return page(status, title, html`${describeProblem(error)}${wait}`);
}

/** The page for unexpected errors. The log contains the details. */
function failurePage(requestId: string): Page {
  return {
    ...{ title: 'Something went wrong', status: 500 },
    main: html`<section class="card" role="alert"><p>The request failed. The service's log shows the reason.</p><p class="hint">Request <code>${requestId}</code></p></section>`,
  };
}

type AnswerError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/**
 * Responds to every error on a console page with an error page. Logs each unexpected error and, once a minute for each code, why pages are
 * temporarily refused. The load gate reports requests refused before they begin.
 */
export function createAnswerError(
  { log, now }: { log: Logger; now(): number },
  visitOf: (request: FastifyRequest) => Visit | null,
): AnswerError {
  const tally = createTally(now);
  return (error, request, reply) => {
    const route = request.routeOptions.url;
    const known = errorPage(error, request.id);
    if (known === null) log.error({ requestId: request.id, err: error, route }, 'a console page failed');
    const page = known ?? failurePage(request.id);
    if (page.status === 503) {
      reply.headers({ 'Retry-After': '5', ...(request.method === 'GET' ? { Refresh: '5' } : {}) });
      const requests = error instanceof AppError ? tally.note(error.code) : null;
      if (error instanceof AppError && requests !== null) {
        const { code, message: reason } = error;
        log.warn({ requestId: request.id, route, code, reason, requests }, 'console pages are refused');
      }
    }
    return sendPage(request, reply, visitOf(request), page);
  };
}
