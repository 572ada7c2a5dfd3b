import type { OutgoingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../../domain/checkout-token.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { createLiveStreams, type LiveStream, STREAM_HEADERS } from '../../web/live-streams.ts';
import { Problem } from '../../web/problem.ts';
import { hijackForStream } from '../../web/shed-load.ts';
import { DATA_HEADERS } from '../page/headers.ts';
import { composeMessage, versionOf } from '../page/live-message.ts';
import { type Site, stateOf } from '../page/page-state.ts';
import { UNKNOWN_LINK } from '../page/register.ts';
import { chooseLanguage } from '../words/languages.ts';
import { wordsOf } from '../words/words.ts';
import { createLivePages, type LivePage, type LivePagesDeps, pageOf } from './live-pages.ts';
import type { Reader } from './live-registry.ts';

export type LiveDeps = LivePagesDeps & { metrics: Pick<Metrics, 'requestSeconds'>; site: Site; beatMs?: number };

const schema = { hide: true };

/**
 * `GET /c/:token/live`: what changes on a page, as server-sent events of type `page`, each a `LiveMessage`. `GET /c/:token/parts`: the
 * same by polling. `v`, or the header `Last-Event-ID`, says which version the reader shows. 204: nothing is new, or will ever be.
 */
export function registerLive(app: FastifyInstance, deps: LiveDeps): void {
  const pages = createLivePages(deps);
  const streams = createLiveStreams(deps);
  app.addHook('preClose', async () => {
    streams.stop();
    await pages.stop();
  });
  app.get('/c/:token/parts', { schema }, async (request, reply) => {
    reply.headers(DATA_HEADERS);
    const asked = readAsked(request, deps.site);
    const invoice = asked && (await pages.read(asked.token));
    if (asked === null || invoice === null) return reply.code(404).send(UNKNOWN_LINK);
    const page = pageOf(asked.reader, invoice, deps.now());
    return versionOf(page) === asked.version ? sendNothing(request, reply.code(204)) : composeMessage(null, page);
  });
  app.get('/c/:token/live', { schema }, async (request, reply) => {
    const startedMs = performance.now();
    reply.headers(DATA_HEADERS);
    const asked = readAsked(request, deps.site);
    if (asked === null) return reply.code(404).send(UNKNOWN_LINK);
    if (!pages.hasRoom(asked.token)) throw tooManyOpen();
    const page = await pages.open(asked.token, asked.reader);
    if (page === null) return reply.code(404).send(UNKNOWN_LINK);
    reply.headers(STREAM_HEADERS);
    // A request that was pipelined behind another has no connection of its own, and so nothing that tells when it ends.
    if (reply.raw.socket === null) {
      page.close();
      throw tooManyOpen();
    }
    const isOver = isPaid(page) && versionOf(page.look()) === asked.version;
    if (isOver || request.method === 'HEAD' || reply.raw.destroyed) {
      page.close();
      return sendNothing(request, reply.code(isOver ? 204 : 200));
    }
    hijackForStream(request, reply);
    reply.raw.once('close', page.close);
    follow(page, asked.version, streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders));
    // As the server's hook does for answers that are not hijacked.
    const labels = { method: request.method, route: '/c/:token/live', status: '200' };
    deps.metrics.requestSeconds.observe(labels, (performance.now() - startedMs) / 1000);
    return reply;
  });
}

type Asked = { token: string; version: string; reader: Reader };

function readAsked(request: FastifyRequest, site: Site): Asked | null {
  const { token } = request.params as { token: string };
  if (!isCheckoutToken(token)) return null;
  const { v } = request.query as { v?: unknown };
  const version = String(request.headers['last-event-id'] ?? v ?? '');
  const { language, isAsked } = chooseLanguage(request);
  return { token, version, reader: { words: wordsOf(language), isLanguageAsked: isAsked, site } };
}

function follow(page: LivePage, version: string, stream: LiveStream): void {
  page.start(version, (message) => {
    stream.send('page', message.version, JSON.stringify(message));
    if (isPaid(page)) stream.end();
  });
}

function isPaid(page: LivePage): boolean {
  return stateOf(page.look()) === 'paid';
}

/** HEAD gets a stream, because Fastify states the length of every other answer to it. */
function sendNothing({ method }: FastifyRequest, reply: FastifyReply): FastifyReply {
  return method === 'HEAD' ? reply.send(Readable.from([])) : reply.send();
}

/** Until there is room, the page polls. */
const FULL_RETRY_S = '60';

function tooManyOpen(): Problem {
  return new Problem('UNAVAILABLE', 'Too many pages of this link, or of all, are open here. Poll /parts instead.', {
    headers: { 'Retry-After': FULL_RETRY_S },
  });
}
