import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBooks } from '../support/books.ts';
import { withClient } from '../support/postgres-template.ts';
import { envOf, newDirectory, runCli } from './run-cli.ts';

let books: Awaited<ReturnType<typeof startBooks>>;
beforeAll(async () => {
  books = await startBooks({ addressCount: 0 });
  await books.record();
});
afterAll(() => books.stop());

const sandbox = () => ({
  ...{ DATABASE_URL: books.database.connectionString, QUITTANCE_DATA_DIR: newDirectory() },
  QUITTANCE_MASTER_KEY: 'A'.repeat(43).concat('='),
});
const fill = (...args: string[]) => runCli(['sandbox', 'fill', ...args, '--json'], { env: sandbox() });
const query = (text: string, values: unknown[] = []) =>
  withClient(books.database.owner, async (client) => (await client.query(text, values)).rows);

test('a filled ledger has invoices that went every way, each told as it is, and its books balance', async () => {
  const { code, json } = await fill('--invoices', '2500', '--days', '30');
  expect({ code, json }).toMatchObject({ code: 0, json: { invoices: 2500, addresses: 3 } });
  const [counts] = await query(`select count(*) filter (where status = 'PAID')::int as paid,
      count(*) filter (where status = 'EXPIRED')::int as expired, min(created_at) > now() - interval '31 days' as is_recent,
      count(*) filter (where event_count <> (select count(*) from events e where e.project_id = i.project_id and e.invoice_id = i.id))::int as odd
    from invoices i`);
  expect(counts).toMatchObject({ is_recent: true, odd: 0 });
  expect(counts?.['paid']).toBeGreaterThan(1400);
  expect(counts?.['expired']).toBeGreaterThan(500);
  const [feed] = await query('select count(*)::int as events, max(position)::int as last from events');
  expect(feed?.['events']).toBe(feed?.['last']);
  const kinds = await query('select kind, count(*)::int > 20 as is_common from transfers group by 1 order by 1');
  expect(kinds).toEqual(['duplicate', 'matched', 'unmatched'].map((kind) => ({ kind, is_common: true })));
  const states = await query('select status, count(*)::int > 0 as any from deliveries group by 1 order by 1');
  expect(states).toContainEqual({ status: 'dead', any: true });
  const sums = await query(
    `select (select sum(amount_micro) from transfers) = (select sum(amount_micro) from outgoing_transfers) as same`,
  );
  expect(sums).toEqual([{ same: true }]);
  const reconciled = await runCli(['reconcile'], { env: { ...sandbox(), ...envOf(books) } });
  expect(reconciled).toMatchObject({ code: 0, stdout: expect.not.stringContaining('DIFFERS') });
});

test('the same seed tells the same stories', async () => {
  const stories = (projectId: string) =>
    query(
      'select external_id, status, payable_micro, event_count from invoices where project_id = $1 order by external_id',
      [projectId],
    );
  await fill('--invoices', '50', '--seed', '7');
  await fill('--invoices', '50', '--seed', '7');
  await fill('--invoices', '50', '--seed', '8');
  const projects = await query(
    `select id from projects where name = 'Filled shop with 50 invoices' order by created_at, id`,
  );
  const [first, again, other] = await Promise.all(projects.map(({ id }) => stories(String(id))));
  expect(first).toHaveLength(50);
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});

test.each([
  [['--invoices', '0'], 'use 1 to 1000000'],
  [['--invoices', '1000001'], 'use 1 to 1000000'],
  [['--days', '1.5'], 'use 1 to 3650'],
  [['--seed', 'x'], 'use 1 to'],
])('sandbox fill %j is refused', async (args, message) => {
  const { code, json } = await fill(...args);
  expect({ code, message: json.error.message }).toEqual({ code: 2, message: expect.stringContaining(message) });
});

test('only the ledger of a sandbox is filled', async () => {
  const configured = await runCli(['sandbox', 'fill', '--json'], { env: { ...sandbox(), ...envOf(books) } });
  expect(configured).toMatchObject({
    code: 4,
    json: { error: { message: expect.stringContaining('a network is configured') } },
  });
  await query("insert into projects (id, name, network) values (gen_random_uuid(), 'real', 'nile')");
  const before = await query('select count(*)::int as count from invoices');
  expect(await fill()).toMatchObject({
    code: 4,
    json: { error: { message: expect.stringContaining('a nile project') } },
  });
  expect(await query('select count(*)::int as count from invoices')).toEqual(before);
});
