import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { insertRequests, type LoggedRequest } from '../../src/core/store/access/requests.ts';
import { createTestProject, type TestProject } from '../support/service.ts';
import { actorNamed, type Made, newInvoice, refusedRequest, startTestConsole, type TestConsole } from './console.ts';

const HTML = `<img src=x onerror=alert(1)>"'&`;

let console_: TestConsole;
let invoice: Made;
let refused: string;
let other: TestProject;
beforeAll(async () => {
  console_ = await startTestConsole();
  const { service, actors } = console_;
  other = await createTestProject(service.db);
  actors['olga'] = actorNamed('Olga', { role: 'viewer', projects: [other.id] });
  invoice = await newInvoice(service, HTML);
  refused = await refusedRequest(console_, HTML);
});
afterAll(() => console_.stop());

/** Returns the page's URL for the service's project, which is one of two. */
const page = (query: Record<string, string> = {}) =>
  `/requests?${new URLSearchParams({ project: console_.service.project.projectId, ...query })}`;
const get = async (path: string, actor = 'ana') => console_.get(path, { 'x-actor': actor });
const write = (project: TestProject | null, ...requests: [LoggedRequest, ...LoggedRequest[]]) =>
  insertRequests(console_.service.db, [{ key: project && { id: project.keyId, projectId: project.id }, requests }]);
const requestAt = (ms: number, more: Partial<LoggedRequest> = {}): LoggedRequest => ({
  ...{ id: encodeId('req', uuidV7(ms, randomBytes(10))), method: 'GET', route: '/v1/events', status: 200, took_ms: 2 },
  ...more,
});

test('the page of a request says in words what was asked and how it ended, and leads to the invoice', async () => {
  const { text } = await get(`/requests/${refused}`, 'vera');
  for (const told of [
    ...[
      refused,
      'POST',
      '/v1/invoices',
      '409',
      'IDEMPOTENCY_CONFLICT',
      'The request conflicts with an earlier request.',
    ],
    ...[
      'use a new key for a new order attempt',
      '<code>conflict</code> says',
      `href="/invoices/${invoice.invoiceId}"`,
      'test',
    ],
    '&lt;img src=x onerror=alert(1)&gt;',
    'externalId USED_BEFORE',
    '{amount: string',
  ]) {
    expect(text).toContain(told);
  }
  expect(text).not.toContain('<img');
});

test('the box at the top takes the id of a request, in any letters', async () => {
  for (const q of [refused, ` ${refused.toUpperCase()} `]) {
    const found = await get(`/find?q=${encodeURIComponent(q)}`);
    expect(found.headers.get('location')).toBe(`/requests/${refused}`);
  }
});

test('filters stand in the address, and lead to what fits', async () => {
  const link = `href="/requests/${refused}"`;
  const key = encodeId('key', console_.service.project.keyId);
  const today = new Date().toISOString().slice(0, 10);
  for (const query of [{}, { status: '4xx' }, { externalId: HTML }, { key }, { from: today, to: today }]) {
    expect((await get(page(query), 'vera')).text, JSON.stringify(query)).toContain(link);
  }
  for (const query of [{ status: '5xx' }, { externalId: 'another' }, { to: '2020-01-01' }, { whose: 'nobody' }]) {
    const { status, text } = await get(page(query));
    expect(status, JSON.stringify(query)).toBe(200);
    expect(text, JSON.stringify(query)).not.toContain(link);
  }
  const wrong = await get(page({ key: 'qt_test_x', status: '4xx' }));
  expect(wrong.status).toBe(400);
  expect(wrong.text).toContain('“Key” is');
  expect(wrong.text).toContain('<option value="4xx" selected>');
});

test('pages of long order ids stay under 30 kB, and lead through all', async () => {
  const at = Date.now() - 3_600_000;
  const all = Array.from({ length: 120 }, (_, n) =>
    requestAt(at + n, { external_id: `${n} 漢字仮名交じり文`.repeat(18), code: 'TOO_MANY_UNPAID', status: 429 }),
  );
  await write(other, ...(all as [LoggedRequest]));
  const seen: string[] = [];
  let url: string | undefined = `/requests?project=${other.projectId}`;
  while (url !== undefined) {
    const { text } = await get(url);
    expect(gzipSync(text).length).toBeLessThan(30_000);
    seen.push(...[...text.matchAll(/href="\/requests\/(req_\w+)"/g)].map(([, id = '']) => id));
    url = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect(seen).toEqual(all.map(({ id }) => id).reverse());
});

test('a request of a project that one may not see is as unknown as none, and those of nobody are for who sees all', async () => {
  const nobodys = requestAt(Date.now(), { status: 401, code: 'UNAUTHENTICATED' });
  await write(null, nobodys);
  const foreign = await get(`/requests/${refused}`, 'olga');
  const none = await get(`/requests/${requestAt(0).id}`, 'olga');
  const plain = (text: string) => text.replaceAll(/req_\w+/g, 'req');
  expect([foreign.status, none.status]).toEqual([404, 404]);
  expect(plain(foreign.text)).toBe(plain(none.text));
  expect((await get(`/requests/${nobodys.id}`, 'olga')).status).toBe(404);
  expect((await get('/requests/req_1', 'olga')).status).toBe(404);
  expect((await get(page(), 'olga')).status).toBe(404);
  const own = await get('/requests', 'olga');
  expect(own.text).not.toContain('name="whose"');
  expect((await get('/requests?whose=nobody', 'olga')).status).toBe(403);
  const { text } = await get(page({ whose: 'nobody' }), 'vera');
  expect(text).toContain(`href="/requests/${nobodys.id}"`);
  expect((await get(`/requests/${nobodys.id}`, 'vera')).text).toContain('no valid key');
});

test('a shop that asked nothing yet is told what will show here', async () => {
  const fresh = await createTestProject(console_.service.db);
  expect((await get(`/requests?project=${fresh.projectId}`)).text).toContain('No requests yet');
  expect((await get(`/requests?project=${fresh.projectId}&status=5xx`)).text).toContain('No matching requests');
});
