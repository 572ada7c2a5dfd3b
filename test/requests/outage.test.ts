import { expect, onTestFinished, test } from 'vitest';
import { withClient } from '../support/postgres-template.ts';
import { call, eventually } from '../support/service.ts';
import { readLog, startLogged } from './logged.ts';

const refused = (line: { msg: string }) => line.msg.includes('log of requests failed');

test('while the database is away requests are answered, the log says so, and what came meanwhile is written once when it is back', async () => {
  const own = await startLogged();
  onTestFinished(() => own.stop());
  const headers = { 'x-api-key': own.project.apiKey };
  const get = () => call(`${own.url}/v1/invoices/x`, { headers });
  const ids = [await get()];
  own.link.setMode('refuse');
  for (let n = 0; n < 20; n += 1) ids.push(await get());
  await eventually(
    () => own.logged().filter(refused),
    (lines) => lines.length > 0,
  );
  // Between two attempts to write the log.
  for (let n = 0; n < 20; n += 1) ids.push(await get());
  expect(ids.slice(1).map(({ status }) => status)).toEqual(Array(40).fill(503));
  own.link.setMode('open');
  const log = await eventually(
    () => readLog(own.database),
    (rows) => rows.length >= ids.length,
  );
  expect(log.map(({ id }) => id).sort()).toEqual(ids.map((answer) => answer.headers['x-request-id']).sort());
  expect(log.filter(({ code }) => code === 'UNAVAILABLE')).toHaveLength(40);
});

test('a process whose database is away stops in time, and says how many requests are lost', async () => {
  const own = await startLogged();
  onTestFinished(() => own.stop());
  const get = () => call(`${own.url}/v1/invoices/x`, { headers: { 'x-api-key': own.project.apiKey } });
  expect((await get()).status).toBe(404);
  await eventually(
    () => readLog(own.database),
    (rows) => rows.length === 1,
  );
  own.link.setMode('hang');
  // Requests without a key don't query the database.
  await Promise.all(Array.from({ length: 7 }, () => call(`${own.url}/v1/invoices/x`)));
  const started = performance.now();
  await own.stopService();
  expect(performance.now() - started).toBeLessThan(9000);
  expect(own.logged().find(({ msg }) => msg.includes('last requests'))).toMatchObject({ level: 'warn', requests: 7 });
});

test('requests are logged although old ones cannot be deleted, unless their partition is the next one to write', async () => {
  const own = await startLogged();
  onTestFinished(() => own.stop());
  const get = () => call(`${own.url}/v1/invoices/x`, { headers: { 'x-api-key': own.project.apiKey } });
  const untilLogged = (count: number) =>
    eventually(
      () => readLog(own.database),
      (rows) => rows.length === count,
    );
  const rename = (from: string, to: string) =>
    withClient(own.database.owner, (client) => client.query(`alter function ${from}(timestamptz) rename to ${to}`));
  const [first] = [await get(), await untilLogged(1)];
  await rename('forget_old_requests', 'kept_away');
  const later = Date.now() + 42 * 86_400_000;
  own.setTime(later);
  const second = await get();
  await eventually(
    () => own.logged().filter(refused),
    (lines) => lines.length > 0,
  );
  expect(await readLog(own.database)).toMatchObject([{ id: first.headers['x-request-id'] }]);
  await rename('kept_away', 'forget_old_requests');
  await eventually(
    () => readLog(own.database),
    (rows) => rows.length === 1 && rows[0]?.['id'] === second.headers['x-request-id'],
  );
  await rename('forget_old_requests', 'kept_away');
  own.setTime(later + 7_200_000);
  await get();
  await untilLogged(2);
  expect(own.logged().filter(({ msg }) => msg.includes('could not delete old requests'))).toHaveLength(1);
});
