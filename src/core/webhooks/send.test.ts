import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createCertificate } from '../../../test/support/create-certificate.ts';
import { createWebhookSender, explainError, readRetryAfter, type SendResult } from './send.ts';
import { createWebhookSecret, signWebhook } from './sign.ts';
import type { LookupAll, TargetRule } from './target.ts';

const NOW_MS = Date.UTC(2026, 9, 21, 7, 27);
const BODY = Buffer.from('{"text":"₮ \\u0000"}');
const SECRET = createWebhookSecret(() => new Uint8Array(32));
const headers = signWebhook({ id: 'evt_1', timestampSeconds: NOW_MS / 1000, body: BODY, secrets: [SECRET] });

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

async function listenOn(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serve = async (listener: RequestListener) => `http://${await listenOn(createServer(listener))}/hook?x=1`;
const serveTcp = async (listener: (socket: Socket) => void) => listenOn(createTcpServer(listener));
const status = (code: number, extra: Record<string, string> = {}) =>
  serve((_, response) => response.writeHead(code, extra).end());

type Options = { timeoutMs?: number; rule?: TargetRule; ca?: string; lookup?: LookupAll };

function send(url: string, { rule = 'local', ...options }: Options = {}): Promise<SendResult> {
  const sender = createWebhookSender({ connections: 4, timeoutMs: 10_000, ...options });
  cleanUps.push(() => void sender.close());
  return sender.send({ url, rule, headers, body: BODY, nowMs: NOW_MS });
}

const failure = (reason: string) => ({ kind: 'failed', error: expect.stringMatching(new RegExp(`^${reason}: `)) });

test('the bytes, the signature and who we are arrive as they were given', async () => {
  const seen: unknown[] = [];
  const url = await serve(async (request, response) => {
    seen.push(request.method, request.url, Buffer.concat(await request.toArray()), request.headers);
    response.writeHead(202).end('thanks');
  });
  expect(await send(url)).toMatchObject({ kind: 'delivered', status: 202, answer: Buffer.from('thanks') });
  expect(seen).toEqual([
    'POST',
    '/hook?x=1',
    BODY,
    expect.objectContaining({
      ...headers,
      'user-agent': 'Quittance-Webhooks/2',
      'content-length': String(BODY.length),
    }),
  ]);
});

describe('answers', () => {
  test.each([200, 201, 204, 299])('%i is delivered', async (code) => {
    expect(await send(await status(code))).toMatchObject({ kind: 'delivered', status: code, answer: new Uint8Array() });
  });

  test.each([400, 401, 404, 410, 429, 500, 503])('%i is a failure that names it', async (code) => {
    expect(await send(await status(code))).toMatchObject({
      kind: 'failed',
      status: code,
      error: expect.stringContaining(`http_${code}: `),
    });
  });

  test.each([301, 302, 303, 307, 308])('a redirect with %i is a failure, and its target is not asked', async (code) => {
    let asked = 0;
    const target = await serve((_, response) => {
      asked += 1;
      response.end();
    });
    const result = await send(await status(code, { location: target }));
    expect(result).toMatchObject({ ...failure('redirect'), status: code });
    expect(asked).toBe(0);
  });

  test('the beginning of the answer, its date and the time it took come with the result', async () => {
    const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
    const url = await serve((_, response) => response.writeHead(401, { date }).end('x'.repeat(10_000)));
    const result = await send(url);
    expect(result).toMatchObject({ kind: 'failed', status: 401, date, answer: Buffer.alloc(8192, 'x') });
    expect(result.kind === 'failed' && result.latencyMs).toBeGreaterThanOrEqual(0);
    const refused = await send('http://127.0.0.1:1/');
    expect(refused).toMatchObject({ kind: 'failed', status: null, answer: null, date: null });
  });

  test('an informational answer is not the answer', async () => {
    const url = await serve((_, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.writeHead(503).end();
    });
    expect(await send(url)).toMatchObject({ kind: 'failed', status: 503 });
  });

  test('a Retry-After comes with the failure', async () => {
    expect(await send(await status(429, { 'retry-after': '120' }))).toMatchObject({ retryAfterMs: 120_000 });
    expect(await send(await status(503, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }))).toMatchObject({
      retryAfterMs: 60_000,
    });
    expect(await send(await status(500))).toMatchObject({ retryAfterMs: null });
  });
});

