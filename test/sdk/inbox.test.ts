import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createInbox, type InboxStorage } from '../../packages/sdk/src/inbox.ts';
import { isFulfillable, Quittance, type WebhookEvent } from '../../packages/sdk/src/index.ts';
import { quittanceWebhook } from '../../packages/sdk/src/middleware/express.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { createInvoice, eventually, startTestService, type TestService } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';

const EXAMPLES = '../../docs/examples/node-sdk';
const TABLE = /create table quittance_inbox[\s\S]*?where due_at is not null;/;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

type AnyTx = { query(text: string, values?: unknown[]): Promise<unknown> } & ((write?: (db: unknown) => void) => void);
type Storage = InboxStorage<AnyTx>;

/** Creates an inbox in its own schema, with the table from the example's comment. */
async function startPostgresInbox(schema: string): Promise<{ storage: Storage; pool: pg.Pool }> {
  const { readFile } = await import('node:fs/promises');
  const { postgresInbox } = await import(`${EXAMPLES}/inbox-postgres.mjs`);
  const text = await readFile(new URL(`${EXAMPLES}/inbox-postgres.mjs`, import.meta.url), 'utf8');
  const [table = ''] = TABLE.exec(text.replaceAll(/^\/\/ ?/gm, '')) ?? [];
  const pool = new pg.Pool({
    connectionString: database.ownerString,
    options: `-c search_path=${schema}`,
    max: 4,
  });
  await pool.query(`create schema ${schema}`);
  await pool.query(table);
  return { storage: postgresInbox(pool), pool };
}

/** Node 20 has no SQLite. */
const sqlite = await import('node:sqlite' as string).catch(() => null);
const STORAGES: [string, () => Promise<{ storage: Storage; stop(): Promise<void> }>][] = [
  [
    'PostgreSQL',
    async () => {
      const { storage, pool } = await startPostgresInbox(`shop_${Math.random().toString(36).slice(2)}`);
      return { storage, stop: () => pool.end() };
    },
  ],
  ...(sqlite === null
    ? []
    : ([
        [
          'SQLite',
          async () => {
            const { sqliteInbox } = await import(`${EXAMPLES}/inbox-sqlite.mjs`);
            const db = new sqlite.DatabaseSync(':memory:');
            return { storage: sqliteInbox(db), stop: async () => db.close() };
          },
        ],
      ] as typeof STORAGES)),
];

const eventOf = (id: string) => ({ id, type: 'ping', data: {} }) as unknown as WebhookEvent;

describe.each(STORAGES)('an inbox in %s', (_name, startStorage) => {
  async function start(handle: (event: WebhookEvent, tx: AnyTx) => Promise<unknown>, workers = 1) {
    const { storage, stop } = await startStorage();
    const errors: unknown[] = [];
    const inbox = createInbox(storage, handle, { onError: (error) => errors.push(error), pollMs: 50 });
    const controller = new AbortController();
    const running = Array.from({ length: workers }, () => inbox.run(controller.signal));
    onTestFinished(async () => {
      controller.abort();
      await Promise.all(running);
      await stop();
    });
    return { inbox, errors, storage };
  }

  test('handles an event once, however often it came, and by however many workers', async () => {
    const handled: string[] = [];
    const { inbox } = await start(async ({ id }) => handled.push(id), 3);
    const ids = Array.from({ length: 20 }, (_, index) => `evt_${index}`);
    await Promise.all([...ids, ...ids, ...ids].map((id) => inbox.receive(eventOf(id))));
    await eventually(
      () => handled,
      ({ length }) => length >= ids.length,
    );
    for (const id of ids) await inbox.receive(eventOf(id));
    await inbox.receive(eventOf('evt_last'));
    await eventually(
      () => handled,
      (all) => all.includes('evt_last'),
    );
    expect([...handled].sort()).toEqual([...ids, 'evt_last'].sort());
  });

  test('an event whose handler throws waits again and stops no other', async () => {
    const handled: string[] = [];
    const { inbox, errors } = await start(async ({ id }) => {
      if (id === 'evt_bad' && !handled.includes('evt_good')) throw new Error('not yet');
      handled.push(id);
    });
    await inbox.receive(eventOf('evt_bad'));
    await eventually(
      () => errors,
      ({ length }) => length > 0,
    );
    await inbox.receive(eventOf('evt_good'));
    await eventually(
      () => handled,
      ({ length }) => length === 2,
    );
    expect(handled).toEqual(['evt_good', 'evt_bad']);
    // On a busy machine, the first may come again before the second.
    expect(errors).toEqual(errors.map(() => new Error('not yet')));
  });
});

test('an inbox in PostgreSQL writes what the handler writes, and that it was handled, both or neither', async () => {
  const { storage, pool } = await startPostgresInbox('both_or_neither');
  onTestFinished(() => pool.end());
  await pool.query('create table paid (id text)');
  await storage.add(eventOf('evt_1'));
  const write = async (event: WebhookEvent, tx: AnyTx) => tx.query('insert into paid values ($1)', [event.id]);
  await expect(
    storage.take(async (event, tx) => {
      await write(event, tx);
      throw new Error('the process dies here');
    }),
  ).rejects.toThrow('dies here');
  expect((await pool.query('select from paid')).rowCount).toBe(0);
  await pool.query('update quittance_inbox set due_at = now()');
  expect(await storage.take(write)).toBe(true);
  expect((await pool.query('select from paid')).rowCount).toBe(1);
  expect(await storage.take(write)).toBe(false);
});

