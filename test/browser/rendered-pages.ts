import type { ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { AppError } from '../../src/core/domain/errors.ts';
import type { LookupAnswer } from '../../src/core/domain/lookup/lookup.ts';
import type { UnixMs } from '../../src/core/domain/time.ts';
import { renderAnswer } from '../../src/faces/checkout/lookup/answer.ts';
import { composeMessage, type Question, renderPage, versionOf } from '../../src/faces/checkout/page/page.ts';
import { isReadable, type LinkPage, type Page } from '../../src/faces/checkout/page/page-state.ts';
import { answerPage, answerUnavailable } from '../../src/faces/checkout/page/register.ts';
import { ASSETS } from '../../src/faces/checkout/page/render-document.ts';
import { WALLET_NODES } from '../../src/faces/checkout/page/wallets.ts';
import { renderReceipt } from '../../src/faces/checkout/receipt/receipt-routes.ts';
import { chooseLanguage, type Language } from '../../src/faces/checkout/words/languages.ts';
import { wordsOf } from '../../src/faces/checkout/words/words.ts';
import { serveAsset } from '../../src/faces/web/assets.ts';
import { checkoutPage, FULL_BRAND, PAGE_VIEWS, type PageView, suspendedPage } from '../support/checkout-page.ts';

/** Every view that a link can show. */
export const VIEWS = [...PAGE_VIEWS, 'unconfirmed', 'receipt', 'not found', 'unavailable'] as const;

export type View = (typeof VIEWS)[number];

/**
 * A real server with the service's pages, headers and script, in states set up without a chain. The flows test the service and the chain;
 * here every combination of looks takes only milliseconds.
 */
export type RenderedPages = {
  /** Serves a page under a new link, and returns its URL. */
  add(page: Shown): string;
  /** Returns the URL of a view in a language, with everything that a merchant can set. */
  urlOf(view: View, language: Language): string;
  /** Changes a page served by `add` live. */
  change(url: string, page: Shown): void;
  stop(): Promise<void>;
};

type Shown = LinkPage & { now: UnixMs };
type Served = { page: Shown; streams: Set<ServerResponse> };

/** As long as allowed, with a word that doesn't fit on a line. */
const DESCRIPTION = `Zwei Karten, מושב 7 — ${'W'.repeat(118)}`;

/** The answer to every look-up here. */
const ANSWER: LookupAnswer = {
  code: 'short',
  blockNumber: 68_123_456,
  blockTime: '2026-09-01T12:10:00.000Z',
  arrived: '123455.990007',
  expected: '123456.990007',
  by: '1.000000',
  likely: { kind: 'fee' },
};

export async function startRenderedPages(): Promise<RenderedPages> {
  const served = new Map<string, Served>();
  const app = Fastify({ forceCloseConnections: true });
  serveAsset(app, ASSETS.js);
  serveLogo(app);
  servePages(app, served);
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const add = (page: Shown) => {
    const checkoutToken = String(served.size + 1);
    served.set(checkoutToken, {
      page: { ...page, invoice: { ...page.invoice, checkoutToken } } as Shown,
      streams: new Set(),
    });
    return `${origin}/c/${checkoutToken}`;
  };
  return {
    add,
    urlOf: (view, language) => {
      if (view === 'not found') return `${origin}/c/x?lang=${language}`;
      if (view === 'unconfirmed') return `${add(suspendedPage())}?lang=${language}`;
      if (view === 'unavailable') return `${origin}/unavailable?lang=${language}`;
      const state: PageView = view === 'receipt' ? 'paid' : view;
      const shown = { language, brand: FULL_BRAND, invoice: { description: DESCRIPTION } };
      return `${add(checkoutPage(state, shown))}${view === 'receipt' ? '/receipt' : ''}`;
    },
    change: (url, page) => {
      const checkoutToken = new URL(url).pathname.slice('/c/'.length);
      const entry = served.get(checkoutToken);
      if (entry === undefined) throw new Error(`nothing is served at ${url}`);
      const before = entry.page;
      entry.page = { ...page, invoice: { ...page.invoice, checkoutToken } } as Shown;
      const message = `event: page\ndata: ${JSON.stringify(composeMessage(before, entry.page))}\n\n`;
      for (const stream of entry.streams) stream.write(message);
    },
    stop: () => app.close(),
  };
}

function servePages(app: FastifyInstance, served: Map<string, Served>): void {
  const find = (request: FastifyRequest): Page | null => {
    const page = served.get((request.params as { token: string }).token)?.page ?? null;
    if (page !== null && !isReadable(page)) throw new AppError('ROW_CHANGED', 'a row that nobody may rely on');
    const { language, isAsked } = chooseLanguage(request);
    return page && isAsked ? { ...page, words: wordsOf(language), isLanguageAsked: true } : page;
  };
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
    done(null, body);
  });
  app.get('/c/:token', (request, reply) =>
    answerPage(request, reply, async (nonce) => {
      const page = find(request);
      return page && { html: renderPage(page, nonce), connectTo: WALLET_NODES[page.invoice.network] };
    }),
  );
  app.get('/c/:token/receipt', (request, reply) =>
    answerPage(request, reply, async (nonce) => {
      const page = find(request);
      const transfer = page?.invoice.transfer ?? null;
      return page && transfer && { html: renderReceipt(page, { transfer, isSigned: true, nonce }) };
    }),
  );
  app.post('/c/:token/ask', (request, reply) =>
    answerPage(request, reply, async (nonce) => {
      const page = find(request);
      const [[field, text] = ['', '']] = new URLSearchParams(String(request.body));
      const question: Question = { field: field as Question['field'], text };
      return page && { html: renderPage(page, nonce, { question, answer: renderAnswer(page, ANSWER) }) };
    }),
  );
  app.get('/c/:token/live', (request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'Content-Type': 'text/event-stream', Connection: 'close' });
    const entry = served.get((request.params as { token: string }).token);
    reply.raw.write(`: open\n\nevent: beat\ndata: ${entry?.page.now}\n\n`);
    // Sends what changed between loading the page and opening its stream, like the service.
    const { v } = request.query as { v?: string };
    if (entry !== undefined && versionOf(entry.page) !== v) {
      reply.raw.write(`event: page\ndata: ${JSON.stringify(composeMessage(null, entry.page))}\n\n`);
    }
    entry?.streams.add(reply.raw);
    reply.raw.once('close', () => entry?.streams.delete(reply.raw));
  });
  app.get('/c/:token/parts', (request, reply) => {
    const page = served.get((request.params as { token: string }).token)?.page;
    const { v } = request.query as { v?: string };
    return page === undefined || versionOf(page) === v ? reply.code(204).send() : composeMessage(null, page);
  });
  app.get('/unavailable', (request, reply) => answerUnavailable(request, reply.code(503), 5));
}

/** One dark pixel. */
const LOGO = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

function serveLogo(app: FastifyInstance): void {
  app.get('/logos/:id', (_request, reply) => reply.type('image/png').send(LOGO));
}
