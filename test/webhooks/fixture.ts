import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics, type Metrics } from '../../src/core/runtime/metrics.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import {
  type AttemptOutcome,
  LEASE_MS,
  type LeasedDelivery,
  recordOutcomes,
} from '../../src/core/store/outbox/deliveries.ts';
import { type DispatcherOptions, startDispatcher } from '../../src/core/webhooks/dispatcher.ts';
import { storeEndpointSecret } from '../../src/core/webhooks/endpoint-secrets.ts';
import { createWebhookSender, type WebhookSender } from '../../src/core/webhooks/send.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addTestEndpoint, TEST_KEY_RING } from '../support/key-ring.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { createTestDatabase } from '../support/postgres.ts';

/** The outcome of an attempt that was delivered at once. */
export const deliveredOutcome = (delivery: LeasedDelivery): AttemptOutcome => ({
  ...{ delivery, kind: 'delivered', startedAt: unixMs(delivery.leasedUntil - LEASE_MS), latencyMs: 1 },
  ...{ status: 204, error: null, answer: '', nextAttemptAt: null, isHastened: false },
});

/** The outcome of a failed attempt, with the next one in 5 s. */
export const failedOutcome = (delivery: LeasedDelivery): AttemptOutcome => ({
  ...{ ...deliveredOutcome(delivery), kind: 'failed', status: 500, error: 'http_500: no', answer: null },
  nextAttemptAt: unixMs(delivery.leasedUntil - LEASE_MS + 5000),
});

/** Records one outcome. Returns whether its lease was still ours. */
export const recordOne = async (db: Database, outcome: AttemptOutcome, now: UnixMs): Promise<boolean> =>
  (await recordOutcomes(db, [outcome], now)).ours.size === 1;

export type Row = Record<string, unknown>;
export type Received = { id: string; headers: IncomingHttpHeaders; body: Buffer };
export type World = Awaited<ReturnType<typeof createWorld>>;

/** The current test's world, in a file that calls `createWorldForEachTest`. */
export let world: World;
export function createWorldForEachTest(): void {
  beforeEach(async () => {
    world = await createWorld();
  });
  afterEach(() => world.end());
}

/** Waits for a condition that other work brings about. The limit only ends a test that would fail. */
export const eventually = <T>(condition: () => T | Promise<T>, timeout = PATIENCE_MS): Promise<T> =>
  vi.waitFor(condition, { timeout, interval: 10 });

/** Counts the recorded attempts by outcome. */
export async function outcomesOf({
  deliveryAttempts,
}: Pick<Metrics, 'deliveryAttempts'>): Promise<Record<string, number>> {
  const { values } = await deliveryAttempts.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
}

/** Counts the recorded attempts. */
export async function attemptsMade(metrics: Pick<Metrics, 'deliveryAttempts'>): Promise<number> {
  return Object.values(await outcomesOf(metrics)).reduce((sum, value) => sum + value, 0);
}

/** Waits until this many attempts have been recorded. */
export async function recorded(metrics: Pick<Metrics, 'deliveryAttempts'>, attempts: number) {
  await eventually(async () => expect(await attemptsMade(metrics)).toBe(attempts));
}

