import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../domain/checkout-token.ts';
import { AppError } from '../domain/errors.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Database } from '../store/database.ts';
import { findCheckoutInvoice } from '../store/payments.ts';
import { NOT_FOUND_PAGE, UNAVAILABLE_PAGE } from './apologies.ts';
import { serveAssets } from './assets.ts';
import { type PageInput, renderInvoice, renderPage } from './page.ts';
import { type CheckoutView, viewCheckout } from './view.ts';

/** Of everything that is answered below a link. */
export const PAGE_HEADERS = {
  // `data:` is the empty icon, which keeps browsers from asking for /favicon.ico.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex, nofollow',
};

/** What scripts are told of every link that leads nowhere. */
export const UNKNOWN_LINK = { error: 'there is no invoice at this link' };

/** As short as a database takes to restart. */
const RETRY_AFTER_S = '5';

type CheckoutDeps = { db: Database; now(): UnixMs };

/** `GET /c/:token` (the page), `/c/:token/status` (JSON), `/c/:token/fragment` (the changing part) and the two assets. */
export function registerCheckout(app: FastifyInstance, deps: CheckoutDeps): void {
  const schema = { hide: true };
  app.get('/c/:token', { schema }, async (request, reply) => {
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8');
    try {
      const view = await find(deps, request);
      return view === null ? reply.code(404).send(NOT_FOUND_PAGE) : renderPage(toInput(deps, request, view));
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE')) throw error;
      return reply.code(503).header('Retry-After', RETRY_AFTER_S).send(UNAVAILABLE_PAGE);
    }
  });
  app.get('/c/:token/fragment', { schema }, async (request, reply) => {
    const view = await find(deps, request);
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8');
    return view === null ? reply.code(404).send('') : renderInvoice(toInput(deps, request, view)).html;
  });
  app.get('/c/:token/status', { schema }, async (request, reply) => {
    const view = await find(deps, request);
    reply.headers(PAGE_HEADERS);
    return view ?? reply.code(404).send(UNKNOWN_LINK);
  });
  // Links that were cut, or that a chat put something behind.
  app.get('/c/*', { schema }, async (_request, reply: FastifyReply) =>
    reply.code(404).headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(NOT_FOUND_PAGE),
  );
  serveAssets(app);
}

async function find({ db, now }: CheckoutDeps, request: FastifyRequest): Promise<CheckoutView | null> {
  const { token } = request.params as { token: string };
  if (!isCheckoutToken(token)) return null;
  const invoice = await findCheckoutInvoice(db, token);
  return invoice && viewCheckout(invoice, now());
}

function toInput({ now }: CheckoutDeps, request: FastifyRequest, view: CheckoutView): PageInput {
  const { token } = request.params as { token: string };
  const hadPayment = (request.query as { seen?: unknown }).seen === 'payment';
  return { view, path: `/c/${token}`, now: now(), hadPayment };
}
