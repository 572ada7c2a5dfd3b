import { afterAll, beforeAll, expect, test } from 'vitest';
import { timeOfId } from '../../src/core/domain/ids.ts';
import { longTest } from '../support/some-cases.ts';
import { expectUnharmed } from './after-fuzz.ts';
import { type Bend, startBendingRelay } from './bending-relay.ts';
import { fuzz } from './fuzz.ts';
import { type FuzzedService, startFuzzedService } from './fuzz-service.ts';
import { createMetricsOracle } from './metrics-oracle.ts';
import { readResponses, type WireResponse } from './read-responses.ts';
import { send } from './send.ts';
import { fillNames } from './shot.ts';

/** `npm run test:long` sends twenty times as much, with other seeds. */
const SEED = 1;

let fuzzed: FuzzedService;
beforeAll(async () => {
  fuzzed = await startFuzzedService();
});
afterAll(() => fuzzed.service.stop());

test('a thousand hostile requests on split and pipelined connections are each answered as documented, and harm nothing', async () => {
  const figures = await fuzz(fuzzed.target, { connections: 220, seed: SEED });
  expect(figures.requests).toBeGreaterThan(1000);
  // Not for each request: nothing is answered after an answer that closes the connection, and some clients disconnect.
  expect(figures.answers).toBeGreaterThan(600);
  await expectUnharmed(fuzzed, figures);
});

longTest('the port for metrics bears the same', async () => {
  const oracle = createMetricsOracle([fuzzed.service.project.apiKey]);
  const { answers } = await fuzz(
    { ...fuzzed.target, port: fuzzed.metricsPort, oracle },
    { connections: 40, seed: SEED },
  );
  expect(answers).toBeGreaterThan(50);
});

test.each<[fault: string, bend: Bend, complaint: RegExp]>([
  ['a 500', (answer) => answer.replaceAll('HTTP/1.1 404 Not Found', 'HTTP/1.1 500 Not Found'), /the status is 500/],
  ['a field less', (answer) => answer.replaceAll('"expiresAt":', '"expiredAt":'), /does not fit its schema/],
  [
    'an undocumented status',
    (answer) => answer.replaceAll('HTTP/1.1 401', 'HTTP/1.1 402'),
    /status is not|says status|not documented/,
  ],
  [
    'an undocumented code',
    (answer) => answer.replaceAll('"INVOICE_NOT_FOUND"', '"INVOICE_NOT_THERE"'),
    /does not fit its schema/,
  ],
  ['an answer without its id', (answer) => answer.replaceAll(/x-request-id/gi, 'x-request-no'), /X-Request-Id is ""/],
  ['the answer of another request', (answer) => answer.replaceAll('nowhere/0', 'nowhere/1'), /not the answer to/],
  ['a body that is cut', (answer) => answer.replaceAll('"code":', '"code"'), /is not whole|no status line/],
  ['a tag of the payer’s in a page', (answer) => answer.replaceAll('<title>', '<q7x   '), /a planted tag/],
  ['silence', (answer) => (answer.includes('nowhere') ? null : answer), /the server hangs/],
])('it finds %s', async (fault, bend, complaint) => {
  const relay = await startBendingRelay(fuzzed.target.port, bend);
  try {
    const target = { ...fuzzed.target, port: relay.port };
    await expect(
      fuzz(target, { connections: 80, seed: SEED, hangMs: fault === 'silence' ? 400 : 8000, isShrinking: false }),
    ).rejects.toThrow(complaint);
  } finally {
    await relay.stop();
  }
});

// Each of the fuzzer's findings by itself.

const HOST = 'Host: q\r\n';
const CLOSE = 'Connection: close\r\n';
const KEY = 'X-Api-Key: {{key}}\r\n';

async function ask(text: string): Promise<WireResponse[]> {
  const filled = fillNames(text, fuzzed.target.names);
  const { bytes } = await send(fuzzed.target.port, { text: filled, cuts: [], until: 'await-close' });
  return readResponses(bytes, ['GET', 'GET', 'GET']);
}

function reported(responses: WireResponse[]): string[] {
  return responses.map(({ status, body }) => `${status} ${JSON.parse(body).code ?? ''}`.trim());
}

function expectOrdinary(response: WireResponse | undefined): void {
  expect(response?.headers.get('x-request-id')).toMatch(/^req_/);
  expect(response?.headers.get('content-type')).toMatch(/json/);
}

