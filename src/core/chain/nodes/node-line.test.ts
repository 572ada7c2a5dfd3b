import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AccountHex } from '@quittance/tron/address';
import { describe, expect, onTestFinished, test } from 'vitest';
import { unlimitedNode } from '../../domain/node.ts';
import { unixMs } from '../../domain/time.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { logsBetween } from '../verify/read-by-logs.ts';
import { createAdaptiveTimeout, createNodeLine } from './node-line.ts';
import { headerAt } from './questions.ts';

/** For what ends by itself, however slow the machine; and for what ends by the timeout only. */
const PATIENT_MS = 10_000;
const HANGING_MS = 150;
const QUESTION = headerAt('any');

function open(url: string, timeoutMs = PATIENT_MS) {
  const line = createNodeLine({
    spec: unlimitedNode(url),
    origin: url,
    network: 'devnet',
    timeoutMs,
    patience: createAdaptiveTimeout(),
    now: () => unixMs(Date.now()),
    clockMs: () => performance.now(),
    random: () => 0,
    log: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
    closing: new AbortController().signal,
    isAlone: () => false,
  });
  onTestFinished(() => line.close());
  return line;
}

/** A line to a node that answers as it is told. */
async function lineTo(answer: RequestListener, timeoutMs = PATIENT_MS) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, timeoutMs);
}

const DOINGS_OF_THE_QUESTION: [string, RequestListener, timeoutMs?: number][] = [
  ['is too large', (_request, response) => response.end(JSON.stringify({ log: 'a'.repeat(2000) }))],
  ['does not come in time', () => undefined, HANGING_MS],
  ['begins and does not end in time', (_request, response) => response.write('{'), HANGING_MS],
  [
    'is cut off',
    (_request, response) => response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy()),
  ],
  ['is an error', (_request, response) => response.end('{"Error":"class java.lang.NullPointerException : null"}')],
  ['is the error of a proxy', (_request, response) => response.writeHead(502).end('Bad Gateway')],
];

describe('a question that a stranger chose does not pause a node whose answer', () => {
  test.each(DOINGS_OF_THE_QUESTION)('%s; of the watcher it does', async (_what, answer, timeoutMs) => {
    const line = await lineTo(answer, timeoutMs);
    const ask = (isOptional: boolean) => line.ask(QUESTION, { maxBytes: 1000, isOptional });
    await expect(ask(true)).rejects.toMatchObject({ code: 'NODE_REFUSED' });
    expect({ isOpen: line.isOpen(), refusals: line.seen.refusals }).toEqual({ isOpen: true, refusals: 1 });
    await expect(ask(false)).rejects.toMatchObject({ code: 'NODE_REFUSED' });
    expect(line.isOpen()).toBe(false);
  });
});

describe('a question that a stranger chose does pause a node that', () => {
  test.each<[string, RequestListener]>([
    ['limits us', (_request, response) => response.writeHead(429).end()],
    ['refuses our key', (_request, response) => response.writeHead(401).end()],
    ['asks to be left alone', (_request, response) => response.writeHead(503, { 'retry-after': '7' }).end()],
  ])('%s', async (_what, answer) => {
    const line = await lineTo(answer);
    await expect(line.ask(QUESTION, { isOptional: true })).rejects.toMatchObject({ code: 'NODE_REFUSED' });
    expect(line.isOpen()).toBe(false);
  });

  test('is not there', async () => {
    const line = open('http://127.0.0.1:1');
    await expect(line.ask(QUESTION, { isOptional: true })).rejects.toThrow('ECONNREFUSED');
    expect(line.isOpen()).toBe(false);
  });
});

test('a question that a stranger chose keeps nobody from a node that is tried again', async () => {
  const line = await lineTo(() => undefined, HANGING_MS);
  const asked = line.ask(QUESTION, { isOptional: true });
  await expect.poll(() => line.seen.requests).toBe(1);
  expect(line.seen.inFlight).toBe(0);
  await expect(asked).rejects.toMatchObject({ code: 'NODE_REFUSED' });
});

test('answers to questions that have a substitute end no row of failures of the node, and their refusals begin none', async () => {
  let isWell = false;
  const line = await lineTo((request, response) => {
    const isLogs = request.url === '/jsonrpc';
    if (isLogs === isWell) response.writeHead(429).end('{}');
    else response.end(isLogs ? '{"result":[]}' : '{}');
  });
  const logs = logsBetween(1, 2, 'd5'.repeat(20) as AccountHex);
  await expect(line.ask(QUESTION)).rejects.toThrow('429');
  expect(line.pause.failures()).toBe(1);
  line.pause.shorten(0);
  for (let asked = 0; asked < 4; asked += 1) await line.ask(logs);
  expect(line.pause.failures()).toBe(1);
  isWell = true;
  await expect(line.ask(logs)).rejects.toThrow('429');
  expect([line.isOpenFor('logs'), line.isOpenFor('ranges'), line.isOpenFor('bytes'), line.isOpen()]).toEqual([
    ...[false, true, false, true],
  ]);
  await line.ask(QUESTION);
});