test('an event in PostgreSQL that failed for months still waits an hour, and stops no other', async () => {
  const { storage, pool } = await startPostgresInbox('for_months');
  onTestFinished(() => pool.end());
  await storage.add(eventOf('evt_bad'));
  await pool.query('update quittance_inbox set attempts = 2000');
  const refuse = async () => {
    throw new Error('refused as always');
  };
  await expect(storage.take(refuse)).rejects.toThrow('refused as always');
  const { rows } = await pool.query(`select extract(epoch from due_at - now()) as seconds from quittance_inbox`);
  expect(Number(rows[0].seconds)).toBeGreaterThan(3500);
});

test('an event whose PostgreSQL transaction fails to commit or loses its connection does not delay others', async () => {
  const { storage, pool } = await startPostgresInbox('lost_transactions');
  pool.on('error', () => undefined);
  onTestFinished(() => pool.end());
  await pool.query('create table orders (id text primary key)');
  await pool.query('create table paid (id text references orders deferrable initially deferred)');
  const handlers: Record<string, (tx: pg.ClientBase) => Promise<unknown>> = {
    evt_1: (tx) => tx.query("insert into paid values ('unknown')"),
    evt_2: async (tx) => {
      const { rows } = await tx.query('select pg_backend_pid() as pid');
      const ended = new Promise((resolve) => tx.once('end', () => resolve(null)));
      await pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
      await ended;
    },
    evt_3: (tx) => tx.query("insert into orders values ('order-3')"),
  };
  for (const id of Object.keys(handlers)) await storage.add(eventOf(id));
  const handle = async ({ id }: WebhookEvent, tx: AnyTx) => handlers[id]?.(tx as unknown as pg.ClientBase);
  await expect(storage.take(handle)).rejects.toThrow('violates foreign key');
  await expect(storage.take(handle)).rejects.toThrow();
  expect(await storage.take(handle)).toBe(true);
  expect(await storage.take(handle)).toBe(false);
  expect(
    (await pool.query('select id, attempts, due_at is null as handled from quittance_inbox order by id')).rows,
  ).toEqual([
    { id: 'evt_1', attempts: 1, handled: false },
    { id: 'evt_2', attempts: 1, handled: false },
    { id: 'evt_3', attempts: 0, handled: true },
  ]);
});

/** How many orders expire at once. */
const ORDERS = 106;

describe('a burst of expiries at ten receivers that read each invoice', () => {
  let service: TestService;
  const cleanups: (() => unknown)[] = [];
  beforeAll(async () => {
    // The limits of production: ten receivers read more than one key may read at once.
    service = await startTestService({ config: { rateLimit: { perSecond: 100, burst: 200 } } });
  });
  afterAll(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
    await service.stop();
  });

  /** Starts a shop that follows the documentation. `handled` counts how often each event was handled. */
  async function startShop(number: number, isInbox: boolean) {
    const secret = createWebhookSecret(() => Buffer.alloc(32, number));
    const quittance = new Quittance({ apiKey: service.project.apiKey, baseUrl: service.url });
    const handled = new Map<string, number>();
    const work = async (event: WebhookEvent, signal?: AbortSignal) => {
      if (event.type !== 'invoice.expired') return;
      const invoice = await quittance.invoices.get(event.data.invoiceId, { signal });
      if (isFulfillable(invoice, event.data.externalId)) throw new Error('an expired order is paid');
      handled.set(event.id, (handled.get(event.id) ?? 0) + 1);
    };
    let handler: (event: WebhookEvent, signal: AbortSignal) => unknown = work;
    if (isInbox) {
      const { storage, pool } = await startPostgresInbox(`burst_${number}`);
      const inbox = createInbox(storage, (event) => work(event), { onError: () => undefined });
      const controller = new AbortController();
      const running = [inbox.run(controller.signal), inbox.run(controller.signal)];
      cleanups.push(async () => {
        controller.abort();
        await Promise.all(running);
        await pool.end();
      });
      handler = inbox.receive;
    }
    // Webhooks carry the service's time. One event loop runs the service and all receivers, so a deadline may fire seconds late here.
    const options = { secret, onError: () => undefined, now: service.clock.now, deadlineMs: 6_000 };
    const server = createServer(quittanceWebhook(options, (event, _request, { signal }) => handler(event, signal)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    await addTestEndpoint(service.db, { projectId: service.project.id, url: `http://127.0.0.1:${port}/`, secret });
    return handled;
  }

  longTest('no delivery times out, and no event is handled twice', async () => {
    const shops = await Promise.all(Array.from({ length: 10 }, (_, index) => startShop(index + 1, index >= 5)));
    for (let order = 0; order < ORDERS; order += 1) expect((await createInvoice(service)).status).toBe(201);
    service.clock.advance(31 * 60_000);
    service.devnet.mine(1, { timestampMs: service.clock.now() });
    service.devnet.mineUntilSolid();
    await eventually(
      () => shops.map(({ size }) => size),
      (sizes) => sizes.every((size) => size === ORDERS),
      120_000,
    );
    expect(shops.map((handled) => [...handled.values()].filter((times) => times > 1).length)).toEqual(
      shops.map(() => 0),
    );
    const client = new pg.Client({ connectionString: service.ownerString });
    await client.connect();
    // The test service's own receiver uses the machine's clock.
    const { rows } = await client.query(
      `select coalesce(a.status::text, a.error) as outcome, count(*)::int as count, max(a.latency_ms) as slowest
       from delivery_attempts a join webhook_endpoints e on e.id = a.endpoint_id where e.url <> $1 group by 1`,
      [service.inboxUrl],
    );
    await client.end();
    console.info('attempts by outcome:', JSON.stringify(rows));
    const outcomes = rows.map(({ outcome }) => outcome).filter((outcome) => outcome !== '204' && outcome !== '503');
    expect(outcomes).toEqual([]);
  });
});
