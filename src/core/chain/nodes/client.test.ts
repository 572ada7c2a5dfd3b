import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type Devnet, startDevnet } from '@quittance/devnet';
import type { AccountHex } from '@quittance/tron/address';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { NILE_HEADER } from '../../../../test/support/build-block.ts';
import { unlimitedNode } from '../../domain/node.ts';
import { createNodeClient, type NodeClient, type Outcome } from './client.ts';
import type { Question } from './node.ts';
import { activeWitnesses, blockAt, blocksBetween, headerAt, infosOf } from './questions.ts';

/** For what ends by the timeout only; everything else has the patience of the default. */
const HANGING_MS = 300;
/** And for what ends by it although bytes keep coming: a busy machine may leave gaps between them, which must not be that long. */
const DRIPPING_MS = 1000;

let devnet: Devnet;
let node: NodeClient;
const QUESTION = headerAt('any');
const USDT = 'd5'.repeat(20) as AccountHex;
type Options = { maxAnswerBytes?: number; timeoutMs?: number };
const outcomes: Outcome[] = [];
const onOutcome = (outcome: Outcome) => outcomes.push(outcome);
const servers: Server[] = [];
beforeAll(async () => {
  devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  node = createNodeClient({ spec: unlimitedNode(devnet.url, 'devnet', { apiKey: 'key' }) });
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.();
    await new Promise((resolve) => server.close(resolve));
  }
});
afterAll(async () => {
  await node.close();
  await devnet.stop();
});