test('what is no HTTP is refused after the answers to the requests before it, and never in their place', async () => {
  const read = `GET /v1/invoices/{{pending}} HTTP/1.1\r\n${HOST}${KEY}\r\n`;
  expect(reported(await ask(`${read}${read}no HTTP\r\n\r\n`))).toEqual(['200', '200', '400 INVALID_REQUEST']);
});

test('a body that breaks off into something else is refused once, also when its request was answered before', async () => {
  const head = `POST /v1/invoices HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n`;
  expect(
    reported(await ask(`${head}${KEY}Content-Type: application/json\r\nIdempotency-Key: k\r\n\r\nzz\r\n`)),
  ).toEqual(['400 INVALID_REQUEST']);
  expect((await ask(`${head}\r\nzz\r\n`)).length).toBe(1);
});

test('a request that wants another protocol is answered, and the connection ends, so that nothing behind it waits in vain', async () => {
  const upgrade = `GET /healthz HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
  const [answer, ...more] = await ask(`${upgrade}GET /nowhere HTTP/1.1\r\n${HOST}\r\n`);
  expect([answer?.status, answer?.closes, more.length]).toEqual([200, true, 0]);
});

test.each([
  ['no Host', ''],
  ['two Hosts', `${HOST}Host: r\r\n`],
])('a request with %s is refused like any other', async (_what, hosts) => {
  const responses = await ask(`GET /healthz HTTP/1.1\r\n${hosts}${CLOSE}\r\n`);
  expect(reported(responses)).toEqual(['400 INVALID_REQUEST']);
  expectOrdinary(responses[0]);
});

test('HTTP/1.0 needs no Host', async () => {
  expect(reported(await ask('GET /healthz HTTP/1.0\r\n\r\n'))).toEqual(['200']);
});

test('an expectation that nobody knows is passed over', async () => {
  const responses = await ask(`GET /healthz HTTP/1.1\r\n${HOST}${CLOSE}Expect: a-miracle\r\n\r\n`);
  expect(reported(responses)).toEqual(['200']);
  expectOrdinary(responses[0]);
});

test('a target with scheme and host is the path behind them, also where the method is wrong', async () => {
  const target = 'http://pay.example/v1/invoices';
  const responses = await ask(`DELETE ${target} HTTP/1.1\r\n${HOST}${CLOSE}\r\n`);
  expect(reported(responses)).toEqual(['405 METHOD_NOT_ALLOWED']);
  expect(responses[0]?.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
});

test('a form whose type is no media type is told so', async () => {
  const form = `POST /c/{{pendingToken}}/ask HTTP/1.1\r\n${HOST}${CLOSE}Content-Type: nonsense\r\nContent-Length: 5\r\n\r\nfee=1`;
  expect(reported(await ask(form))).toEqual(['415 UNSUPPORTED_MEDIA_TYPE']);
});

test('headers behind the two thousandth count like those before', async () => {
  const many = 'a:b\r\n'.repeat(2500);
  const responses = await ask(`GET /v1/invoices/{{pending}} HTTP/1.1\r\n${many}${HOST}${KEY}${CLOSE}\r\n`);
  expect(reported(responses)).toEqual(['200']);
});

function post(path: string, body: string): Promise<WireResponse[]> {
  const headers = `${HOST}${KEY}${CLOSE}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return ask(`POST ${path} HTTP/1.1\r\n${headers}\r\n${body}`);
}

test('half of a surrogate pair names no invoice that a sandbox could pay', async () => {
  expect(reported(await post('/sandbox/pay', '{"invoice":"\\ud800"}'))).toEqual(['404 INVOICE_NOT_FOUND']);
});

test('seconds that are thousands of lists in each other are no number', async () => {
  const deep = `{"seconds":${'['.repeat(4000)}${']'.repeat(4000)}}`;
  expect(reported(await post('/sandbox/advance', deep))).toEqual(['400 INVALID_REQUEST']);
});

test('however often deadlines come forward, none comes before its invoice', async () => {
  const year = `{"seconds":${365 * 86_400}}`;
  expect(reported([...(await post('/sandbox/advance', year)), ...(await post('/sandbox/advance', year))])).toEqual([
    '200',
    '200',
  ]);
  const [answer] = await ask(`GET /v1/invoices/{{pending}} HTTP/1.1\r\n${HOST}${KEY}${CLOSE}\r\n`);
  const { invoiceId, expiresAt } = JSON.parse(answer?.body ?? '');
  expect(Date.parse(expiresAt)).toBe(timeOfId(invoiceId));
});
