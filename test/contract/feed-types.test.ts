import { afterAll, beforeAll, expect, test } from 'vitest';
import { EVENT_TYPES, type EventType } from '../../src/core/domain/event.ts';
import {
  createTestProject,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { expectProblem, fieldsOf, get, type Reply } from './ask.ts';
import { addTyped } from './feed-events.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { roles: ['api'] } });
});
afterAll(() => service.stop());

const page = (project: TestProject, query: string): Promise<Reply> => get(service, `/v1/events?${query}`, project);

async function shopWith(types: readonly EventType[]): Promise<{ project: TestProject; ids: string[] }> {
  const project = await createTestProject(service.db);
  return { project, ids: await addTyped(service.db, project.id, types) };
}

test('of some types only these are told, and "next" passes over the others', async () => {
  const { project, ids } = await shopWith([
    'invoice.paid',
    'ping',
    'transfer.unmatched',
    'ping',
    'invoice.paid',
    'ping',
  ]);
  const whole: Json[] = (await page(project, '')).body.data;
  const latest = ids[5];
  const { text } = await page(project, 'types=invoice.paid,transfer.unmatched');
  const told = [0, 2, 4].map((index) => JSON.stringify(whole[index]));
  expect(text).toBe(`{"data":[${told.join(',')}],"hasMore":false,"latest":"${latest}","next":"${latest}"}`);
  const first = await page(project, 'types=invoice.paid&limit=1');
  expect(first.body).toEqual({ data: [whole[0]], hasMore: true, latest, next: ids[0] });
  const second = await page(project, `types=invoice.paid&limit=1&after=${ids[0]}`);
  expect(second.body).toEqual({ data: [whole[4]], hasMore: false, latest, next: latest });
  const none = await page(project, 'types=endpoint.disabled');
  expect(none.body).toEqual({ data: [], hasMore: false, latest, next: latest });
  // An event that is filtered out can be continued from like any other.
  const behind = await page(project, `types=invoice.paid&after=${ids[3]}`);
  expect(behind.body).toEqual({ data: [whole[4]], hasMore: false, latest, next: latest });
  const end = await page(project, `types=invoice.paid&after=${latest}`);
  expect(end.body).toEqual({ data: [], hasMore: false, latest, next: latest });
});

test('all types together tell what none of them does, in any order', async () => {
  const { project } = await shopWith(EVENT_TYPES);
  const { data, hasMore, latest } = (await page(project, '')).body;
  const { body } = await page(project, `types=${EVENT_TYPES.toReversed().join(',')}`);
  expect(body).toEqual({ data, hasMore, latest, next: latest });
  expect((await page(project, `types=${EVENT_TYPES.join('%2C')}`)).body).toEqual(body);
});

test('a project without events has nowhere to go on from, and another project’s events are none', async () => {
  const { project } = await shopWith([]);
  await shopWith(['invoice.paid']);
  const { text } = await page(project, 'types=invoice.paid');
  expect(text).toBe('{"data":[],"hasMore":false,"latest":null,"next":null}');
});

test('of many events that are left out, 10,000 are passed over at once, and the next page goes on behind them', async () => {
  const { project, ids } = await shopWith(['invoice.paid']);
  await runSql(
    service,
    `insert into events (id, project_id, network, type, sequence, body)
     select gen_random_uuid(), $1, 'devnet', 'ping', 1, '{}' from generate_series(1, 20001)`,
    [project.id],
  );
  const [last = ''] = await addTyped(service.db, project.id, ['invoice.paid']);
  const seen: unknown[] = [];
  for (let [after, hasMore] = ['', true]; hasMore; ) {
    const { body } = await page(project, `types=invoice.paid${after}`);
    seen.push(body.data.map(({ id }: Json) => id));
    after = `&after=${body.next}`;
    hasMore = body.hasMore;
  }
  expect(seen).toEqual([[ids[0]], [], [last]]);
  // Doesn't wait, because the next page may have matches.
  const { body } = await page(project, `types=transfer.unmatched&wait=30&after=${ids[0]}`);
  expect(body).toMatchObject({ data: [], hasMore: true });
});

test('behind the gap between positions that a restore leaves, events are found', async () => {
  const { project, ids } = await shopWith(['invoice.paid', 'ping']);
  const other = await createTestProject(service.db);
  for (const { id } of [project, other]) {
    await runSql(
      service,
      `alter table event_streams disable trigger event_streams_rise;
       insert into event_streams (project_id, last_position) values ('${id}', ${Date.now()})
         on conflict (project_id) do update set last_position = excluded.last_position;
       alter table event_streams enable trigger event_streams_rise`,
    );
  }
  const [behind = ''] = await addTyped(service.db, project.id, ['invoice.paid']);
  const [first = ''] = await addTyped(service.db, other.id, ['invoice.paid']);
  const before = await page(project, 'types=invoice.paid');
  expect(before.body).toMatchObject({ data: [{ id: ids[0] }], hasMore: true, latest: behind, next: ids[1] });
  const after = await page(project, `types=invoice.paid&after=${ids[1]}`);
  expect(after.body).toMatchObject({ data: [{ id: behind }], hasMore: false, latest: behind, next: behind });
  expect((await page(other, 'types=invoice.paid')).body).toMatchObject({ data: [{ id: first }], hasMore: false });
});

test('a page without types is as ever', async () => {
  const { project, ids } = await shopWith(['ping']);
  const { text } = await page(project, '');
  expect(text).toBe(`{"data":[{"id":"${ids[0]}","type":"ping"}],"hasMore":false,"latest":"${ids[0]}"}`);
});

test.each([
  ['nothing', ''],
  ['an unknown type', 'invoice.stolen'],
  ['an unknown one among others', 'invoice.paid,x'],
  ['a gap', 'invoice.paid,,ping'],
  ['an end', 'invoice.paid,'],
  ['a space', 'invoice.paid,%20ping'],
  ['other letters', 'Invoice.Paid'],
  ['the same twice', 'ping,ping'],
  ['a thousand', Array(1000).fill('ping').join(',')],
  ['a thousand unknown', Array.from({ length: 1000 }, (_, index) => `t${index}`).join(',')],
  ['a member of objects', '__proto__,constructor'],
  ['NUL', '%00'],
  ['no UTF-8', '%ff'],
  ['a long text', 'x'.repeat(9000)],
  ['quotes', '%27%22%5C'],
  ['half of a pair', encodeURIComponent(`${'x'.repeat(39)}𝄞`)],
])('%s is no list of types', async (_, types) => {
  const reply = await page(service.project, `types=${types}&wait=30`);
  const problem = expectProblem(reply, 400, 'INVALID_REQUEST');
  expect(fieldsOf(problem)).toEqual(['types']);
  expect(reply.text.length).toBeLessThan(1500);
  if (!/twice/.test(problem.errors[0].message)) expect(problem.errors[0].message).toContain(EVENT_TYPES.join(', '));
});

test('types twice, and all else that is wrong, are told at once', async () => {
  const twice = expectProblem(await page(service.project, 'types=ping&types=ping'), 400, 'INVALID_REQUEST');
  expect(fieldsOf(twice)).toEqual(['types']);
  const all = await page(service.project, 'types=x&wait=0&limit=0&after=x');
  expect(fieldsOf(expectProblem(all, 400, 'INVALID_REQUEST'))).toEqual(['after', 'limit', 'types', 'wait']);
});
