import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../domain/checkout-token.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Database } from '../store/database.ts';
import { findCheckoutInvoice } from '../store/payments.ts';
import { NOT_FOUND_PAGE, renderInvoice, renderPage } from './page.ts';
import { type CheckoutView, viewCheckout } from './view.ts';

const PUBLIC = new URL('../../public/', import.meta.url);

const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex, nofollow',
};

type CheckoutDeps = { db: Database; now(): UnixMs };

/** `GET /c/:token` (the page), `/c/:token/status` (JSON), `/c/:token/fragment` (the changing part) and the two assets. */
export function registerCheckout(app: FastifyInstance, deps: CheckoutDeps): void {
  const schema = { hide: true };
  app.get('/c/:token', { schema }, async (request, reply) => {
    const view = await find(deps, request);
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8');
    if (view === null) return reply.code(404).send(NOT_FOUND_PAGE);
    return renderPage(view, pathOf(request));
  });
  app.get('/c/:token/fragment', { schema }, async (request, reply) => {
    const view = await find(deps, request);
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8');
    if (view === null) return reply.code(404).send('');
    return renderInvoice(view, pathOf(request)).html;
  });
  app.get('/c/:token/status', { schema }, async (request, reply) => {
    const view = await find(deps, request);
    reply.headers(PAGE_HEADERS);
    if (view === null) return reply.code(404).send({ error: 'there is no invoice at this link' });
    return view;
  });
  serveAsset(app, 'checkout.css', 'text/css; charset=utf-8');
  serveAsset(app, 'checkout.js', 'text/javascript; charset=utf-8');
}

async function find({ db, now }: CheckoutDeps, request: FastifyRequest): Promise<CheckoutView | null> {
  const { token } = request.params as { token: string };
  if (!isCheckoutToken(token)) return null;
  const invoice = await findCheckoutInvoice(db, token);
  return invoice && viewCheckout(invoice, now());
}

function pathOf(request: FastifyRequest): string {
  return `/c/${(request.params as { token: string }).token}`;
}

/** Read once at start: the two files are small, and a missing one should be noticed then. */
function serveAsset(app: FastifyInstance, name: string, type: string): void {
  const content = readFileSync(new URL(name, PUBLIC));
  app.get(`/assets/${name}`, { schema: { hide: true } }, async (_request, reply: FastifyReply) =>
    reply
      .type(type)
      .headers({ 'Cache-Control': 'public, max-age=300', 'X-Content-Type-Options': 'nosniff' })
      .send(content),
  );
}
