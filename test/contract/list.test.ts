import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId, encodeId, firstIdOf } from '../../src/core/domain/ids.ts';
import {
  createTestProject,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';
import { ask, created, expectProblem, get } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
let shop: TestProject;
let other: TestProject;
const ids: string[] = [];
beforeAll(async () => {
  service = await startTestService();
  shop = await createTestProject(service.db);
  other = await createTestProject(service.db);
  for (let number = 0; number < 7; number += 1) {
    ids.push((await created(service, { project: shop })).invoiceId);
    await created(service, { project: other });
  }
});
afterAll(() => service.stop());

const list = (query = '', project = shop) => get(service, `/v1/invoices${query}`, project);

/** Reads every page to the end, at most ten. */
async function walk(query: string): Promise<{ pages: string[][]; invoices: Json[] }> {
  const [pages, invoices] = [[] as string[][], [] as Json[]];
  for (let after: string | null = ''; after !== null && pages.length < 10; ) {
    const { status, body } = await list(`?${query}${after === '' ? '' : `&after=${after}`}`);
    expect(status).toBe(200);
    pages.push(body.data.map(({ invoiceId }: Json) => invoiceId));
    invoices.push(...body.data);
    after = body.next;
  }
  return { pages, invoices };
}

test('a project has its own invoices, oldest first, each as it was answered at its creation', async () => {
  const { status, body } = await list();
  expect(status).toBe(200);
  expect(Object.keys(body)).toEqual(['data', 'next']);
  expect(body.next).toBeNull();
  expect(body.data.map(({ invoiceId }: Json) => invoiceId)).toEqual(ids);
  expect(body.data[0]).toEqual((await get(service, `/v1/invoices/${ids[0]}`, shop)).body);
});

test('pages lead from the first to the last, each once, whatever is created meanwhile', async () => {
  expect((await walk('limit=3')).pages).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)]);
  expect((await walk('limit=7')).pages).toEqual([ids]);
  const { body } = await list('?limit=3');
  const added = (await created(service, { project: shop })).invoiceId;
  expect((await list(`?limit=3&after=${body.next}`)).body.data.map(({ invoiceId }: Json) => invoiceId)).toEqual(
    ids.slice(3, 6),
  );
  expect((await walk('limit=3')).pages.flat()).toEqual([...ids, added]);
  ids.push(added);
});

test('a status and a time choose', async () => {
  const [first = '', second = ''] = ids;
  const expired = `update invoices set status = 'EXPIRED' where id = any($1::uuid[])`;
  await letRowsStandAlone({ connectionString: service.ownerString });
  await runSql(service, expired, [uuidsOf([first, second])]);
  expect((await walk('status=EXPIRED')).pages.flat()).toEqual([first, second]);
  expect((await walk('status=PENDING&limit=2')).pages.flat()).toEqual(ids.slice(2));
  expect((await list('?status=PAID')).body).toEqual({ data: [], next: null });
  const [row] = (await runSql(service, 'select created_at from invoices where id = any($1::uuid[])', [
    uuidsOf(ids.slice(4, 5)),
  ])) as Json[];
  const from = new Date(row?.['created_at']).toISOString();
  expect((await walk(`createdAfter=${from}`)).pages.flat()).toEqual(ids.slice(4));
  // The formats of Python and Go.
  for (const digits of ['000', '000000']) {
    expect((await walk(`createdAfter=${from.replace('Z', `${digits}%2B00:00`)}`)).pages.flat()).toEqual(ids.slice(4));
  }
  expect((await walk('createdAfter=0000-01-01T00:00:00Z')).pages.flat()).toEqual(ids);
  for (const later of ['2099-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999-23:59']) {
    expect((await walk(`createdAfter=${later}`)).pages).toEqual([[]]);
  }
  // The later of the two limits applies.
  expect((await walk(`createdAfter=${from}&after=${ids[5]}`)).pages.flat()).toEqual(ids.slice(6));
});

test('a page of a rare status may hold none and lead on, so that no page looks at all invoices', async () => {
  const many = await createTestProject(service.db);
  const { invoiceId } = await created(service, { project: many });
  await runSql(
    service,
    `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
       checkout_token, status, created_at, expires_at)
     select ('01000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, i.project_id, i.network, i.address_id, 'k' || n, 'e' || n,
       1000, 1000000000 + n, substr(md5(n::text), 1, 22), 'EXPIRED', i.created_at, i.expires_at
     from invoices i, generate_series(1, 10500) n where i.id = $1`,
    uuidsOf([invoiceId]),
  );
  const first = await list('?status=PENDING', many);
  expect(first.body).toEqual({ data: [], next: expect.stringMatching(/^inv_/) });
  const second = await list(`?status=PENDING&after=${first.body.next}`, many);
  expect(second.body).toEqual({ data: [expect.objectContaining({ invoiceId })], next: null });
});

const uuidsOf = (invoiceIds: string[]) => invoiceIds.map((id) => decodeId('inv', id) ?? '');

test.each([
  ['status', 'paid'],
  ['createdAfter', 'yesterday'],
  ['createdAfter', '2026-13-01T00:00:00Z'],
  ['createdAfter', '2026-09-01'],
  ['createdAfter', '2026-09-01T00:00:00.0000000000Z'],
  ['after', 'inv_1'],
  ['after', 'evt_01k2m9t0b3e8zr6v5x4c7d1f2g'],
  ['limit', '0'],
  ['limit', '101'],
  ['limit', '1e2'],
])('%s=%s is refused by its name', async (field, value) => {
  const reply = await list(`?${field}=${value}`);
  expectProblem(reply, 400, 'INVALID_REQUEST');
  expect(reply.body.errors).toEqual([expect.objectContaining({ field, code: 'INVALID_VALUE' })]);
});

test('all mistakes are told at once, and unknown and repeated parameters', async () => {
  const reply = await list('?status=x&limit=x&offset=1&after=a&after=b');
  expect(reply.body.errors.map(({ field }: Json) => field).sort()).toEqual(['after', 'limit', 'offset', 'status']);
});

test('an id that is not ours is a place in time and no more', async () => {
  const theirs = (await created(service, { project: other })).invoiceId;
  expect((await list(`?after=${theirs}`)).body.data.every(({ invoiceId }: Json) => invoiceId > theirs)).toBe(true);
  expect((await list(`?after=${encodeId('inv', firstIdOf(0))}`)).body.data).toHaveLength(ids.length);
});

test('it takes a key', async () => {
  expectProblem(await ask(`${service.url}/v1/invoices`), 401, 'UNAUTHENTICATED');
});
