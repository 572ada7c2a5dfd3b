import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { decodeId, encodeId, timeOfId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { type Actor, commandActor } from '../../src/faces/operator/actor.ts';
import { perform } from '../../src/faces/operator/operation.ts';
import { listRequests as listing, showRequest as showing } from '../../src/faces/operator/subjects/requests.ts';

const readRequestFilter = (asked: object) => listing.read(asked as never, 0 as never);
const listRequests = (deps: object, actor: Actor, wanted: object) =>
  perform(listing, deps as never, actor, wanted as never);
const showRequest = (deps: object, actor: Actor, wanted: object) =>
  perform(showing, deps as never, actor, wanted as never);

import { forgetOldRequests, insertRequests, type LoggedRequest } from '../../src/core/store/access/requests.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { createTestProject, type TestProject } from '../support/service.ts';
import { readLog } from './logged.ts';

const DAY_MS = 86_400_000;
const NOON = Date.UTC(2026, 8, 1, 12);

let database: TestDatabase;
let db: Database;
let [shop, other]: TestProject[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  db = openTestDatabase(database, 4);
  [shop, other] = [await createTestProject(db), await createTestProject(db)];
});
afterAll(async () => {
  await db.close();
  await database.drop();
});
beforeEach(() => withClient(database.owner, (client) => client.query('truncate requests')));

const requestAt = (ms: number, more: Partial<LoggedRequest> = {}): LoggedRequest => ({
  ...{ id: encodeId('req', uuidV7(ms, randomBytes(10))), method: 'GET', route: '/v1/events', status: 200, took_ms: 2 },
  ...more,
});
const keyOf = (project: TestProject | null | undefined) =>
  project ? { id: project.keyId, projectId: project.id } : null;
const write = (project: TestProject | null | undefined, ...requests: [LoggedRequest, ...LoggedRequest[]]) =>
  insertRequests(db, [{ key: keyOf(project), requests }]);
const viewer = (...projects: (TestProject | undefined)[]): Actor => ({
  ...commandActor('vera'),
  ...{ role: 'viewer', projects: projects.map((project) => project?.id ?? '') },
});
type Asked = Parameters<typeof readRequestFilter>[0];
const list = (asked: Partial<Asked> = {}, actor = commandActor('ana'), isKeyless = false) =>
  listRequests({ db }, actor, {
    ...readRequestFilter({ limit: '50', ...asked }),
    ...{ projectId: isKeyless ? undefined : shop?.projectId, isKeyless },
  });

describe('pages', () => {
  /** Seconds with the overlapping batches of several processes, and seconds with one request. */
  async function fill() {
    const ids: string[] = [];
    for (let second = 0; second < 12; second += 1) {
      const batches = second % 3 === 0 ? 1 : 4;
      for (let batch = 0; batch < batches; batch += 1) {
        const count = second % 3 === 0 ? 1 : 7;
        const own = Array.from({ length: count }, (_, n) =>
          requestAt(NOON + second * 1000 + ((n * 137 + batch) % 1000)),
        );
        await write(shop, ...(own as [LoggedRequest]));
        ids.push(...own.map(({ id }) => id));
      }
    }
    await write(other, requestAt(NOON + 1000));
    await write(null, requestAt(NOON + 1000));
    return ids.sort().reverse();
  }

  test.each([1, 2, 5, 50, 500])('of %i hold each request of the project once, the newest first', async (limit) => {
    const ids = await fill();
    const seen: string[] = [];
    for (let before: string | undefined; ; ) {
      const page = await list({ limit: String(limit), ...(before === undefined ? {} : { before }) });
      expect(page.data.length).toBeLessThanOrEqual(limit);
      seen.push(...page.data.map(({ requestId }) => requestId));
      if (page.nextBefore === null) break;
      before = page.nextBefore;
    }
    expect(seen).toEqual(ids);
  });

  test('look through 10,000 at most and the rest of their second, say so, and go on from there', async () => {
    for (let n = 0; n < 24; n += 1) {
      const own = Array.from({ length: 500 }, () => requestAt(NOON + n * 250, n === 0 ? { status: 500 } : {}));
      await write(shop, ...(own as [LoggedRequest]));
    }
    const first = await list({ status: '5xx' });
    expect(first).toMatchObject({ data: [], looked: 10_000, nextBefore: expect.stringMatching(/^req_/) });
    expect(timeOfId(first.nextBefore ?? '')).toBe(NOON + 1000);
    const second = await list({ status: '5xx', before: first.nextBefore ?? '', limit: '500' });
    expect(second).toMatchObject({ looked: 2000, nextBefore: null });
    expect(second.data).toHaveLength(500);
  });
});

