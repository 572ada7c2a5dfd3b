import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isDatabaseUnavailable } from '../../../core/domain/errors.ts';
import { isCheckoutToken } from '../../../core/domain/ids.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { keepNewest } from '../../../core/runtime/keep-newest.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findCheckoutInvoice } from '../../../core/store/ledger/checkout.ts';
import { findLogo, type Logo } from '../../../core/store/ledger/logos.ts';
import { sendCompressed, serveAsset } from '../../web/assets.ts';
import { clientOf } from '../../web/client-address.ts';
import { html } from '../../web/html.ts';
import { Problem } from '../../web/problem.ts';
import { createTokenBuckets, type RateLimit, refuseLimited } from '../../web/rate-limit.ts';
import { chooseLanguage } from '../words/languages.ts';
import { type TextKey, type Words, wordsOf } from '../words/words.ts';
import { renderPage, renderSuspended } from './page.ts';
import {
  isProofShown,
  type LinkPage,
  type Page,
  type Site,
  type SuspendedPage,
  statusOf,
  suspensionOf,
} from './page-state.ts';
import { ASSETS, newNonce, renderDocument, renderLanguages } from './render-document.ts';
import { WALLET_NODES } from './wallets.ts';

/** The response to scripts for every unknown link. */
export const UNKNOWN_LINK = { error: 'there is no invoice at this link' };

export type CheckoutDeps = { db: Database; now(): UnixMs; site: Site };

const UNPROVEN = {
  error: "no signed list of addresses is active here, or the list does not contain this invoice's address",
};

const WITHHELD = { error: 'this invoice asks for no payment now, so its address and the proof are not shown' };

/** Links are only for payers. Pages also say `noindex`, for crawlers that follow a link without reading this file. */
const ROBOTS = 'User-agent: *\nDisallow: /\n';

/** Registers `GET /c/:token` (the page), `/c/:token/status` and `/c/:token/address-proof.json` (JSON), `/robots.txt`, and the script. */
export function registerCheckout(app: FastifyInstance, deps: CheckoutDeps): void {
  const schema = { hide: true };
  app.get('/c/:token', { schema }, (request, reply) =>
    answerPage(request, reply, async (nonce) => {
      const page = await findPage(deps, request);
      return page && { html: renderPage(page, nonce), ...originsOf(page) };
    }),
  );
  app.get('/c/:token/status', { schema }, async (request, reply) => {
    reply.headers(DATA_HEADERS);
    const page = await findLinkPage(deps, request);
    return page === null ? reply.code(404).send(UNKNOWN_LINK) : statusOf(page);
  });
  app.get('/c/:token/address-proof.json', { schema }, async (request, reply) => {
    const page = await findPage(deps, request);
    reply.headers(DATA_HEADERS);
    if (page === null) return reply.code(404).send(UNKNOWN_LINK);
    const { network, address } = page.invoice;
    if (!isProofShown(page)) return reply.code(404).send(WITHHELD);
    const addressProof = deps.site.proofOf(network, address);
    return addressProof === null ? reply.code(404).send(UNPROVEN) : { address, addressProof };
  });
  // Matches truncated links, and links with text added by a chat application.
  app.get('/c/*', { schema }, (request, reply) => answerPage(request, reply, async () => null));
  app.get('/robots.txt', { schema }, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').header('Cache-Control', 'public, max-age=86400').send(ROBOTS),
  );
  serveAsset(app, ASSETS.js);
  serveAsset(app, ASSETS.embed, 'cross-origin');
}

/** Returns the origins that the page may connect to, and the origins that may embed it. */
export function originsOf({ invoice: { network, embedOrigins } }: Page): PageOrigins {
  return { connectTo: WALLET_NODES[network], frameOn: embedOrigins };
}

/** Like `findPage`, but returns the suspended page if payment is suspended. */
async function findLinkPage(deps: CheckoutDeps, request: FastifyRequest): Promise<LinkPage | null> {
  try {
    return await findPage(deps, request);
  } catch (error) {
    const page = suspendedPageOf(error, request);
    if (page === null) throw error;
    return page;
  }
}

/**
 * Returns the requested page as its reader sees it, or `null` if the link is unknown. Throws `DATABASE_UNAVAILABLE`, and the errors for
 * which `suspensionOf` returns a reason.
 */
