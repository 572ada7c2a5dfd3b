import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { startRatePolling } from '../../src/core/webhooks/poll-rates.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import type { OperationDeps } from '../../src/faces/operator/operation.ts';
import { enableAdapter, listAdapters } from '../../src/faces/operator/subjects/adapters.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestProject, eventually, startTestService, type TestService } from '../support/service.ts';
import { startFastWatch } from '../tampering/fast-watch.ts';
import { orderAtEpay, orderAtEpusdt, send } from './fixture.ts';

let service: TestService;
beforeAll(async () => {
  // Each test runs its own rate polling.
  service = await startTestService({ config: { roles: ['api', 'watcher'], rowMacs: 'require' } });
});
afterAll(() => service.stop());

const now = () => unixMs(service.clock.now());

/** Starts a source with a replaceable answer. */
async function startSource(first: RequestListener) {
  let answer = first;
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/usdt?key=h0rse`,
    answer: (next: RequestListener) => {
      answer = next;
    },
  };
}

const says =
  (text: string): RequestListener =>
  (_, response) =>
    response.end(text);
const price = (rate: string, extra = '') => says(`{"tether":{"cny":${rate}${extra}}}`);

type Given = Parameters<typeof enableAdapter.read>[0];

function operationDeps(localTargets = true): OperationDeps {
  const masterKeys = TEST_KEY_RING.keys().map(({ bytes }) => bytes.toString('base64'));
  const config = { masterKeys, databaseUrl: 'postgres://', dataDir: '/nowhere', webhooks: { localTargets } };
  return { db: service.db, now, random: randomBytes, config, note: () => undefined } as never;
}

async function enable(projectId: string, url: string, given: Partial<Given> = {}) {
  const source = { rateUrl: url, ratePath: '/tether/cny', rateMin: '6.5', rateMax: '8', rateMaxAge: '10m' };
  const wanted = enableAdapter.read({ kind: 'epusdt', projectId, ...source, ...given } as Given, now());
  return enableAdapter.run(operationDeps(), commandActor('anna'), wanted);
}

/** Creates a project with an adapter whose rate comes from this source, and the polling for it. */
async function adapterOf(source: { url: string }, given: Partial<Given> = {}) {
  const { projectId } = await createTestProject(service.db, { addressCount: 1 });
  const adapter = await enable(projectId, source.url, given);
  const id = decodeId('whe', adapter.adapterId) ?? '';
  const order = (fields: Record<string, unknown> = {}) =>
    orderAtEpusdt({ url: 'http://127.0.0.1:1' }, fields, adapter.secret ?? '');
  return {
    ...{ id, adapter, projectId, order },
    create: (asked: object = order()) =>
      send(`${service.url}${adapter.path}/api/v1/order/create-transaction`, { body: JSON.stringify(asked) }),
    row: async () =>
      (
        await runSql(service, 'select read_micro, read_at, read_mac, mac from webhook_endpoints where id = $1', [id])
      )[0] ?? {},
    alarm: async () =>
      (
        await runSql(
          service,
          `select detail from alarms where kind = 'rate-old' and subject = $1 and resolved_at is null`,
          [adapter.adapterId],
        )
      )[0]?.['detail'],
    invoices: async () =>
      Number(
        (
          await runSql(
            service,
            'select count(*) from invoices i join projects p on p.id = i.project_id where p.id = $1',
            [decodeId('prj', projectId)],
          )
        )[0]?.['count'],
      ),
  };
}

function startKeeper(options: Partial<Parameters<typeof startRatePolling>[0]> = {}) {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  const deps = { db: service.db, now, log, localTargets: true, holder: randomUUID(), pollMs: 10 };
  const keeper = startRatePolling({ ...deps, ...options });
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= keeper.stop();
    return stopped;
  };
  onTestFinished(stop);
  return { lines, stop };
}

const MINUTE = 60_000;
/** For sources that hang. Other sources get the normal timeout. */
const SHORT = { timeoutMs: 300 };
/** Waits until the source was queried once more and its answer is stored. */
async function askedAgain(source: { asked: string[] }) {
  const before = source.asked.length;
  service.clock.advance(MINUTE);
  await eventually(
    () => source.asked.length,
    (count) => count > before,
  );
}

test('an order costs what the source says, and what it says later counts for later orders', async () => {
  const source = await startSource(price('7.2'));
  const { adapter, create, order, row } = await adapterOf(source);
  expect(adapter).toMatchObject({ rate: '7.2', rateSource: { path: '/tether/cny', maxAge: '10m', isTooOld: false } });
  const first = order({ amount: 100 });
  const { data } = (await create(first)).body;
  expect(Math.floor(data.actual_amount * 100)).toBe(1389);
  startKeeper();
  source.answer(price('7.0000009'));
  await askedAgain(source);
  await eventually(row, ({ read_micro }) => read_micro === '7000000' || read_micro === 7_000_000n);
  expect(Math.floor((await create(order({ amount: 100 }))).body.data.actual_amount * 100)).toBe(1429);
  // The same order gives the same invoice, whatever the rate.
  expect((await create(first)).body.data).toEqual(data);
});

test('a source that stops is an alarm at half of the limit; after it no order is taken, and with the next rate they are again', async () => {
  const source = await startSource(price('7.2'));
  const { adapter, create, order, alarm, invoices, projectId } = await adapterOf(source);
  const { lines } = startKeeper();
  const first = order();
  const { data } = (await create(first)).body;
  source.answer((_, response) => response.writeHead(503).end());
  await askedAgain(source);
  expect(await alarm()).toBeUndefined();
  for (let minute = 2; minute <= 6; minute += 1) await askedAgain(source);
  const detail = await eventually(alarm, (found) => found !== undefined);
  expect(detail).toMatch(
    /^The rate for whe_\w+ dates from .*http_503: .*Quittance rejects orders starting at .*\. .*adapter enable --kind epusdt$/,
  );
  expect(detail).not.toContain('h0rse');
  expect((await create()).body.status_code).toBe(200);
  service.clock.advance(5 * MINUTE);
  const before = await invoices();
  const refused = await create();
  expect(refused.body).toMatchObject({ status_code: 10006, data: null });
  expect(refused.body.message).toContain('rate calculation failed: the last known rate is too old');
  expect(refused.body.message).toContain('adapter list');
  expect(await invoices()).toBe(before);
  // The order already has its invoice.
  expect((await create(first)).body.data).toEqual(data);
  const listed = await listAdapters.run(operationDeps(), commandActor('anna'), { projectId });
  expect(listed).toMatchObject({ data: [{ rate: '7.2', rateSource: { isTooOld: true } }] });
  // Only one message, however often it failed.
  const told = lines.filter((line) => line['adapter'] === adapter.adapterId);
  expect(told.map(({ level }) => level)).toHaveLength(1);

  source.answer(price('7.5'));
  await askedAgain(source);
  await eventually(alarm, (found) => found === undefined);
  expect((await create()).body.status_code).toBe(200);
});

test('EPay is answered in its form', async () => {
  const source = await startSource(price('7.2'));
  const { adapter } = await adapterOf(source, { kind: 'epay' });
  const fields = orderAtEpay({ url: 'http://127.0.0.1:1' }, {}, adapter.secret ?? '');
  const query = () => new URLSearchParams(fields).toString();
  service.clock.advance(11 * MINUTE);
  const url = service.url + adapter.path;
  expect((await send(`${url}/mapi.php?${query()}`)).body).toEqual({
    code: -1,
    msg: expect.stringContaining('too old'),
  });
  const page = await send(`${url}/submit.php?${query()}`);
  expect([page.status, page.text]).toEqual([400, expect.stringContaining('too old')]);
});

const FAULTS: [string, RequestListener, string][] = [
  ['an error', (_, response) => response.writeHead(500).end('{"tether":{"cny":7.3}}'), 'http_500'],
  ['a redirect', (_, response) => response.writeHead(302, { location: '/other' }).end(), 'redirect'],
  ['no answer', () => undefined, 'timeout'],
  ['a broken connection', (request) => void request.socket.destroy(), 'connection'],
  [
    'half of an answer',
    (_, response) => void response.writeHead(200, { 'content-length': '99' }).write('{"tether":{"cny":7.3'),
    'not one JSON',
  ],
  [
    'an answer that never ends',
    (_, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(' '.repeat(4096)), 1);
      response.on('close', () => clearInterval(timer));
    },
    'not one JSON',
  ],
  ['a page', says('<html>7.3</html>'), 'not one JSON'],
  ['bytes that are no text', (_, response) => response.end(Buffer.from([0x7b, 0xff, 0x7d])), 'not one JSON'],
  ['another answer', says('{"tether":{"usd":7.3}}'), 'no number at'],
  ['a rate below the bounds', price('0.0000001'), 'must be greater than 0'],
  ['a rate just below', price('6.499999'), 'not between 6.5 and 8'],
  ['a rate above', price('80'), 'not between 6.5 and 8'],
  ['a float', price('7.3e0'), 'exponent'],
];

describe.each(FAULTS)('%s', (_, fault, reason) => {
  test('gives no rate: the last one counts until it is too old', async () => {
    const source = await startSource(price('7.2'));
    const { adapter, row, alarm, create } = await adapterOf(source);
    const before = await row();
    const { lines } = startKeeper(reason === 'timeout' ? SHORT : {});
    source.answer(fault);
    service.clock.advance(6 * MINUTE);
    expect(await eventually(alarm, (found) => String(found).includes(reason))).toContain(adapter.adapterId);
    expect(await row()).toEqual(before);
    expect(lines.filter((line) => line['adapter'] === adapter.adapterId)).toMatchObject([
      { reason: expect.stringContaining(reason) },
    ]);
    expect((await create()).body.status_code).toBe(200);
    service.clock.advance(5 * MINUTE);
    expect((await create()).body.status_code).toBe(10006);
  });

  test('is no source to begin with', async () => {
    const source = await startSource(fault);
    // A command waits as long as a webhook does, which is too long for this test.
    if (reason === 'timeout') return;
    const { projectId } = await createTestProject(service.db, { addressCount: 1 });
    await expect(enable(projectId, source.url)).rejects.toThrow(reason);
    const rows = await runSql(service, 'select 1 from webhook_endpoints w where project_id = $1', [
      decodeId('prj', projectId),
    ]);
    expect(rows).toEqual([]);
  });
});

test('a source that repeats a time is as old as it says', async () => {
  const at = () => Math.floor(now() / 1000);
  const stuck = at();
  const source = await startSource(price('7.2', `,"t":${stuck}`));
  const { adapter, create, alarm, row } = await adapterOf(source, { rateTimePath: '/tether/t' });
  expect(adapter.rateSource?.at).toBe(new Date(stuck * 1000).toISOString());
  startKeeper();
  for (let minute = 1; minute <= 6; minute += 1) await askedAgain(source);
  expect(await eventually(alarm, (found) => found !== undefined)).toContain('it returns no newer rate');
  for (let minute = 7; minute <= 11; minute += 1) await askedAgain(source);
  expect((await create()).body.status_code).toBe(10006);
  expect(await eventually(alarm, (found) => String(found).includes('too old'))).toContain('the source dates its rate');
  // Neither an older rate nor one from the future replaces it.
  source.answer(price('7.4', `,"t":${stuck - 60}`));
  await askedAgain(source);
  source.answer((request, response) => price('7.4', `,"t":${at() + 3600}`)(request, response));
  await askedAgain(source);
  expect(await eventually(alarm, (found) => String(found).includes('no past time'))).toBeDefined();
  expect((await row())['read_micro']).toBe('7200000');
  source.answer((request, response) => price('7.4', `,"t":${at()}`)(request, response));
  await askedAgain(source);
  await eventually(row, ({ read_micro }) => read_micro === '7400000');
  expect((await create()).body.status_code).toBe(200);
});

test('a source that answers with an older time than before changes nothing', async () => {
  const at = () => Math.floor(now() / 1000);
  const source = await startSource(price('7.2', `,"t":${at()}`));
  const { row } = await adapterOf(source, { rateTimePath: '/tether/t' });
  const before = await row();
  startKeeper();
  const older = at() - 60;
  source.answer(price('7.4', `,"t":${older}`));
  await askedAgain(source);
  await askedAgain(source);
  await askedAgain(source);
  expect(await row()).toEqual(before);
});

test('a clock that was put back makes no old rate new', async () => {
  const source = await startSource(price('7.2'));
  const { create } = await adapterOf(source);
  service.clock.advance(-11 * MINUTE);
  onTestFinished(() => service.clock.advance(11 * MINUTE));
  expect((await create()).body.status_code).toBe(10006);
});

test('one process asks, and another one when it stops; a source that was replaced is asked no more', async () => {
  const [former, source] = [await startSource(price('7.2')), await startSource(price('7.3'))];
  const { projectId, id, row } = await adapterOf(former);
  const keepers = [startKeeper(), startKeeper()];
  await askedAgain(former);
  for (let minute = 0; minute < 5; minute += 1) await askedAgain(former);
  const asked = former.asked.length;
  expect(asked).toBeLessThanOrEqual(8);
  await enable(projectId, source.url);
  expect((await row())['read_micro']).toBe('7300000');
  await askedAgain(source);
  expect(former.asked.length).toBe(asked);
  await keepers[0]?.stop();
  source.answer(price('7.4'));
  await askedAgain(source);
  await eventually(row, ({ read_micro }) => read_micro === '7400000');
  // Adapters that refuse orders don't need a rate.
  await revokeApiKey(service.db, id, now());
  const other = await startSource(price('7.2'));
  await adapterOf(other);
  // A round that began before the revocation may still read this source.
  await askedAgain(other);
  const last = source.asked.length;
  await askedAgain(other);
  expect(source.asked.length).toBe(last);
});

test('a source that hangs delays no other', async () => {
  const [hanging, source] = [await startSource(price('7.2')), await startSource(price('7.2'))];
  await adapterOf(hanging);
  const { row } = await adapterOf(source);
  hanging.answer(() => undefined);
  source.answer(price('7.6'));
  startKeeper({ timeoutMs: 60_000 });
  await askedAgain(hanging);
  await eventually(row, ({ read_micro }) => read_micro === '7600000');
});

test('many sources that hang keep no other from being asked', async () => {
  const [hanging, good] = [await startSource(price('7.2')), await startSource(price('7.2'))];
  for (let count = 0; count <= 50; count += 1) {
    const { projectId } = await createTestProject(service.db, { addressCount: 1 });
    await enable(projectId, hanging.url, { rateMaxAge: '1m' });
  }
  const { row } = await adapterOf(good);
  hanging.answer(() => undefined);
  good.answer(price('7.6'));
  // The clock runs 50 times as fast as the timeouts, so sources that hang are due again as soon as they time out.
  const [base, beginMs] = [now(), performance.now()];
  const fast = () => unixMs(base + Math.floor((performance.now() - beginMs) * 50));
  const { stop } = startKeeper({ ...SHORT, now: fast });
  await eventually(row, ({ read_micro }) => read_micro === '7600000');
  await stop();
  await runSql(service, 'update api_keys set revoked_at = now() where revoked_at is null', []);
});

test('an alarm that the database did not take is raised later', async () => {
  const source = await startSource(price('7.2'));
  const { alarm } = await adapterOf(source);
  source.answer((_, response) => response.writeHead(503).end());
  await runSql(
    service,
    `create function hiccup() returns trigger language plpgsql as $$ begin raise exception 'hiccup'; end $$;
     create trigger hiccup before insert on alarms for each row when (new.kind = 'rate-old') execute function hiccup()`,
  );
  const { lines } = startKeeper();
  service.clock.advance(6 * MINUTE);
  await eventually(
    () => lines,
    (all) => all.some(({ msg }) => String(msg).includes('rates failed')),
  );
  await runSql(service, 'drop function hiccup cascade');
  await eventually(alarm, (found) => found !== undefined);
});

test('a process that asks anew hears the first answer before it says that there is none', async () => {
  const source = await startSource(price('7.2'));
  const { adapter, row } = await adapterOf(source);
  service.clock.advance(6 * MINUTE);
  source.answer(price('7.3'));
  const { stop } = startKeeper();
  await eventually(row, ({ read_micro }) => read_micro === '7300000');
  await stop();
  expect(await runSql(service, 'select from alarms where subject = $1', [adapter.adapterId])).toEqual([]);
});

test('a source that asks for an hour is asked again before its rate is too old', async () => {
  const source = await startSource(price('7.2'));
  const { row } = await adapterOf(source);
  source.answer((_, response) => {
    response.writeHead(429, { 'retry-after': '3600' }).end();
    source.answer(price('7.4'));
  });
  startKeeper();
  await askedAgain(source);
  service.clock.advance(5 * MINUTE);
  await eventually(row, ({ read_micro }) => read_micro === '7400000');
});

test('a rate of the same time replaces one whose seal is damaged', async () => {
  const at = Math.floor(now() / 1000);
  const source = await startSource(price('7.2', `,"at":${at}`));
  const { id, create } = await adapterOf(source, { rateTimePath: '/tether/at' });
  await runSql(service, `update webhook_endpoints set read_mac = decode(repeat('ab', 24), 'hex') where id = $1`, [id]);
  expect((await create()).status).toBe(404);
  startKeeper();
  await askedAgain(source);
  await eventually(create, ({ body }) => body?.status_code === 200);
});

test('the same source, enabled again, replaces no newer rate by an older one', async () => {
  const at = Math.floor(now() / 1000);
  const source = await startSource(price('7.2', `,"at":${at}`));
  const { projectId, row } = await adapterOf(source, { rateTimePath: '/tether/at' });
  source.answer(price('6.9', `,"at":${at - 300}`));
  await enable(projectId, source.url, { rateTimePath: '/tether/at' });
  expect(await row()).toMatchObject({ read_micro: '7200000' });
});

test.each([
  [{ rateMin: '0.009' }, 'rateMin', 'use 0.01 or more'],
  [{ rateMin: '3.9' }, 'rateMax', 'choose bounds that are close, such as 6.8 and 7.6'],
  [{ ratePath: '/a\u0000' }, 'ratePath', 'such as /tether/cny'],
  [{ ratePath: '/a\u001b[2J' }, 'ratePath', 'such as /tether/cny'],
])('%j is refused', async (given, field, words) => {
  await expect(enable('prj_none', 'http://127.0.0.1:1', given)).rejects.toMatchObject({
    ...{ code: 'INVALID_ARGUMENT', field },
  });
  await expect(enable('prj_none', 'http://127.0.0.1:1', given)).rejects.toSatisfy((error) =>
    JSON.stringify([error.message, error.reason]).includes(words),
  );
});

test('a source is a target of webhooks: this machine is none where that is not allowed, neither at once nor later', async () => {
  const source = await startSource(price('7.2'));
  const { adapter, alarm } = await adapterOf(source);
  const wanted = enableAdapter.read(
    { kind: 'epay', rateUrl: source.url, ratePath: '/tether/cny', rateMin: '6', rateMax: '8' } as Given,
    now(),
  );
  const run = (url: string) =>
    enableAdapter.run(operationDeps(false), commandActor('anna'), {
      ...wanted,
      ...{ projectId: adapter.projectId, rate: { ...(wanted.rate as object), url } as never },
    });
  for (const [url, reason] of [
    [source.url, 'must start with https://'],
    ['https://127.0.0.1/', '127.0.0.0/8'],
    ['https://169.254.169.254/latest', 'is not allowed'],
    ['https://metadata.internal/', 'local network'],
    ['ftp://rates.example/', 'use a URL such as https://rates.example.com/usdt'],
    ['https://user:h0rse@rates.example/', 'user name or password'],
  ] as const) {
    await expect(run(url), url).rejects.toThrow(reason);
    await expect(run(url), url).rejects.not.toThrow('h0rse');
  }
  const before = source.asked.length;
  startKeeper({ localTargets: false });
  service.clock.advance(6 * MINUTE);
  expect(await eventually(alarm, (found) => found !== undefined)).toContain('target_refused');
  expect(source.asked.length).toBe(before);
});

test('a rate, or its time, that somebody wrote to the database is used for no order, and ends with the next one that is read', async () => {
  const source = await startSource(price('7.2'));
  const { adapter, create, id, row, projectId } = await adapterOf(source);
  const changed = async () =>
    (await runSql(service, `select detail from alarms where kind = 'row-changed' and subject like $1`, [`%${id}`]))
      .length;
  const write = (at: number) =>
    runSql(service, 'update webhook_endpoints set read_at = $2, read_micro = 8000000 where id = $1', [
      ...[id, new Date(at)],
    ]);
  await write(now());
  expect((await create()).status).toBe(404);
  await eventually(changed, (count) => count === 1);
  await write(now() + 500 * MINUTE);
  const { stop } = startKeeper();
  await askedAgain(source);
  await eventually(row, ({ read_micro }) => read_micro === '7200000');
  expect((await create()).body.status_code).toBe(200);
  await stop();
  await write(now());
  await enable(projectId, source.url);
  expect((await create()).body.status_code).toBe(200);
  // The source must be exactly what the operator set.
  const { rateSource } = adapter;
  await runSql(service, 'update webhook_endpoints set rate_source = replace(rate_source, $2, $3) where id = $1', [
    ...[id, JSON.stringify(rateSource?.max), '"9"'],
  ]);
  expect((await create()).status).toBe(404);
  const other = await startSource(price('7.2'));
  await adapterOf(other);
  startKeeper();
  const asked = source.asked.length;
  await askedAgain(other);
  expect(source.asked.length).toBe(asked);
  await expect(enable(projectId, source.url)).rejects.toThrow('has a wrong seal');
});

test('a source that somebody wrote to the database keeps no other from being asked, and from its alarm, also where seals only warn', async () => {
  const source = await startSource(price('7.2'));
  const planted = [];
  for (const written of [
    '{"min":"1","max":"9"}',
    '{"min":"1","max":"9","url":[],"maxAgeMs":-1e300}',
    '{"min":"1","max":"9","maxAgeMs":0.5}',
  ]) {
    const { id, alarm } = await adapterOf(source);
    await runSql(service, 'update webhook_endpoints set rate_source = $2 where id = $1', [id, written]);
    planted.push(alarm);
  }
  await runSql(service, `update webhook_endpoints set read_at = '2199-12-31Z' where rate_source like '%0.5%'`);
  const other = await startSource(price('7.2'));
  const { alarm } = await adapterOf(other);
  const db = openDatabase({
    ...{ connection: service.connectionString, poolSize: 2, applicationName: 'rates', onError: () => undefined },
  });
  onTestFinished(() => db.close());
  startKeeper({ db });
  other.answer((_, response) => response.writeHead(500).end());
  service.clock.advance(6 * MINUTE);
  await eventually(alarm, (detail) => String(detail).includes('http_500'));
  for (const of of planted)
    expect(await eventually(of, (detail) => detail !== undefined)).toContain('returns no newer rate');
});

test('a rate that is read is no change of what was set, and a source that was set has its entry in the log', async () => {
  const source = await startSource(price('7.2'));
  const { id, row, projectId } = await adapterOf(source);
  const watch = startFastWatch(service);
  onTestFinished(() => watch.stop());
  await watch.lookAgain();
  startKeeper();
  source.answer(price('7.3'));
  await askedAgain(source);
  await eventually(row, ({ read_micro }) => read_micro === '7300000');
  await watch.lookAgain();
  await enable(projectId, source.url);
  await watch.lookAgain();
  await enable(projectId, source.url, { rateMax: '9', confirmRate: '7.3:7.3' });
  await watch.lookAgain();
  const of = (subject: string) => runSql(service, 'select kind from alarms where subject like $1', [subject]);
  expect(await of(`%${id}%`)).toEqual([]);
  // And the check does run: it finds a source that no operator set.
  await runSql(
    service,
    `update webhook_endpoints set rate_source = replace(rate_source, '"9"', '"10"') where id = $1`,
    [id],
  );
  await eventually(
    () => of(`%${id}%`),
    (found) => found.some(({ kind }) => kind === 'row-changed'),
  );
});

test('the database holds no rate outside the bounds beside it', async () => {
  const { id } = await adapterOf(await startSource(price('7.2')));
  const set = (what: string) => runSql(service, `update webhook_endpoints set ${what} where id = $1`, [id]);
  for (const what of [
    'read_micro = 8000001',
    'read_micro = 6499999',
    'read_at = null',
    `rate_source = '{}'`,
    `rate_source = '{"min":"9","max":"10"}'`,
    `read_at = 'infinity'`,
    `read_at = '20000-01-01Z'`,
    `rate_source = 'null'`,
    `rate_source = '[]'`,
  ])
    await expect(set(what), what).rejects.toThrow('violates check constraint');
  await set('read_micro = 8000000');
});
