import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { NIL_UUID } from '../../src/core/domain/ids.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { showRequest as showing } from '../../src/faces/operator/subjects/requests.ts';

const showRequest = (deps: object, actor: object, wanted: object) =>
  showing.run(deps as never, actor as never, wanted as never);

import { type Answer, call, createInvoice, eventually, type TestService } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { type LoggedService, readLog, startLogged } from './logged.ts';

let logged: LoggedService;
beforeAll(async () => {
  logged = await startLogged();
});
afterAll(() => logged.stop());

const shop = () => ({ url: logged.url, project: logged.project }) as TestService;
const keyed = () => ({ 'x-api-key': logged.project.apiKey });
const idOf = ({ headers }: Answer) => String(headers['x-request-id']);

/** Returns an answer's log entry as soon as it exists. */
function shown(answer: Answer) {
  const find = () =>
    showRequest({ db: logged.service.db }, commandActor('ana'), { requestId: idOf(answer) }).catch(() => null);
  return eventually(find, (found) => found !== null);
}

describe('a request is found by the X-Request-Id of its answer', () => {
  test('with its key, its invoice, and how it ended', async () => {
    const { project } = logged;
    const body = { externalId: `ört-${randomUUID()} "\\`, amount: '12.50' };
    const before = Date.now();
    const created = await createInvoice(shop(), { body });
    const { time, tookMs, ...found } = (await shown(created)) ?? { time: '', tookMs: -1 };
    expect(found).toEqual({
      requestId: idOf(created),
      projectId: project.projectId,
      key: { keyId: expect.stringMatching(/^key_/), name: 'test' },
      ...{ method: 'POST', route: '/v1/invoices', status: 201, code: null },
      ...{ externalId: body.externalId, invoiceId: created.body.invoiceId, errors: [], body: null },
    });
    expect(Date.parse(time)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
    expect(tookMs).toBeGreaterThanOrEqual(0);

    const read = await call(`${logged.url}/v1/invoices/${created.body.invoiceId}`, { headers: keyed() });
    expect(await shown(read)).toMatchObject({
      ...{ method: 'GET', route: '/v1/invoices/:invoiceId', status: 200, externalId: body.externalId },
    });
    const other = await createInvoice(shop(), { body: { ...body, amount: '13' } });
    expect(await shown(other)).toMatchObject({
      ...{ status: 409, code: 'IDEMPOTENCY_CONFLICT', externalId: body.externalId },
      errors: [
        { field: 'externalId', code: 'USED_BEFORE' },
        { field: 'amount', code: 'DIFFERS' },
      ],
      body: '{amount: string, asset: string, network: string, externalId: string}',
    });
  });

  test('if it was refused, by a route or before', async () => {
    const get = (path: string, headers = {}) => call(`${logged.url}${path}`, { headers });
    const { projectId } = logged.project;
    const invalid = await createInvoice(shop(), { body: { amount: '-1', externalId: 'of a wrong body' } });
    const answers = [invalid, await get('/v1/invoices/x', keyed()), await get('/v1/invoice', keyed())];
    expect(await Promise.all([...answers, await get('/v1/invoices/x')].map(shown))).toMatchObject([
      {
        ...{ status: 400, code: 'INVALID_REQUEST', externalId: null, projectId },
        errors: [{ field: 'amount', code: expect.stringMatching(/^[A-Z_]+$/) }],
        body: expect.stringContaining('amount: string'),
      },
      { status: 404, code: 'INVOICE_NOT_FOUND', route: '/v1/invoices/:invoiceId', projectId },
      // The key is cached by now, although this request didn't need it.
      { status: 404, code: 'ROUTE_NOT_FOUND', route: null, projectId },
      { status: 401, code: 'UNAUTHENTICATED', projectId: null, key: null },
    ]);
  });

  test('and nothing else is kept: no health, no page, no asset, no document', async () => {
    const paths = [
      '/healthz',
      '/readyz',
      '/openapi.json',
      '/docs',
      '/llms.txt',
      '/c/none',
      '/assets/none',
      '/v1',
      '/nothing',
    ];
    const others = await Promise.all(
      paths.map(async (path) => (await fetch(logged.url + path)).headers.get('x-request-id')),
    );
    await shown(await createInvoice(shop()));
    const kept = (await readLog(logged.database)).map(({ id }) => id);
    expect(others.filter((id) => kept.includes(id))).toEqual([]);
  });
});

test('a secret in a path, a query, a header or a body is nowhere in the log', async () => {
  const secret = `hunter2${randomUUID().replaceAll('-', '')}`;
  const answers: Answer[] = [];
  const send = async (path: string, headers: Record<string, string> = {}, body?: string) => {
    const method = body === undefined ? 'GET' : 'POST';
    for (const own of [{}, keyed()]) {
      answers.push(
        await call(logged.url + path, {
          method,
          headers: { ...own, ...headers },
          ...(body === undefined ? {} : { body }),
        }),
      );
    }
  };
  await send(`/v1/invoices/${secret}`);
  await send(`/v1/${secret}`);
  await send(`/v1/invoices?externalId=${secret}`);
  await send(`/v1/invoices?${secret}=${secret}`);
  await send(`/v1/events?after=${secret}`);
  await send('/v1/invoices/x', { 'x-api-key': `qt_test_${secret}`, authorization: secret, cookie: secret });
  await send('/v1/invoices/x', { 'user-agent': secret, 'x-request-id': secret, 'x-forwarded-for': secret });
  const json = { 'content-type': 'application/json', 'idempotency-key': secret };
  await send('/v1/invoices', json, JSON.stringify({ amount: secret, externalId: secret, [secret]: secret }));
  await send('/v1/invoices', json, secret);
  const log = await eventually(
    () => readLog(logged.database),
    (rows) => answers.every((answer) => rows.some(({ id }) => id === idOf(answer))),
  );
  expect(answers.length).toBe(18);
  expect(JSON.stringify(log)).not.toContain(secret);
  expect(JSON.stringify(log)).not.toContain(logged.project.apiKey);
});

test('each of many requests at the same time is written once, and none is lost when the process stops', async () => {
  const own = await startLogged();
  onTestFinished(() => own.stop());
  const target = { url: own.url, project: own.project } as TestService;
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, client) => {
      const mine: Answer[] = [];
      for (let n = 0; n < 30; n += 1) {
        const key = client % 4 === 0 ? 'wrong' : own.project.apiKey;
        mine.push(
          n % 3 === 0
            ? await createInvoice(target, { apiKey: key, body: { amount: `${client + 1}.${n + 10}` } })
            : await call(`${own.url}/v1/invoices/x`, { headers: { 'x-api-key': key } }),
        );
      }
      return mine;
    }),
  );
  await own.stopService();
  const log = await readLog(own.database);
  const byId = new Map(log.map((request) => [request.id, request]));
  expect(log).toHaveLength(1200);
  for (const answer of answers.flat()) {
    expect(byId.get(idOf(answer))).toMatchObject({ status: answer.status });
  }
});

