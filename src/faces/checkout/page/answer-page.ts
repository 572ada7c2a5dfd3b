import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isDatabaseUnavailable } from '../../../core/domain/errors.ts';
import { sendCompressed } from '../../web/assets.ts';
import { html } from '../../web/html.ts';
import { chooseLanguage } from '../words/languages.ts';
import { type TextKey, type Words, wordsOf } from '../words/words.ts';
import { renderSuspended } from './page.ts';
import { type SuspendedPage, suspensionOf } from './page-state.ts';
import { renderDocument, renderLanguages } from './render-document.ts';

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
export function suspendedPageOf(error: unknown, request: FastifyRequest): SuspendedPage | null {
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

/** Returns the nonce that a page marks its own scripts and styles with. Injected content doesn't have it. */
export function newNonce(): string {
  return randomBytes(16).toString('base64');
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

export type PageOrigins = { connectTo: readonly string[]; frameOn: string | null };

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
