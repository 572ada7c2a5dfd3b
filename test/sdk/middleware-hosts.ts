import { createServer, type RequestListener, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import type { WebhookEvent } from '../../packages/sdk/src/index.ts';
import { quittanceWebhook as forExpress } from '../../packages/sdk/src/middleware/express.ts';
import { quittanceWebhook as forFastify } from '../../packages/sdk/src/middleware/fastify.ts';
import { quittanceWebhook as forHono } from '../../packages/sdk/src/middleware/hono.ts';
import { quittanceWebhook as forAppRouter, quittanceWebhookPage } from '../../packages/sdk/src/middleware/next.ts';

type Delivery = { headers: Record<string, string>; body: Buffer };
type Reply = { status: number; contentType: string | null; text: string };
export type Options = { secret: string; now: () => number; onError: (error: unknown) => void };
type Handler = (event: WebhookEvent) => unknown;

/** A framework with one webhook endpoint. The body is sent in chunks, so that its length isn't known in advance. */
export type Host = { deliver(delivery: Delivery): Promise<Reply>; stop(): Promise<void> };
export type StartHost = (options: Options, handler: Handler) => Promise<Host>;

const PATH = '/webhooks/quittance';
const URL_OF_HOST = `https://shop.example${PATH}`;

async function listen(listener: RequestListener): Promise<Host> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    deliver: (delivery) => post(port, delivery),
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function post(port: number, { headers, body }: Delivery): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', path: PATH, port, headers: { ...headers, 'transfer-encoding': 'chunked' } };
    const request = sendRequest(options, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const contentType = response.headers['content-type'] ?? null;
      resolve({ status: response.statusCode ?? 0, contentType, text: Buffer.concat(chunks).toString() });
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Delivers to a handler of `Request` and `Response`. */
function speak(answer: (request: Request) => Response | Promise<Response>): Host {
  return {
    deliver: async ({ headers, body }) => {
      const stream = new Blob([new Uint8Array(body)]).stream();
      const response = await answer(new Request(URL_OF_HOST, streamInit(headers, stream)));
      return {
        status: response.status,
        contentType: response.headers.get('content-type'),
        text: await response.text(),
      };
    },
    stop: async () => undefined,
  };
}

function streamInit(headers: Record<string, string>, body: ReadableStream): RequestInit {
  return { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
}

const rawBodyFirst: express.RequestHandler = (request, _response, next) => {
  request.on('data', () => undefined).on('end', () => next());
};

export const HOSTS: Record<string, StartHost> = {
  'Express before express.json()': (options, handler) =>
    listen(express().post(PATH, forExpress(options, handler)).use(express.json())),
  'Express behind express.raw()': (options, handler) =>
    listen(express().post(PATH, express.raw({ type: 'application/json', limit: '1mb' }), forExpress(options, handler))),
  'Express behind express.text()': (options, handler) =>
    listen(
      express()
        .use(express.text({ type: '*/*', limit: '1mb' }))
        .post(PATH, forExpress(options, handler)),
    ),
  'Express with setEncoding': (options, handler) => {
    const decode: express.RequestHandler = (request, _response, next) => {
      request.setEncoding('utf8');
      next();
    };
    return listen(express().use(decode).post(PATH, forExpress(options, handler)));
  },
  Fastify: async (options, handler) => {
    const app = Fastify();
    // Another route of the same program still gets its JSON parsed.
    app.post('/orders', async (request) => ({ parsed: request.body }));
    app.register(forFastify({ path: PATH, ...options }, handler));
    await app.listen({ host: '127.0.0.1', port: 0 });
    const other = await app.inject({ method: 'POST', url: '/orders', payload: { a: 1 } });
    if (other.body !== '{"parsed":{"a":1}}') throw new Error(`the parsers of other routes were changed: ${other.body}`);
    return {
      deliver: (delivery) => post((app.server.address() as AddressInfo).port, delivery),
      stop: () => app.close(),
    };
  },
  Hono: async (options, handler) => speak(new Hono().post(PATH, forHono(options, handler)).fetch),
  'the App Router of Next.js': async (options, handler) => speak(forAppRouter(options, handler)),
  'the Pages Router of Next.js': (options, handler) => listen(quittanceWebhookPage(options, handler)),
};

/** Hosts in which the body was read before the middleware saw the request. */
export const TOO_LATE: Record<string, StartHost> = {
  'Express behind express.json()': (options, handler) =>
    listen(express().use(express.json()).post(PATH, forExpress(options, handler))),
  'Express behind a reader that keeps nothing': (options, handler) =>
    listen(express().use(rawBodyFirst).post(PATH, forExpress(options, handler))),
  'Hono after context.req.json()': async (options, handler) => {
    const app = new Hono();
    app.use(async (context, next) => {
      await context.req.json();
      await next();
    });
    return speak(app.post(PATH, forHono(options, handler)).fetch);
  },
  'the App Router after request.text()': async (options, handler) => {
    const route = forAppRouter(options, handler);
    return speak(async (request) => {
      await request.text();
      return route(request);
    });
  },
  'the App Router while another reads': async (options, handler) => {
    const route = forAppRouter(options, handler);
    return speak((request) => {
      request.body?.getReader();
      return route(request);
    });
  },
};
