import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendCompressed } from '../../web/send-compressed.ts';
import { type Page, renderLayout } from './layout.ts';
import type { Visit } from './visit.ts';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** Nothing but the console's own style and script; no frame of anybody; and no copy after signing out. */
export const HEADERS = {
  'Content-Security-Policy': POLICY,
  // With `no-referrer` browsers would say that forms come from nowhere.
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
    .code(page.status ?? 200)
    .headers({
      ...HEADERS,
      ...(page.isFraming ? { 'Content-Security-Policy': `${POLICY}; frame-src 'self'` } : {}),
      ...(page.refreshS === undefined ? {} : { Refresh: String(page.refreshS) }),
    })
    .type('text/html; charset=utf-8');
  return sendCompressed(request, reply, renderLayout(visit, page));
}