describe('hostile endpoints', () => {
  test('one that never answers is given up on', async () => {
    const url = await serve(() => undefined);
    expect(await send(url, { timeoutMs: 100 })).toMatchObject({ ...failure('timeout'), status: null });
  });

  test('one that accepts the connection and never begins TLS is given up on in the same time', async () => {
    const url = `https://${await serveTcp(() => undefined)}/`;
    expect(await send(url, { timeoutMs: 100 })).toMatchObject(failure('timeout'));
  });

  test('one that drips its headers is given up on', async () => {
    const host = await serveTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => socket.write('x-drip: 1\r\n'), 10);
      socket.on('close', () => clearInterval(drip));
    });
    expect(await send(`http://${host}/`, { timeoutMs: 200 })).toMatchObject(failure('timeout'));
  });

  test.each([200, 500])('one that drips its body after a %i has answered, and is not waited for', async (code) => {
    const url = await serve((request, response) => {
      response.writeHead(code);
      const drip = setInterval(() => response.write('.'), 10);
      request.socket.on('close', () => clearInterval(drip));
    });
    expect(await send(url)).toMatchObject({ kind: code === 200 ? 'delivered' : 'failed', status: code });
  });

  test('one that sends a body without end is cut off after a bounded number of bytes', async () => {
    let sent = 0;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const host = await serveTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`;
      const pump = () => {
        while (!socket.destroyed && socket.write(chunk)) sent += chunk.length;
      };
      socket.on('drain', pump).on('close', end);
      pump();
    });
    const result = await send(`http://${host}/`);
    expect(result).toMatchObject({ kind: 'delivered', status: 200 });
    expect(result.kind === 'delivered' && result.answer).toHaveLength(8192);
    await ended;
    // The kernels on both sides buffer more than the 8 KiB that are read.
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test.each<[what: string, onData: (socket: Socket) => void, reason: string, scheme?: string]>([
    ['resets the connection', (socket) => socket.resetAndDestroy(), 'connection_lost'],
    ['hangs up', (socket) => socket.end(), 'connection_lost'],
    ['does not speak HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n'), 'invalid_answer'],
    ['has endless headers', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}`), 'invalid_answer'],
    ['has no TLS behind https', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'tls', 'https'],
  ])('one that %s is a failure in plain words', async (_what, onData, reason, scheme = 'http') => {
    const host = await serveTcp((socket) => socket.once('data', () => onData(socket)));
    expect(await send(`${scheme}://${host}/`)).toMatchObject(failure(reason));
  });

  test('a port at which nothing listens is a failure in plain words', async () => {
    const host = await serveTcp(() => undefined);
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
    expect(await send(`http://${host}/`)).toMatchObject(failure('connection_refused'));
  });

  test.each(['', 'nonsense', 'ftp://127.0.0.1/', 'file:///etc/passwd'])(
    'the URL %j is a failure, not a throw',
    async (url) => {
      expect(await send(url)).toMatchObject({ ...failure('invalid_url'), status: null });
    },
  );

  test('the text of a failure holds nothing of the URL', async () => {
    const host = await serveTcp(() => undefined);
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
    expect(JSON.stringify(await send(`http://user:hidden@${host}/hidden?key=hidden`))).not.toContain('hidden');
  });
});

