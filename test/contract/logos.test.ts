import { afterAll, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { pooledRandom } from '../../src/core/runtime/random.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { registerLogos } from '../../src/faces/checkout/page/register.ts';
import { insertLogo } from '../../src/faces/operator/subjects/projects.ts';
import { createServer } from '../../src/faces/web/server.ts';
import { LOGOS } from '../support/logos.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

const database = await createTestDatabase();
const db = openDatabase({
  connection: database.connection,
  poolSize: 1,
  applicationName: 'logos test',
  // Dropping the database may close a connection that is just closing anyway. Any other loss makes the next statement fail.
  onError: () => undefined,
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** Creates a server with empty caches. */
function startServer() {
  const app = createServer({
    publicUrl: () => 'https://pay.example.com',
    trustProxy: [],
    now: () => unixMs(1_790_000_000_000),
    random: pooledRandom,
    log: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
  });
  registerLogos(app, { db });
  return app;
}

function removeLogos(): Promise<unknown> {
  return withClient(database.owner, (client) => client.query('delete from logos'));
}

test('a logo is served as the picture that it is, for ever, and as nothing else', async () => {
  const id = await insertLogo(db, { type: 'image/webp', content: LOGOS.webp });
  const app = startServer();
  const { statusCode, headers, rawPayload } = await app.inject(`/logos/${id}`);
  expect(statusCode).toBe(200);
  expect(rawPayload).toEqual(LOGOS.webp);
  expect(headers).toMatchObject({
    'content-type': 'image/webp',
    'content-length': String(LOGOS.webp.length),
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
  });
  const head = await app.inject({ method: 'HEAD', url: `/logos/${id}` });
  expect([head.statusCode, head.headers['content-type'], head.body]).toEqual([200, 'image/webp', '']);
});

test('what is no logo is not there, as any other URL', async () => {
  const app = startServer();
  for (const id of ['0'.repeat(32), '0'.repeat(31), 'F'.repeat(32), '..%2f..%2fetc', '%00', "'", 'x'.repeat(10_000)]) {
    const { statusCode, headers, json } = await app.inject(`/logos/${id}`);
    expect([statusCode, headers['content-type']]).toEqual([404, 'application/problem+json; charset=utf-8']);
    expect(json()).toMatchObject({ code: 'ROUTE_NOT_FOUND', title: 'There is nothing at this URL' });
    expect(headers['cache-control']).toBeUndefined();
  }
});

test('the 100 logos that were used last are answered without the database', async () => {
  const app = startServer();
  const ids: string[] = [];
  for (let index = 0; index <= 100; index += 1) {
    ids.push(await insertLogo(db, { type: 'image/png', content: Buffer.concat([LOGOS.png, Buffer.of(index)]) }));
  }
  const status = async (id: string | undefined) => (await app.inject(`/logos/${id}`)).statusCode;
  for (const id of ids.slice(0, 100)) expect(await status(id)).toBe(200);
  expect(await status(ids[0])).toBe(200);
  expect(await status(ids[100])).toBe(200);
  await removeLogos();
  expect([await status(ids[0]), await status(ids[1]), await status(ids[2])]).toEqual([200, 404, 200]);
});