/** A node that answers as it is told; returns its URL. */
async function serve(answer: (response: ServerResponse, request: IncomingMessage) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    answer(response, request);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What a node's refusal looks like to the caller. */
async function refusedBy(
  url: string,
  { apiKey, question = QUESTION, ...options }: Options & { apiKey?: string; question?: Question<unknown> } = {},
) {
  const client = createNodeClient({ spec: unlimitedNode(url, 'a node', { apiKey: apiKey ?? null }), ...options });
  const error = await client.ask(question, { onOutcome }).catch((thrown: Error) => thrown);
  await client.close();
  expect(error).toMatchObject({ code: 'NODE_REFUSED', retryable: true });
  return { message: (error as Error).message, outcome: outcomes.at(-1) };
}

test.each([
  ['https', /does not speak TLS; use http:\/\//],
  ['grpc', /does not speak gRPC; use its gRPC port, or http:\/\//],
  ['grpcs', /does not speak TLS; use grpc:\/\//],
])('a port of plain HTTP that is asked by %s:// says what to write', async (scheme, wanted) => {
  const url = await serve((response) => response.end('{}'));
  expect((await refusedBy(url.replace('http', scheme))).message).toMatch(wanted);
});

test.each(['http', 'grpc'])('a port that hangs up on %s:// may speak TLS', async (scheme) => {
  const server = createTcpServer((socket) => socket.once('data', () => socket.end()));
  servers.push(server as Server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  expect((await refusedBy(`${scheme}://127.0.0.1:${port}`)).message).toMatch(`use ${scheme}s://`);
});

test.each(['http', 'grpc'])('a port at which nothing listens is no matter of the scheme %s://', async (scheme) => {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  expect((await refusedBy(`${scheme}://127.0.0.1:${port}`)).message).not.toContain('write');
});

test('an answer is what the question reads in it', async () => {
  devnet.setFault();
  expect(await node.ask(QUESTION, { onOutcome })).toMatchObject({
    isExact: false,
    shownId: expect.stringMatching(/^0/),
  });
  expect(outcomes.at(-1)).toMatchObject({ kind: 'ok' });
});

test.each([
  ['error-200', /error: class .*lack of computing resources/, null],
  ['bare-text', /not JSON \(.*\): this API is closed/, null],
  ['html', /HTTP \d+|not JSON/, null],
  ['suspended-403', /HTTP 403: .*suspended for 30s/, 30_000],
  ['not-found-404', /HTTP 404/, null],
  ['too-large-413', /HTTP 413/, null],
  ['limited-429', /HTTP 429/, null],
  ['unavailable-503', /HTTP 503/, null],
  ['truncated', /not JSON|terminated|closed/, null],
  ['hang', /no complete response before the timeout of 300 ms/, null],
  ['reset', /socket|reset|closed/i, null],
] as const)('the refusal %s is NODE_REFUSED, worth a retry, and says what was seen', async (kind, message, ms) => {
  devnet.setFault({ kind });
  const patience = kind === 'hang' ? { timeoutMs: HANGING_MS } : {};
  const refused = node.ask(QUESTION, { onOutcome, ...patience });
  await expect(refused).rejects.toMatchObject({ code: 'NODE_REFUSED', retryable: true });
  await expect(refused).rejects.toThrow(message);
  expect(outcomes.at(-1)).toMatchObject({ kind: 'refused', retryAfterMs: ms });
});

test('a node that is not there is NODE_REFUSED', async () => {
  expect((await refusedBy('http://127.0.0.1:1')).message).toContain('ECONNREFUSED');
});

test('a body that drips ends at the timeout of the whole answer', async () => {
  const url = await serve((response) => {
    response.writeHead(200);
    const drip = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(drip));
  });
  expect((await refusedBy(url, { timeoutMs: HANGING_MS })).message).toContain(
    'no complete response before the timeout',
  );
});

/** A node that sends a valid answer as slowly as told: so many bytes of white space every 20 ms, for so long. */
function slowly(bytes: number, forMs: number): Promise<string> {
  return serve((response) => {
    const startedMs = performance.now();
    const answer = JSON.stringify(NILE_HEADER);
    const steady = setInterval(() => {
      response.write(' '.repeat(bytes));
      if (performance.now() - startedMs < forMs) return;
      clearInterval(steady);
      response.end(answer);
    }, 20);
    response.on('close', () => clearInterval(steady));
  });
}

test('what counts is silence: an answer that comes at a good rate may take longer than one that says nothing', async () => {
  const client = createNodeClient({
    spec: unlimitedNode(await slowly(64 * 1024, 2.5 * DRIPPING_MS)),
    timeoutMs: DRIPPING_MS,
  });
  const answer = await client.ask(blockAt(NILE_HEADER.block_header.raw_data.number));
  await client.close();
  expect(answer).toMatchObject({ shownId: NILE_HEADER.blockID });
});

test.each([
  ['at a bad rate takes no longer than one that says nothing', 400],
  ['without end takes five times as long at most, whatever its rate', 64 * 1024],
])('an answer %s', async (_what, bytes) => {
  const question = infosOf(1, USDT);
  const { outcome } = await refusedBy(await slowly(bytes, 60_000), { timeoutMs: DRIPPING_MS, question });
  expect(outcome).toMatchObject({ late: 'slow', isTooLarge: false, mayBeTheQuestion: true });
});

test('an answer larger than the bound is refused, and so is one that is neither object nor array', async () => {
  const large = await serve((response) => response.end(JSON.stringify({ blockID: 'a'.repeat(2000) })));
  expect((await refusedBy(large, { maxAnswerBytes: 1000 })).message).toContain('larger than 1000 bytes');
  const word = await serve((response) => response.end('"ok"'));
  expect((await refusedBy(word)).message).toContain('neither an object nor an array');
  const nothing = await serve((response) => response.end());
  expect((await refusedBy(nothing)).message).toContain('not JSON');
  const half = await serve((response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('{"blockID":');
    setImmediate(() => response.destroy());
  });
  await refusedBy(half);
});

test.each<[string, Question<unknown>, string]>([
  ['a list for a block', blockAt(1), '[1]'],
  ['another object for a block', blockAt(1), '{"block":[]}'],
  ['a list for a header', headerAt('solid'), '[1]'],
  ['a header that is a text', headerAt('any'), '{"blockID":"00","block_header":"x"}'],
  ['an object for infos', infosOf(1, USDT), '{"id":"00"}'],
  ['more blocks than were asked for', blocksBetween(1, 2), JSON.stringify({ block: Array(3).fill(NILE_HEADER) })],
  ['blocks that are no list', blocksBetween(1, 2), '{"block":{}}'],
  ['blocks that are none', blocksBetween(1, 2), '{"block":[null]}'],
  ['an object for the witnesses, which are none', activeWitnesses(), '{"witnesses":{}}'],
])('%s is refused, or says nothing, and may be the doing of the question', async (_what, question, body) => {
  const url = await serve((response) => response.end(body));
  const client = createNodeClient({ spec: unlimitedNode(url) });
  const answer = await client.ask(question, { onOutcome }).catch((error: unknown) => error);
  await client.close();
  if (body.includes('witnesses')) expect(answer).toEqual([]);
  else expect(answer).toMatchObject({ code: 'NODE_REFUSED', retryable: true });
  if (answer instanceof Error) expect(outcomes.at(-1)).toMatchObject({ mayBeTheQuestion: true, isTooLarge: false });
});

test.each<[string, Question<unknown>, string, string]>([
  ['objects in infos', infosOf(1, USDT), '[', '{},'],
  ['lists in infos', infosOf(1, USDT), '[', '[],'],
  ['empty logs', infosOf(1, USDT), '[{"log":[', '{},'],
  ['members', headerAt('any'), '{', '"a":{},'],
  ['transactions', blockAt(1), '{"transactions":[', '{},'],
])('a bomb of %s is left as soon as what is kept of it is too much', async (_what, question, begin, part) => {
  let sentBytes = 0;
  const chunk = part.repeat(Math.ceil((64 * 1024) / part.length));
  const url = await serve((response) => {
    response.write(begin);
    const fill = () => {
      while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
    };
    response.on('drain', fill);
    fill();
  });
  const { outcome } = await refusedBy(url, { question });
  expect(outcome).toMatchObject({ isTooLarge: true, late: null });
  // Of the four gigabytes that the longest of these bounds would be when parsed.
  expect(sentBytes).toBeLessThan(16 * 1024 * 1024);
});

test('a bomb in what nobody reads is passed over, up to the bound of the answer', async () => {
  const bomb = `[{"id":"00","internal_transactions":[${'{},'.repeat(1_000_000)}{}]}]`;
  const url = await serve((response) => response.end(bomb));
  const client = createNodeClient({ spec: unlimitedNode(url) });
  const infos = await client.ask(infosOf(1, USDT));
  await client.close();
  expect(infos).toEqual([{ id: '00' }]);
});

/** What a java-tron of its own says at the port of its other API: Jetty's page. */
const PAGE =
  '<html><head><title>Error 405 HTTP method POST is not supported by this URL</title></head><body>Powered by Jetty</body></html>';

test('each API is asked at its own port, and a node that serves only one of them is told so in words', async () => {
  const only = (api: string) =>
    serve((response, { url = '' }) => {
      if (url.startsWith(api)) response.end(JSON.stringify(NILE_HEADER));
      else response.writeHead(405, { 'content-type': 'text/html;charset=iso-8859-1' }).end(PAGE);
    });
  const [full, solid] = [await only('/wallet/'), await only('/walletsolidity/')];
  const client = createNodeClient({ spec: unlimitedNode(full, 'ours', { solidityUrl: solid }) });
  for (const side of ['any', 'solid'] as const) {
    expect(await client.ask(headerAt(side))).toMatchObject({ shownId: NILE_HEADER.blockID });
  }
  await client.close();
  const { message } = await refusedBy(full, { question: headerAt('solid') });
  expect(message).toContain('HTTP 405: <html>');
  expect(message).toContain('it does not serve /walletsolidity here');
  expect(message).toContain('#solidity=');
  expect((await refusedBy(solid)).message).toContain('it does not serve /wallet here');
});

test.each([
  ['seconds', { 'retry-after': '7' }, 7000],
  ['a date, which counts from the answer', { date: at(0), 'retry-after': at(9000) }, 9000],
  ['more than five minutes', { 'retry-after': '86400' }, 300_000],
  ['a date that has passed', { date: at(9000), 'retry-after': at(0) }, 0],
  ['nonsense', { 'retry-after': 'soon' }, null],
] as const)('Retry-After with %s is understood', async (_what, headers, ms) => {
  const url = await serve((response) => {
    response.writeHead(429, headers);
    response.end('{"Error":"Too Many Requests"}');
  });
  expect((await refusedBy(url)).outcome).toMatchObject({ retryAfterMs: ms });
});

function at(ms: number): string {
  return new Date(Date.UTC(2026, 8, 1) + ms).toUTCString();
}

test.each([
  ['an error page in gzip', 503, gzipSync('<html>busy</html>')],
  ['an error page in UTF-16', 503, Buffer.from('busy', 'utf16le')],
  ['a NUL that is escaped', 200, Buffer.from('{"Error":"busy\\u0000\\ud800"}')],
])('%s has no control characters in the message', async (_what, status, body) => {
  const url = await serve((response) => response.writeHead(status).end(body));
  const { message, outcome } = await refusedBy(url);
  expect(message).toMatch(/\ufffd/);
  expect(message + (outcome?.kind === 'refused' && outcome.reason)).not.toMatch(/[\p{Cc}\p{Cs}]/u);
});

test('no message holds the key or the path of the node, even where the node repeats them', async () => {
  const url = await serve((response) => {
    response.writeHead(401);
    response.end('{"Error":"no access to /t0ken/v1/wallet/getblock with the key s3cret"}');
  });
  const { message, outcome } = await refusedBy(`${url}/t0ken/v1`, { apiKey: 's3cret' });
  expect(message).toBe(`${url}/wallet/getblock: HTTP 401: {"Error":"no access to …/wallet/getblock with the key …"}`);
  expect(JSON.stringify(outcome)).not.toMatch(/t0ken|s3cret/);
});
