import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { DAY_MS, unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { dayOf } from '../../src/faces/operator/subjects/reports.ts';
import { exportTransfers, readSelection } from '../../src/faces/operator/subjects/transfer-export.ts';
import { createTestProject, type TestProject } from '../support/service.ts';
import {
  actorNamed,
  newInvoice,
  payInFull,
  send,
  startTestConsole,
  type TestConsole,
  withOwner,
  writeHistory,
} from './console.ts';

const NAME = `<img src=x onerror=alert(1)>"'&`;

let console_: TestConsole;
let other: TestProject;
/** Includes every transfer. */
let period: string;

beforeAll(async () => {
  console_ = await startTestConsole();
  const { service } = console_;
  await writeHistory(service, service.project, (day) => day % 4);
  const paid = await newInvoice(service, 'order-1');
  await payInFull(service, paid);
  const { address: to, amountMicro } = paid;
  await send(service, { to, amountMicro: 7n }, { to, amountMicro });
  await withOwner(service, (client) => client.query('update projects set name = $1', [NAME]));
  const dayAt = (days: number) => dayOf(unixMs(service.clock.now() + days * DAY_MS));
  period = `from=${dayAt(-40)}&to=${dayAt(2)}`;
  other = await createTestProject(service.db);
  console_.actors['guest'] = actorNamed('Guest', { role: 'viewer', projects: [other.id] });
  console_.actors['limited'] = actorNamed('Lim', { role: 'viewer', projects: [service.project.id] });
});
afterAll(() => console_.stop());

const own = () => `project=${console_.service.project.projectId}`;
const words = (text: string) => text.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');

/** Returns the export's sums by kind. */
async function exported(): Promise<Record<string, bigint>> {
  const { service } = console_;
  const [, from, to] = /from=(.+)&to=(.+)/.exec(period) ?? [];
  const sums: Record<string, bigint> = {};
  const selection = readSelection({ direction: 'both', kind: 'all', from, to });
  const { projectId } = service.project;
  for await (const rows of await exportTransfers(service, commandActor('test'), { projectId, ...selection })) {
    for (const { transfer, incoming } of rows) {
      const kind = incoming?.kind ?? 'out';
      sums[kind] = (sums[kind] ?? 0n) + transfer.amountMicro;
    }
  }
  return sums;
}

test('the page, the CSV and the JSON have the sums of the transfers’ export', async () => {
  const { matched = 0n, duplicate = 0n, unmatched = 0n } = await exported();
  const json = await console_.get(`/reports.json?${own()}&${period}`);
  expect(json.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const report = JSON.parse(json.text);
  const text = (micro: bigint) => formatAmount(microUsdt(micro));
  expect(report.total).toMatchObject({
    ...{ received: text(matched), duplicate: { count: 1, amount: text(duplicate) } },
    unmatched: { count: 1, amount: text(unmatched) },
  });
  expect(report.days.length).toBeGreaterThan(20);

  const csv = await console_.get(`/reports.csv?${own()}&${period}`);
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect(csv.headers.get('cache-control')).toBe('no-store');
  const { projectId } = console_.service.project;
  expect(csv.headers.get('content-disposition')).toBe(
    `attachment; filename="report-${projectId}-${report.from}-${report.to}.csv"`,
  );
  const [head = '', ...lines] = csv.text.trimEnd().split('\r\n');
  const sumOf = (name: string) => {
    const at = head.split(',').indexOf(name);
    return lines.reduce((sum, line) => sum + BigInt((line.split(',')[at] ?? '').replace('.', '')), 0n);
  };
  expect([sumOf('received'), sumOf('duplicate'), sumOf('unmatched')]).toEqual([matched, duplicate, unmatched]);

  const page = await console_.get(`/reports?${own()}&${period}`);
  const shown = words(page.text).replaceAll(',', '').replaceAll(' .', '.');
  for (const micro of [matched, duplicate]) expect(shown).toContain(text(micro).replace(/0+$/, ''));
  for (const amount of [report.balance.start, report.balance.came, report.balance.end]) expect(shown).toContain(amount);
  expect(page.text).toContain('<a href="/addresses">Addresses</a>');
});

test('the days that were asked for stand in the form and in the links of the files', async () => {
  const [, from, to] = /from=(.+)&to=(.+)/.exec(period) ?? [];
  const { text } = await console_.get(`/reports?${own()}&${period}`);
  expect(text).toMatch(new RegExp(`name="from" value="${from}"`));
  expect(text).toMatch(new RegExp(`name="to" value="${to}"`));
  expect(text).toMatch(new RegExp(`name="project" value="${console_.service.project.projectId}"`));
  for (const kind of ['csv', 'json'])
    expect(text).toContain(`/reports.${kind}?${own()}&amp;from=${from}&amp;to=${to}"`);
  expect(text).toMatch(/<a href="\/reports\?[^"]+" data-go="b" aria-current="page">Reports</);
});

test('without days it is of this month up to today, and a month in which nothing moved says so', async () => {
  const { service } = console_;
  const today = dayOf(unixMs(service.clock.now()));
  const { text } = await console_.get(`/reports?${own()}`);
  expect(text).toMatch(new RegExp(`name="from" value="${today.slice(0, 8)}01"`));
  expect(text).toMatch(new RegExp(`name="to" value="${today}"`));
  expect(words(text)).toContain('This is the current balance of your addresses in the ledger.');
  const empty = await console_.get(`/reports?${own()}&from=2025-01-01&to=2025-01-31`);
  expect(empty.status).toBe(200);
  expect(words(empty.text)).toContain('No transfers on these days');
  expect((await console_.get(`/reports.csv?${own()}&from=2025-01-01&to=2025-01-31`)).text).toMatch(/^day,[^\n]+\r\n$/);
});

const WRONG: [query: string, says: string][] = [
  ['from=2026-02-30', '“From” is &quot;2026-02-30&quot;: use a day in UTC'],
  ['to=2026-09-01T12:00:00Z', '“To” is &quot;2026-09-01T12:00:00Z&quot;: use a day in UTC'],
  ['from=2026-09-02&to=2026-09-01', '“From” is 2026-09-02, after “To” 2026-09-01: use an earlier day'],
  [
    'from=2025-01-01&to=2026-01-02',
    '“From” is 2025-01-01, 367 days up to “To” 2026-01-02: a report covers at most 366',
  ],
  ['from=%3Cscript%3E', '“From” is &quot;&lt;script&gt;&quot;: use a day in UTC'],
  ['from=%00', 'cannot be stored'],
  ['from=2026-09-01&from=2026-09-02', 'was sent 2 times'],
  ['day=2026-09-01', 'is not a field of this form; the fields are project, from, to'],
];

test.each(WRONG)('?%s is refused on the page and in both files with the field’s label', async (query, says) => {
  for (const path of ['/reports', '/reports.csv', '/reports.json']) {
    const reply = await console_.get(`${path}?${own()}&${query}`);
    expect([path, reply.status]).toEqual([path, 400]);
    expect(reply.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(words(reply.text)).toContain(says);
  }
});

test('a person who may see some projects has reports of these alone, and others are as unknown', async () => {
  for (const path of ['/reports', '/reports.csv', '/reports.json']) {
    const foreign = await console_.get(`${path}?${own()}`, { 'x-actor': 'guest' });
    const unknown = await console_.get(`${path}?project=prj_00000000000000000000000000`, { 'x-actor': 'guest' });
    expect([path, foreign.status, unknown.status]).toEqual([path, 404, 404]);
    expect((await console_.get(`${path}?${own()}`, { 'x-actor': 'limited' })).status, path).toBe(200);
    expect((await console_.get(path, { 'x-actor': 'nobody' })).status, path).toBe(303);
  }
  const guests = await console_.get(`/reports.json?${period}`, { 'x-actor': 'guest' });
  expect(JSON.parse(guests.text)).toMatchObject({ projectId: other.projectId, days: [], total: { paid: 0 } });
});

test('a name of hostile characters stands on the page as text, and a whole year stays under 30 kB', async () => {
  const [, , to = ''] = /from=(.+)&to=(.+)/.exec(period) ?? [];
  const from = dayOf(unixMs(Date.parse(to) - 365 * DAY_MS));
  const { service } = console_;
  const busy = await createTestProject(service.db);
  await withOwner(service, (client) =>
    client.query(
      `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
         amount_micro, kind, verified, nodes)
       select (lpad(to_hex(extract(epoch from day)::int8 * 1000), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, $1, 'devnet', a.id,
         sha256(convert_to(day::text || n::text, 'UTF8')), 0, 1, sha256('block'), day, rpad('T', 34, 'x'),
         (random() * 99999999999)::int8 + 1, 'unmatched', 'proven', '{}'
       from addresses a, generate_series($2::date, $3::date, '1 day') day, generate_series(1, 2) n where a.project_id = $1`,
      [busy.id, from, to],
    ),
  );
  const { status, text } = await console_.get(`/reports?project=${busy.projectId}&from=${from}&to=${to}`);
  expect(status).toBe(200);
  expect(words(text)).toContain('Long periods are shown by month');
  const [, second = ''] = text.match(/\/reports\?[^"]+-01&amp;to=\d{4}-\d\d-\d\d/g) ?? [];
  const opened = await console_.get(second.replaceAll('&amp;', '&'));
  expect(opened.text.match(/<tr role="row">/g)?.length).toBeGreaterThan(28);
  for (const each of [text, opened.text]) expect(gzipSync(each).length).toBeLessThan(30_000);
  const named = await console_.get(`/reports?${own()}`);
  expect(named.text).not.toContain('<img');
});

test('a page whose sums take too long says to choose a shorter period, and offers the files', async () => {
  const { service } = console_;
  await withOwner(service, async (client) => {
    await client.query('begin');
    await client.query('lock table transfers in access exclusive mode');
    const { status, text } = await console_.get(`/reports?${own()}&${period}`);
    await client.query('rollback');
    expect(status).toBe(400);
    expect(words(text)).toContain('the calculation took longer than 3 s and was stopped. Choose a shorter period');
    expect(words(text)).toContain('Downloads have a longer time limit than this page:');
    expect(text).toContain('/reports.csv?');
  });
});