test('filters take a class of status, a key, an externalId and a time, and together', async () => {
  const key = keyOf(shop);
  const all = [
    requestAt(NOON, { status: 201, external_id: 'order-1' }),
    requestAt(NOON + 1, { status: 409, external_id: 'order-1', code: 'IDEMPOTENCY_CONFLICT' }),
    requestAt(NOON + DAY_MS, { status: 404, code: 'INVOICE_NOT_FOUND' }),
    requestAt(NOON + 2 * DAY_MS, { status: 503, code: 'UNAVAILABLE' }),
  ] as const;
  const [first, second, ...later] = all;
  await insertRequests(db, [
    { key, requests: [first, second] },
    // As with a second key of the project.
    ...later.map((request) => ({ key: key && { ...key, id: other?.keyId ?? '' }, requests: [request] as const })),
  ]);
  const found = async (asked: Partial<Asked>) =>
    (await list(asked)).data.map(({ requestId }) => all.findIndex(({ id }) => id === requestId));
  expect(await found({})).toEqual([3, 2, 1, 0]);
  expect(await found({ status: '2xx' })).toEqual([0]);
  expect(await found({ status: '4xx' })).toEqual([2, 1]);
  expect(await found({ key: encodeId('key', key?.id ?? '') })).toEqual([1, 0]);
  expect(await found({ externalId: 'order-1' })).toEqual([1, 0]);
  expect(await found({ externalId: 'order-1', status: '4xx' })).toEqual([1]);
  expect(await found({ from: '2026-09-02' })).toEqual([3, 2]);
  expect(await found({ to: '2026-09-02' })).toEqual([2, 1, 0]);
  expect(await found({ from: '2026-09-01T12:00:00.001Z', to: '2026-09-02T12:00:00Z' })).toEqual([1]);
  const { data } = await list({ status: '5xx' });
  expect(data).toEqual([
    {
      ...{ requestId: all[3]?.id, time: '2026-09-03T12:00:00.000Z', projectId: shop?.projectId },
      key: { keyId: encodeId('key', other?.keyId ?? ''), name: 'test' },
      ...{ method: 'GET', route: '/v1/events', status: 503, code: 'UNAVAILABLE', externalId: null, tookMs: 2 },
      ...{ errors: [], body: null },
    },
  ]);
});

test.each([
  [{ status: '3xx' }, /status is "3xx": choose 2xx, 4xx, 5xx/],
  [{ key: 'key_1' }, /key is "key_1": a key id is/],
  [{ before: 'inv_1' }, /"inv_1" is not a request id: an id is "req_" followed by 26/],
  [{ externalId: 'x'.repeat(401) }, /externalId must have at most 400/],
  [{ from: '2026-09-02', to: '2026-09-01' }, /use an earlier/],
  [{ limit: '501' }, /limit is "501": use 1 to 500/],
])('%j is refused with what to write instead', (asked, message) => {
  expect(() => readRequestFilter({ limit: '50', ...asked })).toThrow(message);
});

describe('who may', () => {
  test('a request of a project that one may not see is as unknown as one that is not there', async () => {
    const theirs = requestAt(NOON);
    await write(other, theirs);
    const tell = (requestId: string, actor: Actor) =>
      showRequest({ db }, actor, { requestId }).then(
        () => 'found',
        ({ code, message }) => `${code} ${message}`.replaceAll(requestId, 'req'),
      );
    expect(await tell(theirs.id, viewer(other))).toBe('found');
    const foreign = await tell(theirs.id, viewer(shop));
    expect(foreign).toMatch(/^NOT_FOUND request req was not found/);
    expect(foreign).toBe(await tell(requestAt(NOON).id, viewer(shop)));
    await expect(list({}, viewer(other))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('what came without a valid key is for those who see all projects', async () => {
    const nobodys = requestAt(NOON, { status: 401, code: 'UNAUTHENTICATED' });
    await write(null, nobodys);
    const { id: requestId } = nobodys;
    await expect(showRequest({ db }, viewer(shop, other), { requestId })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(list({}, viewer(shop, other), true)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const all: Actor = { ...commandActor('vera'), role: 'viewer' };
    expect(await showRequest({ db }, all, { requestId })).toMatchObject({ requestId, projectId: null, key: null });
    expect((await list({}, all, true)).data).toMatchObject([{ requestId }]);
    expect((await list({}, all)).data).toEqual([]);
  });
});

test('a batch that is written again changes nothing', async () => {
  const batch = { key: keyOf(shop), requests: [requestAt(NOON), requestAt(NOON + 999)] } as const;
  const others = { key: null, requests: [requestAt(NOON)] } as const;
  await insertRequests(db, [batch]);
  await insertRequests(db, [batch, others]);
  expect(await readLog(database)).toHaveLength(3);
});

test('through a year of days each request is there for 30 days, and for 37 at most', async () => {
  const ids: { id: string; at: number }[] = [];
  for (let day = 0; day < 366; day += 1) {
    const now = NOON + day * DAY_MS;
    await forgetOldRequests(db, unixMs(now - 30 * DAY_MS));
    const request = requestAt(now);
    await write(shop, request);
    ids.push({ id: request.id, at: now });
    if (day % 5 !== 0) continue;
    const kept = new Set((await readLog(database)).map(({ id }) => id));
    for (const { id, at } of ids) {
      const age = (now - at) / DAY_MS;
      if (age <= 30) expect(kept.has(id), `${age} days`).toBe(true);
      if (age > 37) expect(kept.has(id), `${age} days`).toBe(false);
    }
  }
});

test('the service can neither empty the log by itself nor change a request', async () => {
  await write(shop, requestAt(NOON));
  for (const text of [
    'truncate requests',
    'delete from requests',
    'update requests set count = 1',
    'truncate requests_0',
  ]) {
    await expect(
      withClient(database.connection, (client) => client.query(text)),
      text,
    ).rejects.toThrow(/permission denied/);
  }
  expect(decodeId('req', (await list()).data[0]?.requestId ?? '')).not.toBeNull();
});