/** Creates a database, a movable clock, and everything that tests need to fill and run it. */
export async function createWorld() {
  const database = await createTestDatabase();
  const client = new pg.Client(database.owner);
  await client.connect();
  const clock = movableClock();
  const ends: (() => Promise<unknown>)[] = [];
  const closes: (() => void)[] = [];
  const sql = async (text: string, values: unknown[] = []): Promise<Row[]> => (await client.query(text, values)).rows;
  // The service's clock moves by days here, but the database's clock, which limits how long an endpoint may be paused, doesn't.
  await sql('alter table webhook_endpoints disable trigger webhook_endpoints_bound_pauses');
  const projectId = randomUUID();
  await sql(`insert into projects (id, name, network) values ($1, 'shop', 'devnet')`, [projectId]);
  const addressId = randomUUID();
  await sql(
    `insert into addresses (id, project_id, network, account, address, position) values ($1, $2, 'devnet', $3, tron_address($3), 1)`,
    [addressId, projectId, randomBytes(20)],
  );

  const open = (connection: PostgresConnection = database.connection): Database => {
    const db = openDatabase({ connection, poolSize: 8, applicationName: 'webhooks', onError: () => undefined });
    ends.push(() => db.close());
    return db;
  };
  const seeding = open();
  return {
    clock,
    sql,
    projectId,
    connection: database.connection,
    openDatabase: open,
    /** Starts a dispatcher with its own pool; `lines` is its log. */
    startDispatcher: (options: Partial<DispatcherOptions> = {}) => {
      const metrics = createMetrics();
      const lines: string[] = [];
      const log = createLogger({ level: 'debug', destination: { write: (line) => void lines.push(line) } });
      const db = open();
      const sender = createWorldSender(options);
      const deps = { db, clock, log, metrics, sender, random: () => 0, pollMs: 20 };
      const dispatcher = startDispatcher({ ...deps, ...KEYS, ...options });
      let stopped: Promise<void> | undefined;
      const stop = () => {
        stopped ??= dispatcher.stop();
        return stopped;
      };
      ends.push(stop);
      return { stop, metrics, lines };
    },
    addEndpoint: async (url: string) => {
      const endpoint = { id: randomUUID(), url, secret: createWebhookSecret(randomBytes) };
      await addTestEndpoint(seeding, { ...endpoint, projectId });
      return endpoint;
    },
    /** Gives an endpoint a new secret; the previous one signs until `endsAt`. */
    rotateSecret: async (endpoint: { id: string }, endsAt: Date): Promise<string> => {
      const secret = createWebhookSecret(randomBytes);
      await sql('update webhook_secrets set ends_at = $2 where endpoint_id = $1', [endpoint.id, endsAt]);
      const added = { endpointId: endpoint.id, secret, now: unixMs(clock.now()), random: randomBytes };
      await seeding.transaction((tx) => storeEndpointSecret(tx, TEST_KEY_RING, added));
      return secret;
    },
    untilNothingIsUnderWay: () => eventually(async () => expect(await sql(UNDER_WAY)).toHaveLength(0)),
    /**
     * Whenever nothing is in progress, moves the clock to the next due delivery, until `isOver`. It must not move beyond a current lease,
     * or the delivery in progress would be leased again.
     */
    liveOnUntil: (isOver: () => Promise<boolean> | boolean) =>
      eventually(async () => {
        const over = await isOver();
        const [next] = over ? [] : await sql(NEXT_DUE);
        if (next?.['at'] instanceof Date) clock.moveTo(next['at']);
        expect(over).toBe(true);
      }),
    addInvoice: async () => {
      const id = randomUUID();
      await sql(
        `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
           payable_micro, checkout_token, created_at, expires_at)
         values ($1, $2, 'devnet', $3, $4, $4, 1, $5, $6, now(), now())`,
        [id, projectId, addressId, id, randomBytes(6).readUIntBE(0, 6) + 1, id.slice(0, 22)],
      );
      return id;
    },
    /** Writes an event and its deliveries like a status change does, and notifies the dispatchers. */
    addEvent: async (endpoints: { id: string }[], invoice?: { id: string; sequence: number }) => {
      const id = uuidV7(clock.now(), randomBytes(10));
      const body = JSON.stringify({ id: encodeId('evt', id), type: 'ping', note: 'Grüße ₮ \u0000 𝄞' });
      const at = new Date(clock.now());
      const [invoiceId, sequence] = [invoice?.id ?? null, invoice?.sequence ?? 1];
      await sql('begin');
      await sql(
        `insert into events (id, project_id, network, type, invoice_id, sequence, body) values ($1, $2, 'devnet', 'ping', $3, $4, $5)`,
        [id, projectId, invoiceId, sequence, body],
      );
      await sql(
        `insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
         select $1, endpoint_id, $3, $4, $5, $6, $6 from unnest($2::uuid[]) endpoint_id`,
        [id, endpoints.map((endpoint) => endpoint.id), projectId, invoiceId, sequence, at],
      );
      await sql('notify quittance_deliveries');
      await sql('commit');
      return { id, wireId: encodeId('evt', id), body };
    },
    /** Does the same as `addEvent` without an invoice, over a separate connection while the world's is in a transaction. */
    addEventApart: async (endpoints: { id: string }[]) => {
      const apart = new pg.Client(database.owner);
      await apart.connect();
      const id = uuidV7(clock.now(), randomBytes(10));
      const at = new Date(clock.now());
      await apart.query(
        `insert into events (id, project_id, network, type, sequence, body) values ($1, $2, 'devnet', 'ping', 1, '{}')`,
        [id, projectId],
      );
      await apart.query(
        `insert into deliveries (event_id, endpoint_id, project_id, sequence, next_attempt_at, created_at)
         select $1, endpoint_id, $3, 1, $4, $4 from unnest($2::uuid[]) endpoint_id`,
        [id, endpoints.map((endpoint) => endpoint.id), projectId, at],
      );
      await apart.end();
      return { id };
    },
    /** Adds due events of this many invoices, with a delivery to each endpoint; their bodies are `{"invoice","sequence"}`. */
    addBacklog: async (endpoints: { id: string }[], invoices: number, each: number): Promise<void> => {
      await sql('begin');
      // Skips foreign keys, because the invoices don't exist.
      await sql("set local session_replication_role = 'replica'");
      await sql(INSERT_BACKLOG, [projectId, invoices, each, new Date(clock.now()), endpoints.map(({ id }) => id)]);
      await sql('commit');
      await sql('notify quittance_deliveries');
    },
    delivery: async (event: { id: string }): Promise<Row> => {
      const [row] = await sql('select * from deliveries where event_id = $1', [event.id]);
      return row ?? expect.fail('there is no such delivery');
    },
    endpoint: async (endpoint: { id: string }): Promise<Row> => {
      const [row] = await sql('select * from webhook_endpoints where id = $1', [endpoint.id]);
      return row ?? expect.fail('there is no such endpoint');
    },
    /** For receivers: they close before the dispatchers stop, so that attempts at hanging ones end at once. */
    onEnd: (close: () => void) => void closes.push(close),
    end: async () => {
      for (const close of closes) close();
      for (const end of ends.reverse()) await end();
      await client.end();
      await database.drop();
    },
  };
}

