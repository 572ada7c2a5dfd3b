import { createServer as createHttpServer } from 'node:http';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { afterEach, describe, expect, test } from 'vitest';
import { realBlock } from '../../../../test/support/real-blocks.ts';
import { unlimitedNode } from '../../domain/node.ts';
import { transactionBy } from '../verify/transaction-reader.ts';
import { type Call, createNodeClient, type NodeClientOptions, type Outcome } from './client.ts';
import type { Question } from './node.ts';
import { blockAt, constantCall, headerAt, infosOf } from './questions.ts';

const HANGING_MS = 300;
/** For longer responses. A busy machine may need most of it before the first byte arrives. */
const STEADY_MS = 1000;
const USDT = 'd5'.repeat(20) as AccountHex;
const PAYOUT = realBlock('payout');
const QUESTION = blockAt(PAYOUT.number);
/** As java-tron 4.8.0 begins every answer. */
const HEADERS = { ':status': 200, 'content-type': 'application/grpc', 'grpc-encoding': 'identity' };

type Asked = { path: string; headers: Record<string, unknown>; body: Buffer };
type Server = { url: string; asked: Asked[]; sessions: ServerHttp2Session[]; server: Http2Server };
const servers: Server[] = [];
afterEach(async () => {
  for (const { server, sessions } of servers.splice(0)) {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A gRPC service that answers as it is told. */
async function serve(answer: (stream: ServerHttp2Stream, asked: Asked) => void): Promise<Server> {
  const server = createServer();
  const made: Server = { url: '', asked: [], sessions: [], server };
  servers.push(made);
  server.on('session', (session) => {
    made.sessions.push(session);
    session.on('error', () => undefined);
  });
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const asked = { path: String(headers[':path']), headers: { ...headers }, body: Buffer.concat(chunks) };
      made.asked.push(asked);
      answer(stream, asked);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  made.url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return made;
}

function frame(message: Uint8Array, length = message.length, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

/** An answer in these pieces, with these trailers. */
function say(
  stream: ServerHttp2Stream,
  pieces: readonly Uint8Array[],
  trailers: Record<string, string> = { 'grpc-status': '0' },
) {
  stream.respond(HEADERS, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  for (const piece of pieces) stream.write(piece);
  stream.end();
}

/** How java-tron refuses: headers with a status, and nothing else. */
function refuse(stream: ServerHttp2Stream, status: number, message?: string, extra: Record<string, string> = {}) {
  const reported = message === undefined ? {} : { 'grpc-message': message };
  const headers = {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(status),
    ...reported,
    ...extra,
  };
  stream.respond(headers, { endStream: true });
}

async function ask<Answer>(
  url: string,
  question: Question<Answer>,
  { spec = {}, call = {}, ...options }: Partial<Omit<NodeClientOptions, 'spec'>> & { spec?: object; call?: Call } = {},
) {
  const client = createNodeClient({ spec: unlimitedNode(url, 'a node', spec), ...options });
  let outcome: Outcome | null = null;
  const onOutcome = (seen: Outcome) => {
    outcome = seen;
  };
  try {
    return {
      answer: await client.ask(question, { ...call, onOutcome }),
      error: null,
      outcome: outcome as Outcome | null,
    };
  } catch (error) {
    expect(error).toMatchObject({ code: 'NODE_REFUSED', retryable: true });
    return { answer: null, error: (error as Error).message, outcome: outcome as Outcome | null };
  } finally {
    await client.close();
  }
}

test('a question goes out as one message with the key, and the answer is the very bytes', async () => {
  const { url, asked } = await serve((stream) => say(stream, [frame(PAYOUT.bytes)]));
  const { answer, outcome } = await ask(url, QUESTION, { spec: { apiKey: 'k-1' } });
  expect({ ...answer, transactions: [...(answer?.transactions ?? [])] }).toMatchObject({
    isExact: true,
    transactions: [{ isSuccess: true }],
  });
  expect(outcome).toEqual({ kind: 'ok' });
  const [request] = asked;
  expect(request).toMatchObject({ path: '/protocol.Wallet/GetBlockByNum' });
  expect(request?.headers).toMatchObject({
    te: 'trailers',
    'content-type': 'application/grpc',
    'tron-pro-api-key': 'k-1',
  });
  // NumberMessage: num=1, here 214.
  expect(request?.body.toString('hex')).toBe('0000000003' + '08d601');
});

test.each([
  ['one byte at a time', 1],
  ['in pieces that part the prefix', 3],
  ['in pieces of a frame', 16_384],
])('an answer is read %s', async (_what, size) => {
  const whole = frame(PAYOUT.bytes);
  const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
    whole.subarray(at * size, (at + 1) * size),
  );
  const { url } = await serve((stream) => say(stream, pieces));
  expect((await ask(url, QUESTION)).answer).toMatchObject({ isExact: true });
});

test('what the node has not is status 0 with an empty message', async () => {
  const { url, asked } = await serve((stream) => say(stream, [frame(new Uint8Array(0))]));
  expect((await ask(url, blockAt(7))).answer).toBe(null);
  expect((await ask(url, headerAt('any', 7))).answer).toBe(null);
  expect((await ask(url, transactionBy('ab'.repeat(32)))).answer).toBe(null);
  expect((await ask(url, infosOf(7, USDT))).answer).toEqual([]);
  expect(asked.map(({ path }) => path.split('/').at(-1))).toEqual([
    'GetBlockByNum',
    'GetBlock',
    'GetTransactionById',
    'GetTransactionInfoByBlockNum',
  ]);
});

describe('a status that is not 0 is a refusal in words', () => {
  test.each<[string, number, string | undefined, string, object]>([
    ['a wrong question', 3, 'id must be legal block hash.', 'gRPC status 3: id must be legal block hash.', {}],
    ['an unreadable one', 2, 'Application error processing RPC', 'gRPC status 2: Application error', {}],
    ['a busy node', 8, undefined, 'gRPC status 8', { mayBeTheQuestion: false }],
    ['a wrong key', 16, 'no', 'gRPC status 16: no', { mayBeTheQuestion: false }],
    ['a method that is switched off', 14, 'this API is unavailable due to config', 'gRPC status 14: this API is', {}],
    ['a percent-encoded reason', 13, 'h%C3%A9 %', 'gRPC status 13', {}],
    [
      'a provider that suspends us',
      14,
      'suspended for 30s',
      'suspended',
      { retryAfterMs: 30_000, mayBeTheQuestion: false },
    ],
  ])('%s', async (_what, status, message, expected, more) => {
    const { url } = await serve((stream) => refuse(stream, status, message));
    const { error, outcome } = await ask(url, QUESTION);
    expect(error).toContain(expected);
    expect(outcome).toMatchObject({
      kind: 'refused',
      mayBeTheQuestion: true,
      late: null,
      isTooLarge: false,
      ...more,
    });
  });

  test('the irreversible side at the port of the whole one, and how to write both', async () => {
    const { url } = await serve((stream, { path }) => refuse(stream, 12, `Method not found: ${path.slice(1)}`));
    const { error } = await ask(url, headerAt('solid'));
    expect(error).toContain('Method not found: protocol.WalletSolidity/GetBlock');
    expect(error).toContain('#solidity=');
    expect((await ask(url, headerAt('any'))).error).not.toContain('#solidity=');
  });

  test('after a message as well, in the trailers', async () => {
    const { url } = await serve((stream) =>
      say(stream, [frame(PAYOUT.bytes)], { 'grpc-status': '2', 'grpc-message': 'late' }),
    );
    expect((await ask(url, QUESTION)).error).toContain('gRPC status 2: late');
  });

  test('no word of the key that a node echoes is told', async () => {
    const echo = { 'tron-pro-api-key': 's3cret' };
    const { url } = await serve((stream) => refuse(stream, 14, 'not with s3cret', echo));
    const { error, outcome } = await ask(url, QUESTION, { spec: { apiKey: 's3cret' } });
    expect(error).toContain('not with …');
    expect(JSON.stringify({ error, outcome })).not.toContain('s3cret');
  });

  test('a reason of any length is shown shortened', async () => {
    const { url } = await serve((stream) => refuse(stream, 2, 'x'.repeat(5000)));
    expect((await ask(url, QUESTION)).error?.length).toBeLessThan(400);
  });
});

describe('what is no answer of gRPC is refused', () => {
  test.each<[string, (stream: ServerHttp2Stream) => void, string, object?]>([
    ['no status', (stream) => say(stream, [frame(PAYOUT.bytes)], {}), 'HTTP 200'],
    [
      'a status that is no number',
      (stream) => say(stream, [frame(PAYOUT.bytes)], { 'grpc-status': 'fine' }),
      'HTTP 200',
    ],
    ['no message', (stream) => say(stream, []), 'ends too early'],
    ['half a prefix', (stream) => say(stream, [Uint8Array.of(0, 0, 0)]), 'ends too early'],
    [
      'less than the prefix says',
      (stream) => say(stream, [frame(PAYOUT.bytes, PAYOUT.bytes.length + 1)]),
      'ends too early',
    ],
    ['more than the prefix says', (stream) => say(stream, [frame(PAYOUT.bytes, 5)]), 'more than one message'],
    ['two messages', (stream) => say(stream, [frame(PAYOUT.bytes), frame(PAYOUT.bytes)]), 'more than one message'],
    ['a compressed message', (stream) => say(stream, [frame(PAYOUT.bytes, PAYOUT.bytes.length, 1)]), 'compressed'],
    ['bytes that are no block', (stream) => say(stream, [frame(utf8ToBytes('<html>'))]), 'is not a block'],
    [
      'a page of a proxy',
      (stream) => {
        stream.respond({ ':status': 502, 'content-type': 'text/html' });
        stream.end('<html>Bad Gateway</html>');
      },
      'HTTP 502',
    ],
    [
      'HTTP 429',
      (stream) => stream.respond({ ':status': 429 }, { endStream: true }),
      'HTTP 429',
      { mayBeTheQuestion: false },
    ],
    ['too many headers', (stream) => stream.respond({ ':status': 431 }, { endStream: true }), 'HTTP 431'],
  ])('%s', async (_what, answer, expected, more = {}) => {
    const { url } = await serve(answer);
    const { error, outcome } = await ask(url, QUESTION);
    expect(error).toContain(expected);
    expect(outcome).toMatchObject({ kind: 'refused', mayBeTheQuestion: true, isTooLarge: false, ...more });
  });

  test('a length beyond the bound, before a byte of it is read', async () => {
    const { url } = await serve((stream) => {
      stream.respond(HEADERS, { waitForTrailers: true });
      stream.write(frame(new Uint8Array(0), 0xffffffff));
    });
    const { error, outcome } = await ask(url, QUESTION);
    expect(error).toContain('4294967295 bytes');
    expect(outcome).toMatchObject({ isTooLarge: true, late: null });
    const small = await serve((stream) => say(stream, [frame(PAYOUT.bytes)]));
    expect((await ask(small.url, QUESTION, { call: { maxBytes: 100 } })).outcome).toMatchObject({ isTooLarge: true });
    expect((await ask(small.url, QUESTION, { maxAnswerBytes: 100 })).outcome).toMatchObject({ isTooLarge: true });
  });

  test('a stream that is reset before anything was said, and after', async () => {
    const before = await serve((stream) => stream.close(8));
    const refused = await ask(before.url, QUESTION);
    expect(refused.error).toMatch(/8/);
    const after = await serve((stream) => {
      stream.respond(HEADERS, { waitForTrailers: true });
      stream.write(frame(PAYOUT.bytes).subarray(0, 50), () => stream.close(2));
    });
    const { outcome } = await ask(after.url, QUESTION);
    expect(outcome).toMatchObject({ kind: 'refused', mayBeTheQuestion: true, late: null });
  });

  test('a node that is not there, or speaks HTTP/1.1, was not reached', async () => {
    const { error, outcome } = await ask('grpc://127.0.0.1:1', QUESTION);
    expect(error).toMatch(/: connect ECONNREFUSED 127\.0\.0\.1:1$/);
    expect(outcome).toMatchObject({ mayBeTheQuestion: false });
    const page = createHttpServer((_request, response) => response.end('{}'));
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
    const other = await ask(`grpc://127.0.0.1:${(page.address() as AddressInfo).port}`, QUESTION);
    page.closeAllConnections();
    await new Promise((resolve) => page.close(resolve));
    expect(other.outcome).toMatchObject({ kind: 'refused', mayBeTheQuestion: false, late: null });
  });
});

describe('a connection', () => {
  test('serves many questions, and a new one is made when the node ends it', async () => {
    const { url, sessions } = await serve((stream) => say(stream, [frame(PAYOUT.bytes)]));
    const client = createNodeClient({ spec: unlimitedNode(url) });
    await Promise.all([client.ask(QUESTION), client.ask(QUESTION)]);
    expect(sessions).toHaveLength(1);
    // As java-tron says it after a minute without a call.
    const [first] = sessions;
    first?.goaway(0, 2 ** 31 - 1, Buffer.from('max_idle'));
    first?.close();
    await expect.poll(() => first?.destroyed).toBe(true);
    expect(await client.ask(QUESTION)).toMatchObject({ isExact: true });
    expect(sessions).toHaveLength(2);
    sessions[1]?.destroy();
    await expect.poll(async () => client.ask(QUESTION).catch(() => null)).toMatchObject({ isExact: true });
    await client.close();
  });

  test('that ends while a question is under way refuses it at once', async () => {
    const { url, sessions } = await serve(() => sessions[0]?.destroy());
    const { outcome } = await ask(url, QUESTION);
    expect(outcome).toMatchObject({ kind: 'refused', late: null });
  });

  test('that is closed by us ends what is under way', async () => {
    const { url, asked } = await serve(() => undefined);
    const client = createNodeClient({ spec: unlimitedNode(url) });
    const refused = expect(client.ask(QUESTION)).rejects.toMatchObject({ code: 'NODE_REFUSED' });
    await expect.poll(() => asked.length).toBe(1);
    await client.close();
    await refused;
  });
});

test('silence ends at the timeout, and the stream is cancelled; an answer that comes at a good rate may take longer', async () => {
  let isCancelled = false;
  const silent = await serve((stream) => stream.on('close', () => (isCancelled = stream.rstCode === 8)));
  const { error, outcome } = await ask(silent.url, QUESTION, { timeoutMs: HANGING_MS });
  expect(error).toContain(`no complete response before the timeout of ${HANGING_MS} ms`);
  expect(outcome).toMatchObject({ late: expect.any(String) });
  await expect.poll(() => isCancelled).toBe(true);

  const filler = Buffer.alloc(64 * 1024);
  // Field 15 of an info, which is not known.
  const tagged = (parts: number) => {
    const length = parts * filler.length;
    return Buffer.from([0x7a, ...[0, 7, 14, 21].map((shift) => ((length >>> shift) & 0x7f) | (shift < 21 ? 0x80 : 0))]);
  };
  const parts = 100;
  const steady = await serve((stream) => {
    const begin = tagged(parts);
    stream.respond(HEADERS, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.write(frame(begin, begin.length + parts * filler.length));
    const startedMs = performance.now();
    let sent = 0;
    const timer = setInterval(() => {
      const isOver = performance.now() - startedMs > 1.5 * STEADY_MS;
      // Sends the rest at the end, because a busy machine calls this less often.
      for (let left = isOver ? parts - sent : 1; left > 0; left -= 1, sent += 1) stream.write(filler);
      if (!isOver) return;
      clearInterval(timer);
      stream.end();
    }, 20);
    stream.on('close', () => clearInterval(timer));
  });
  expect((await ask(steady.url, infosOf(1, USDT), { timeoutMs: STEADY_MS })).answer).toEqual([]);
});

test('an HTTP node is asked by gRPC for the very bytes only, at the ports of its twin', async () => {
  const [full, solid] = [
    await serve((stream) => say(stream, [frame(PAYOUT.bytes)])),
    await serve((stream) => say(stream, [frame(PAYOUT.bytes)])),
  ];
  const grpc = { url: full.url, solidityUrl: solid.url };
  const call = { wantsBytes: true };
  const nowhere = 'http://127.0.0.1:1';
  expect((await ask(nowhere, QUESTION, { spec: { grpc }, call })).answer).toMatchObject({ isExact: true });
  expect((await ask(nowhere, headerAt('solid', 214), { spec: { grpc }, call })).answer).toMatchObject({
    isExact: true,
  });
  expect([full.asked.length, solid.asked.length]).toEqual([1, 1]);
  expect((await ask(nowhere, QUESTION, { spec: { grpc } })).error).toContain('ECONNREFUSED');
  expect((await ask(nowhere, QUESTION, { call })).error).toContain('ECONNREFUSED');
});

test.each<[string, string, object]>([
  // TransactionExtention: constant_result=3, result=4 (Return: result=1, code=2, message=3).
  ['a word', `1a20${'00'.repeat(31)}0522020801`, { kind: 'answered', words: ['5'.padStart(64, '0')] }],
  [
    'a revert, whose result is true',
    `1a00221a08011a16${Buffer.from('REVERT opcode executed').toString('hex')}`,
    { kind: 'answered', words: null },
  ],
  [
    'no contract there',
    `22091002 1a05${Buffer.from('no it').toString('hex')}`.replace(' ', ''),
    { kind: 'refused', reason: 'no it' },
  ],
  ['a NUL', '22041a026100', { kind: 'refused', reason: 'a\ufffd' }],
  ['nothing', '', { kind: 'refused', reason: 'no reason' }],
])('a constant call that answers %s', async (_what, hex, expected) => {
  const { url, asked } = await serve((stream) => say(stream, [frame(Buffer.from(hex, 'hex'))]));
  const question = constantCall('any', USDT, 'balanceOf(address)', 'ab'.repeat(20).padStart(64, '0'));
  expect((await ask(url, question)).answer).toEqual(expected);
  const owner = `41${USDT}`;
  const data = `70a08231${'ab'.repeat(20).padStart(64, '0')}`;
  expect(asked[0]?.body.toString('hex')).toBe(`00000000540a15${owner}1215${owner}2224${data}`);
});
