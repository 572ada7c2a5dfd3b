import { expect, onTestFinished, test } from 'vitest';
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