const INSERT_BACKLOG = `
  with invoice as materialized (select gen_random_uuid() as id, n from generate_series(1, $2::int) n),
  taken as (
    insert into event_streams as s (project_id, last_position) values ($1, $2::int * $3::int)
    on conflict (project_id) do update set last_position = s.last_position + excluded.last_position returning last_position),
  event as (
    insert into events (id, project_id, network, type, invoice_id, sequence, body, created_at, position)
    select gen_random_uuid(), $1, 'devnet', 'invoice.paid', invoice.id, s,
      json_build_object('invoice', invoice.id, 'sequence', s)::text, $4, last_position - n * $3::int + s
    from taken cross join invoice cross join generate_series(1, $3::int) s
    returning *)
  insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
  select event.id, endpoint, $1, invoice_id, sequence, $4, $4 from event cross join unnest($5::uuid[]) endpoint`;

/** Attempts that are counted and not logged are leased. */
const UNDER_WAY = `
  select from deliveries d where status = 'pending' and attempt_count > 0 and not exists (
    select from delivery_attempts a where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id and a.attempt = d.attempt_count)`;
/** Combined with the previous query in one statement, because something could be leased between two. */
const NEXT_DUE = `
  select min(greatest(d.next_attempt_at, w.open_until)) as at from deliveries d join webhook_endpoints w on w.id = d.endpoint_id
  where d.status = 'pending' and w.disabled_at is null and not exists (${UNDER_WAY})`;

const KEYS = { keyRing: TEST_KEY_RING, localTargets: true };

/**
 * Sends like the service, but waits for slow machines. Every attempt takes a millisecond, because the world's clock stands still meanwhile:
 * with its real duration, it would seem to end after the next event.
 */
function createWorldSender({
  concurrency = 128,
  attemptTimeoutMs = PATIENCE_MS,
}: Partial<DispatcherOptions>): WebhookSender {
  const sender = createWebhookSender({ connections: concurrency, timeoutMs: attemptTimeoutMs });
  return {
    ...sender,
    send: async (webhook) => {
      const result = await sender.send(webhook);
      return result.kind === 'aborted' ? result : { ...result, latencyMs: 1 };
    },
  };
}

/** Starts at the current time, because PostgreSQL's defaults use it. */
function movableClock() {
  let nowMs = Date.now();
  return {
    now: () => nowMs,
    advance: (ms: number) => {
      nowMs += ms;
    },
    moveTo: (time: unknown) => {
      nowMs = Math.max(nowMs, (time as Date).getTime());
    },
  };
}

/** Starts a dispatcher in a separate process with the real clock; the caller ends it. */
export function forkDispatcher(world: World): ChildProcess {
  return fork(fileURLToPath(new URL('dispatcher-process.ts', import.meta.url)), [], {
    execArgv: ['--conditions=@quittance/source', '--import', 'ts-blank-space/register'],
    env: {
      ...process.env,
      TEST_DATABASE: JSON.stringify(world.connection),
      TEST_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
    },
  });
}

/** Starts a receiver in this process. `answer` decides how to answer each webhook, by default with 204. */
export async function startReceiver(
  world: World,
  answer: (response: ServerResponse, received: Received) => unknown = (response) => response.writeHead(204).end(),
) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    try {
      const one = {
        id: String(request.headers['webhook-id']),
        headers: request.headers,
        body: Buffer.concat(await request.toArray()),
      };
      received.push(one);
      await answer(response, one);
    } catch {
      response.destroy();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  world.onEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

/** Verifies with the published package at the test clock's time. Throws if it refuses the webhook. */
export function judge(world: World, secret: string, { body, headers }: Received): unknown {
  const now = vi.spyOn(Date, 'now').mockReturnValue(world.clock.now());
  try {
    return new Webhook(secret).verify(body, headers as Record<string, string>);
  } finally {
    now.mockRestore();
  }
}