export async function findPage({ db, now, site }: CheckoutDeps, request: FastifyRequest): Promise<Page | null> {
  const { token } = request.params as { token: string };
  if (!isCheckoutToken(token)) return null;
  const invoice = await findCheckoutInvoice(db, token);
  if (invoice === null) return null;
  const { language, isAsked } = chooseLanguage(request);
  return { invoice, words: wordsOf(language), isLanguageAsked: isAsked, now: now(), site };
}

/** A restart of the database takes about this long. */
const RETRY_AFTER_S = 5;

/** A suspension lasts longer, because a person has to sign something to end it. */
const SUSPENDED_RETRY_AFTER_S = 60;

type RenderedPage = ({ html: string } & Partial<PageOrigins>) | { redirectTo: string };

/**
 * Responds with a page in every case. If `render` returns `null` (the link is unknown) or the database doesn't respond, the page is an
 * apology. If the address is damaged or isn't in the signed manifest, the page is the suspended page.
 */
export async function answerPage(
  request: FastifyRequest,
  reply: FastifyReply,
  render: (nonce: string) => Promise<RenderedPage | null>,
): Promise<FastifyReply> {
  const nonce = newNonce();
  const words = wordsOf(chooseLanguage(request).language);
  try {
    const page = await render(nonce);
    if (page === null)
      return await send(request, reply.code(404), nonce, { html: renderApology(words, nonce, 'notFound') });
    return await send(request, reply, nonce, page);
  } catch (error) {
    const page = suspendedPageOf(error, request);
    if (page !== null) {
      reply.code(503).header('Retry-After', String(SUSPENDED_RETRY_AFTER_S));
      return await send(request, reply, nonce, { html: renderSuspended(page, nonce) });
    }
    if (!isDatabaseUnavailable(error)) throw error;
    return await answerUnavailable(request, reply.code(503), RETRY_AFTER_S);
  }
}

/** Returns the page for an invoice that can't be relied on, or `null` if the error has another cause. */
function suspendedPageOf(error: unknown, request: FastifyRequest): SuspendedPage | null {
  const suspended = error instanceof Error ? suspensionOf(error) : null;
  if (suspended === null) return null;
  const { token: checkoutToken } = request.params as { token: string };
  const { language, isAsked } = chooseLanguage(request);
  return { words: wordsOf(language), isLanguageAsked: isAsked, invoice: { checkoutToken, suspended } };
}

/** Responds with the page for a temporary failure. The caller sets the status. */
export function answerUnavailable(
  request: FastifyRequest,
  reply: FastifyReply,
  retryAfterSeconds: number,
): Promise<FastifyReply> {
  const nonce = newNonce();
  const html = renderApology(wordsOf(chooseLanguage(request).language), nonce, 'unavailable');
  return send(request, reply.header('Retry-After', String(retryAfterSeconds)), nonce, { html });
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  nonce: string,
  page: RenderedPage,
): Promise<FastifyReply> {
  if ('redirectTo' in page) return reply.headers(pageHeaders(nonce)).redirect(page.redirectTo, 303);
  const { html, ...origins } = page;
  reply.headers(pageHeaders(nonce, origins)).type('text/html; charset=utf-8');
  return sendCompressed(request, reply, html);
}

/**
 * `notFound`: the link is unknown, for whatever reason. `unavailable`: the database doesn't respond, or the process is overloaded. In both
 * cases, the merchant isn't known.
 */
const APOLOGIES = {
  notFound: ['notFoundText', 'notFoundPaid'],
  unavailable: ['unavailableText', 'unavailablePaid'],
} as const satisfies Partial<Record<TextKey, readonly TextKey[]>>;

export function renderApology(words: Words, nonce: string, why: keyof typeof APOLOGIES): string {
  const { say, text } = words;
  return renderDocument({
    ...{ title: text(why), words, nonce },
    main: html`<header>${renderLanguages(words)}</header>
<h1>${say(why)}</h1>
${APOLOGIES[why].map((key) => html`<p>${say(key)}</p>`)}`,
  });
}

/**
 * The headers for all responses below a link except pages. These headers are always the same, so they reveal nothing about the response.
 */
export const DATA_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

