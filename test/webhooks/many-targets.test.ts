import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { allStatements } from '../../src/core/store/db/statement.ts';
import { bringDeliveriesForward } from '../../src/core/store/outbox/deliveries.ts';
import { createWorldForEachTest, world } from './fixture.ts';

createWorldForEachTest();

const BACKLOG = 5000;
const NOW = unixMs(Date.parse('2026-09-01T12:00Z'));
const LATER = "timestamptz '2026-09-01 13:00Z'";
type Plan = { Plans?: Plan[] } & Record<string, unknown>;

/** Returns how many rows a plan's steps read, including rows that a filter removed. */
function rowsRead({ Plans = [], ...node }: Plan): number {
  const each = Number(node['Actual Rows']) + Number(node['Rows Removed by Filter'] ?? 0);
  return each * Number(node['Actual Loops']) + Plans.reduce((sum, plan) => sum + rowsRead(plan), 0);
}

/** Gives an endpoint a backlog of paid orders that met an outage. `url` is the SQL for the URL of order `n`. */
async function fill(endpoint: { id: string }, url: string): Promise<void> {
  await world.sql('set session_replication_role = replica');
  await world.sql(
    `with made as (
       select n, gen_random_uuid() as event_id, gen_random_uuid() as invoice_id from generate_series(1, ${BACKLOG}) n),
     orders as (
       insert into adapter_orders (project_id, invoice_id, endpoint_id, dialect, notify_url, amount, created_at)
       select $1, invoice_id, $2, 'epusdt', ${url}, '1', now() from made),
     attempts as (
       insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at)
       select event_id, $2, 1, ${LATER} - interval '2 hours' from made)
     insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, attempt_count, next_attempt_at, created_at, last_error)
     select event_id, $2, $1, invoice_id, 1, 1, ${LATER} + n * interval '1 second', ${LATER} - interval '3 hours', 'timeout: no response'
     from made`,
    [world.projectId, endpoint.id],
  );
  await world.sql('set session_replication_role = origin');
  await world.sql('analyze');
}

test('the URLs of single orders are probed without reading the whole backlog', async () => {
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  await fill(endpoint, `'http://shop.example/' || n`);
  const urls = Array.from({ length: 20 }, (_, n) => `http://shop.example/${n * 200 + 7}`);
  const { text = '' } = allStatements.find(({ name }) => name === 'delivery-expedite-waiting') ?? {};
  const given = [urls.map(() => endpoint.id), urls.map(() => false), urls.map(() => null), new Date(NOW), urls];
  await world.sql('begin');
  const [row] = await world.sql(`explain (analyze, format json) ${text}`, given);
  await world.sql('rollback');
  const [explained] = (row?.['QUERY PLAN'] ?? []) as { Plan: Plan }[];
  expect(rowsRead(explained?.Plan ?? {})).toBeLessThan(BACKLOG / 2);
  const asked = urls.map((url) => ({ target: `${endpoint.id} ${url}`, isBack: false, returnedAt: null }));
  const rows = await bringDeliveriesForward(world.openDatabase(), asked, NOW);
  expect(rows.map(({ callbackUrl }) => callbackUrl).sort()).toEqual([...urls].sort());
});

test('all that waits at a URL is expedited when it is back, whether it has few orders or many', async () => {
  const endpoint = await world.addEndpoint('http://127.0.0.1:1/');
  await fill(endpoint, `'http://shop.example/' || case when n % 2 = 0 then 'many' else (n % 100)::text end`);
  const db = world.openDatabase();
  const at = async (url: string) => {
    const asked = [{ target: `${endpoint.id} http://shop.example/${url}`, isBack: true, returnedAt: null }];
    return (await bringDeliveriesForward(db, asked, NOW)).length;
  };
  expect(await at('7')).toBe(BACKLOG / 100);
  expect(await at('many')).toBe(BACKLOG / 2);
  expect(await at('none')).toBe(0);
});