describe('certificates', () => {
  const serveTls = async (names: string[]) => {
    const { key, cert } = createCertificate(names);
    const host = await listenOn(createTlsServer({ key, cert }, (_, response) => response.writeHead(204).end()));
    return { url: `https://localhost:${host.split(':')[1]}/`, cert };
  };
  const lookup: LookupAll = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);

  test('a trusted one of the right name is accepted', async () => {
    const { url, cert } = await serveTls(['localhost']);
    expect(await send(url, { ca: cert, lookup })).toMatchObject({ kind: 'delivered', status: 204 });
  });

  test('one that is self-signed, and one for another name, are told apart', async () => {
    const { url, cert } = await serveTls(['other.example']);
    expect(await send(url, { lookup })).toMatchObject({
      error: 'tls: the certificate is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT)',
    });
    expect(await send(url, { ca: cert, lookup })).toMatchObject({
      error: 'tls: the certificate is for a different name (ERR_TLS_CERT_ALTNAME_INVALID)',
    });
  });

  test.each([
    ['CERT_HAS_EXPIRED', 'tls: the certificate has expired'],
    ['CERT_NOT_YET_VALID', 'tls: the certificate is not valid yet; check the clocks'],
    [
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'tls: the certificate chain is incomplete, or no well-known authority signed it',
    ],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls: no secure connection'],
    ['ENOTFOUND', 'dns: the endpoint host name does not resolve'],
    ['EAI_AGAIN', 'dns: the endpoint host name could not be looked up'],
    ['EHOSTUNREACH', 'unreachable: no route to the endpoint'],
    ['ESOMETHING', 'network: the attempt failed'],
  ])('%s is explained', (code, words) => {
    expect(explainError(Object.assign(new Error('secret'), { code }))).toBe(`${words} (${code})`);
  });
});

describe('targets', () => {
  test('that are not public are refused without a connection, unless the rule is local', async () => {
    let asked = 0;
    const url = await serve((_, response) => {
      asked += 1;
      response.end();
    });
    const refused = { ...failure('target_refused'), status: null };
    expect(await send(url, { rule: 'public' })).toMatchObject(refused);
    expect(await send(url.replace('http:', 'https:'), { rule: 'public' })).toMatchObject(refused);
    expect(await send('http://169.254.169.254/latest/meta-data')).toMatchObject(refused);
    const lookup: LookupAll = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
    const named = `https://shop.example:${new URL(url).port}/`;
    expect(await send(named, { rule: 'public', lookup })).toMatchObject(refused);
    expect(asked).toBe(0);
    expect(await send(url)).toMatchObject({ kind: 'delivered' });
  });
});

test('an attempt whose sender is closed says so, whatever the endpoint does, and one after that is not made', async () => {
  const sender = createWebhookSender({ connections: 4 });
  let asked = 0;
  const url = await serve(() => {
    asked += 1;
    void sender.close();
  });
  const webhook = { url, rule: 'local', headers, body: BODY, nowMs: NOW_MS } as const;
  expect(await sender.send(webhook)).toEqual({ kind: 'aborted' });
  expect(await sender.send(webhook)).toEqual({ kind: 'aborted' });
  expect(asked).toBe(1);
});

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 5 ', 5000],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 60_000],
    ['Wednesday, 21-Oct-26 07:28:00 GMT', 60_000],
    ['Wed Oct 21 07:28:00 2026', 60_000],
    ['Wed, 21 Oct 2026 07:26:00 GMT', null],
    ['-5', null],
    ['1.5', null],
    ['1e3', null],
    ['2026-10-21T07:28:00Z', null],
    ['soon', null],
    ['Wed, nonsense', null],
    ['', null],
  ])('%j asks for %s ms', (header, expected) => {
    expect(readRetryAfter(header, NOW_MS)).toBe(expected);
  });

  test('a repeated or missing header asks for nothing', () => {
    expect(readRetryAfter(['1', '2'], NOW_MS)).toBeNull();
    expect(readRetryAfter(undefined, NOW_MS)).toBeNull();
  });
});