type PageOrigins = { connectTo: readonly string[]; frameOn: string | null };

/**
 * Returns the headers for a page below a link. `connectTo` contains the origins that a wallet's script may connect to when it runs in the
 * page; the page itself connects to none. `frameOn` contains the origins that may embed the page, separated by spaces, as the operator
 * configured them.
 */
function pageHeaders(
  nonce: string,
  { connectTo = [], frameOn = null }: Partial<PageOrigins> = {},
): Record<string, string> {
  return {
    ...DATA_HEADERS,
    // `data:` allows the empty icon, which keeps browsers from requesting /favicon.ico.
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src ${["'self'", ...connectTo].join(' ')}; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors ${frameOn ?? "'none'"}`,
  };
}

/** A logo's bytes never change. The headers keep browsers from running anything in it, and allow only our own pages to show it. */
const LOGO_HEADERS = {
  'Cache-Control': 'public, max-age=31536000, immutable',
  'Content-Security-Policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** `GET /logos/:id` returns a merchant's logo. Recently used logos are cached so that pages don't cost a query each. */
export function registerLogos(app: FastifyInstance, { db }: { db: Sql }): void {
  const find = cacheLogos((id) => findLogo(db, id));
  app.get('/logos/:id', { schema: { hide: true } }, async (request, reply) => {
    const { id } = request.params as { id: string };
    const logo = LOGO_ID.test(id) ? await find(id) : null;
    if (logo === null) throw new Problem('ROUTE_NOT_FOUND', `There is no logo at ${request.url.slice(0, 200)}.`);
    return reply.type(logo.type).headers(LOGO_HEADERS).send(logo.content);
  });
}

const LOGO_ID = /^[0-9a-f]{32}$/;

/** At 32 KiB each, they take 3.2 MB. */
const MAX_CACHED = 100;

/**
 * Caches logos and drops the least recently used one. Missing logos aren't cached, because requests for random ids would displace all
 * others.
 */
function cacheLogos(find: (id: string) => Promise<Logo | null>): (id: string) => Promise<Logo | null> {
  const cached = new Map<string, Logo>();
  return async (id) => {
    const logo = cached.get(id) ?? (await find(id));
    if (logo === null) return null;
    keepNewest(cached, id, logo, MAX_CACHED);
    return logo;
  };
}

/**
 * The limit per client network. Offices, mobile carriers and clients behind an untrusted reverse proxy share an address, and a page that
 * polls sends a request every three seconds. So the limit only stops clients that flood the server. It doesn't have to prevent guessing,
 * because there are 2^128 links.
 */
const LIMIT: RateLimit = { perSecond: 50, burst: 500 };
/** Responses from these routes are pages for people; all others are JSON. */
const PAGES = new Set(['/c/:token', '/c/:token/ask', '/c/:token/receipt', '/c/*']);

/** Other public paths that cost a query. */
const OTHERS = new Set(['/logos/:id', '/.well-known/quittance-receipt-keys.json']);

/**
 * Limits how often a client may request paths below `/c/`, for known and unknown links, and their assets. Look-ups by programs have their
 * own limit, which is much lower.
 */
export function limitPages(app: FastifyInstance, { now }: { now(): UnixMs }): void {
  const buckets = createTokenBuckets(LIMIT);
  app.addHook('onRoute', (route) => {
    if (PAGES.has(route.url)) route.errorHandler ??= apologize;
  });
  app.addHook('onRequest', (request, reply, done) => {
    const { url = '' } = request.routeOptions;
    if (!(url.startsWith('/c/') || OTHERS.has(url)) || url === '/c/:token/lookup') return done();
    const verdict = buckets.take(clientOf(request).network, now());
    if (verdict.kind === 'pass') return done();
    if (PAGES.has(url)) {
      answerUnavailable(request, reply.code(429), verdict.retryAfterSeconds).catch(done);
      return;
    }
    reply.headers(DATA_HEADERS);
    refuseLimited(verdict, LIMIT);
  });
}

/** Responds with a page for people if their request is refused because the process is overloaded. */
function apologize(error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (!(error instanceof Problem && error.code === 'OVERLOADED')) throw error;
  return answerUnavailable(request, reply.code(503), Number(error.headers['Retry-After']));
}
