import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Devnet, startDevnet } from '../devnet/devnet.ts';
import { createNodeClient, type NodeClient, type Outcome } from './node-client.ts';

/** For what ends by the timeout only; everything else has the patience of the default. */
const HANGING_MS = 300;

let devnet: Devnet;
let node: NodeClient;
const outcomes: Outcome[] = [];
const onOutcome = (outcome: Outcome) => outcomes.push(outcome);
const servers: Server[] = [];
beforeAll(async () => {
  devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  node = createNodeClient({ url: `${devnet.url}/`, apiKey: 'key' });
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
afterAll(async () => {
  await node.close();
  await devnet.stop();
});

/** A node that answers as it is told; returns its URL. */
async function serve(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What a node's refusal looks like to the caller. */
async function refusedBy(url: string, options: { apiKey?: string; maxAnswerBytes?: number; timeoutMs?: number } = {}) {
  const client = createNodeClient({ url, apiKey: null, ...options });
  const error = await client.post('/wallet/getblock', {}, { onOutcome }).catch((thrown: Error) => thrown);
  await client.close();
  expect(error).toMatchObject({ code: 'NODE_REFUSED', retryable: true });
  return { message: (error as Error).message, outcome: outcomes.at(-1) };
}

test('an answer is parsed JSON', async () => {
  devnet.setFault();
  expect(await node.post('/wallet/getblock', { detail: false }, { onOutcome })).toHaveProperty('blockID');
  expect(outcomes.at(-1)).toMatchObject({ kind: 'ok' });
});

test.each([
  ['error-200', /error: class .*lack of computing resources/, null],
  ['bare-text', /not JSON: this API is closed/, null],
  ['html', /HTTP \d+|not JSON/, null],
  ['suspended-403', /HTTP 403: .*suspended for 30s/, 30_000],
  ['not-found-404', /HTTP 404/, null],
  ['too-large-413', /HTTP 413/, null],
  ['limited-429', /HTTP 429/, null],
  ['unavailable-503', /HTTP 503/, null],
  ['truncated', /not JSON|terminated|closed/, null],
  ['hang', /no whole answer before the timeout of 300 ms/, null],
  ['reset', /socket|reset|closed/i, null],
] as const)('the refusal %s is NODE_REFUSED, worth a retry, and says what was seen', async (kind, message, ms) => {
  devnet.setFault({ kind });
  const patience = kind === 'hang' ? { timeoutMs: HANGING_MS } : {};
  const refused = node.post('/wallet/getblock', { detail: false }, { onOutcome, ...patience });
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
  expect((await refusedBy(url, { timeoutMs: HANGING_MS })).message).toContain('timeout of 300 ms');
});

test('an answer larger than the bound is refused, and so is one that is neither object nor array', async () => {
  const large = await serve((response) => response.end(JSON.stringify({ blockID: 'a'.repeat(2000) })));
  expect((await refusedBy(large, { maxAnswerBytes: 1000 })).message).toContain('larger than 1000 bytes');
  const word = await serve((response) => response.end('"ok"'));
  expect((await refusedBy(word)).message).toContain('neither object nor array');
  const nothing = await serve((response) => response.end());
  expect((await refusedBy(nothing)).message).toContain('not JSON');
  const half = await serve((response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('{"blockID":');
    setImmediate(() => response.destroy());
  });
  await refusedBy(half);
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

test('no message holds the key or the path of the node, even where the node repeats them', async () => {
  const url = await serve((response) => {
    response.writeHead(401);
    response.end('{"Error":"no access to /t0ken/v1/wallet/getblock with the key s3cret"}');
  });
  const { message, outcome } = await refusedBy(`${url}/t0ken/v1`, { apiKey: 's3cret' });
  expect(message).toBe(`${url}/wallet/getblock: HTTP 401: {"Error":"no access to …/wallet/getblock with the key …"}`);
  expect(JSON.stringify(outcome)).not.toMatch(/t0ken|s3cret/);
});