longTest(
  'what is turned away is kept 600 times of a minute, whatever comes, and a shop’s own requests all the same',
  async () => {
    const own = await startLogged();
    onTestFinished(() => own.stop());
    own.setTime(Math.floor(Date.now() / 60_000) * 60_000);
    const get = (path: string, headers = {}) => call(`${own.url}/v1/${path}`, { headers });
    const key = { 'x-api-key': own.project.apiKey };
    await get('invoices/x', key);
    for (let n = 0; n < 70; n += 1) {
      // Without a key; with a cached key at a URL without key limits; and correctly.
      const burst = Array.from({ length: 10 }, () => [get('invoices/x'), get('nothing', key), get('invoices/x', key)]);
      await Promise.all(burst.flat());
    }
    const metrics = await (await fetch(`${own.service.metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^quittance_requests_unlogged_total\{reason="flood"\} 200$/m);
    await eventually(
      () => own.logged().filter(({ msg }) => msg.includes('missing from the request log')),
      (lines) => lines.length > 0,
    );
    await own.stopService();
    const log = await readLog(own.database);
    const count = (fits: (request: (typeof log)[number]) => boolean) => log.filter(fits).length;
    expect(count(({ project_id }) => project_id === NIL_UUID)).toBe(600);
    expect(count(({ code }) => code === 'ROUTE_NOT_FOUND')).toBe(600);
    expect(count(({ code }) => code === 'INVOICE_NOT_FOUND')).toBe(701);
    // One line a minute, and the clock is frozen.
    expect(own.logged().filter(({ msg }) => msg.includes('missing from the request log'))).toHaveLength(1);
  },
);

test('of a shop in a loop, 60 refusals a minute are explained, and all are kept', async () => {
  const own = await startLogged();
  onTestFinished(() => own.stop());
  own.setTime(Math.floor(Date.now() / 60_000) * 60_000);
  const target = { url: own.url, project: own.project } as TestService;
  for (let n = 0; n < 9; n += 1) {
    await Promise.all(Array.from({ length: 10 }, () => createInvoice(target, { body: { amount: '-1' } })));
  }
  own.setTime(Math.floor(Date.now() / 60_000) * 60_000 + 60_000);
  await createInvoice(target, { body: { amount: '-1' } });
  await own.stopService();
  const log = await readLog(own.database);
  expect(log).toHaveLength(91);
  expect(log.filter(({ errors }) => errors !== undefined)).toHaveLength(61);
  expect(log.filter(({ body }) => body !== undefined)).toHaveLength(61);
});

test('a process that shall keep no requests keeps none', async () => {
  const own = await startLogged(false);
  onTestFinished(() => own.stop());
  await createInvoice({ url: own.url, project: own.project } as TestService);
  await own.stopService();
  expect(await readLog(own.database)).toEqual([]);
});
