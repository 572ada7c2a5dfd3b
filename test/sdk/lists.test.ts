import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLists } from '../../packages/sdk/src/lists.ts';
import { createInvoice, payExactly, startTestService, type TestService, untilStatus } from '../support/service.ts';
import { json, startAnsweringServer } from './answering-server.ts';
import { SDK_KEY } from './sdk-key.ts';

let service: TestService;
let server: Awaited<ReturnType<typeof startAnsweringServer>>;
beforeAll(async () => {
  [service, server] = await Promise.all([startTestService(), startAnsweringServer()]);
});
afterAll(async () => {
  await service.stop();
  await server.stop();
});

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test('it takes at most 3.5 KB with all that it needs, minified and compressed', async () => {
  const built = await build({
    entryPoints: [join(import.meta.dirname, '../../packages/sdk/src/lists.ts')],
    ...{ bundle: true, write: false, target: 'es2022', format: 'esm', minify: true, platform: 'neutral' },
  });
  const size = gzipSync(built.outputFiles[0]?.text ?? '', { level: 9 }).length;
  console.info(`@quittance/sdk/lists: ${size} bytes gzip`);
  expect(size).toBeLessThanOrEqual(3584);
});

test('all pages of a project are walked through, and the feed is followed as events come', async () => {
  const lists = createLists({ apiKey: service.project.apiKey, baseUrl: service.url });
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push((await createInvoice(service)).body.invoiceId);
  const walked = await all(lists.invoices({ limit: 2 }));
  expect(walked.map(({ invoiceId }) => invoiceId)).toEqual(ids);
  expect(await all(lists.invoices({ status: 'PAID' }))).toEqual([]);
  expect((await all(lists.invoices({ after: ids[2] }))).map(({ invoiceId }) => invoiceId)).toEqual(ids.slice(3));
  expect(await all(lists.transfers())).toEqual([]);

  const paid = async () => {
    for await (const event of lists.follow({ types: ['invoice.paid'] })) return event;
    throw new Error('it ended');
  };
  const waited = paid();
  await payExactly(service, ids[0] ?? '');
  service.devnet.mineUntilSolid();
  await untilStatus(service, ids[0] ?? '', 'PAID');
  expect(await waited).toMatchObject({ type: 'invoice.paid', data: { invoiceId: ids[0] } });
  expect((await all(lists.transfers({ kind: 'matched' }))).map(({ kind }) => kind)).toEqual(['matched']);
});

test('a signal ends a feed that waits', async () => {
  const lists = createLists({ apiKey: service.project.apiKey, baseUrl: service.url });
  const stop = new AbortController();
  const following = all(lists.follow({ types: ['ping'], signal: stop.signal }));
  stop.abort(new Error('over'));
  await expect(following).rejects.toThrow('over');
});

test('pages that lead no further, and what is no page, end in an error', async () => {
  const lists = createLists({ apiKey: SDK_KEY, baseUrl: server.url });
  const strange = { code: 'UNEXPECTED_ANSWER' };
  server.answer(json(200, { data: [{ invoiceId: 'inv_1' }], next: 'inv_1' }));
  await expect(all(lists.invoices())).rejects.toMatchObject(strange);
  expect(server.seen).toHaveLength(2);
  server.answer(json(200, { data: [], hasMore: true, next: null }));
  await expect(all(lists.follow())).rejects.toMatchObject(strange);
  for (const body of [{}, { data: 'x', next: null }, { data: [], next: 1 }]) {
    server.answer(json(200, body));
    await expect(all(lists.transfers())).rejects.toMatchObject(strange);
  }
});

test('what is asked for is sent, and nothing else', async () => {
  const lists = createLists({ apiKey: SDK_KEY, baseUrl: server.url, timeoutMs: 60_000 });
  server.answer(json(200, { data: [{ id: 'evt_2' }], hasMore: false, latest: 'evt_2', next: 'evt_3' }));
  const seen: string[] = [];
  for await (const { id } of lists.follow({ after: 'evt_1', types: ['ping', 'invoice.paid'], limit: 7 })) {
    seen.push(id);
    if (seen.length === 2) break;
  }
  expect(server.seen.map(({ url }) => decodeURIComponent(url))).toEqual([
    '/v1/events?limit=7&types=ping,invoice.paid&wait=30&after=evt_1',
    '/v1/events?limit=7&types=ping,invoice.paid&wait=30&after=evt_3',
  ]);
});
