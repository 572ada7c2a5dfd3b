import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, parseMasterKey } from '../../src/core/runtime/key-ring.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { BENCH_MASTER_KEY } from '../master-key.ts';

/** Has the size of the event of a paid invoice. */
export const EVENT_BODY = JSON.stringify({
  id: 'evt_01kah2v8m4f5rsq0e8m1t7x9cz',
  type: 'invoice.paid',
  timestamp: '2026-11-21T10:00:00.000Z',
  projectId: 'prj_01kah2v8m4f5rsq0e8m1t7x9cz',
  network: 'TRON',
  sequence: 2,
  data: {
    invoiceId: 'inv_01kah2v8m4f5rsq0e8m1t7x9cz',
    externalId: 'order-1000000000000001',
    status: 'PAID',
    checkoutUrl: 'https://pay.example/c/2VfUXmDkJHkPQ7nT1aB9cd',
    expiresAt: '2026-11-21T10:30:00.000Z',
    payment: {
      requestedAmount: '25.00',
      payableAmount: '25.000009',
      address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
      transaction: {
        txId: 'a'.repeat(64),
        logIndex: 0,
        blockNumber: 77_000_000,
        blockTime: '2026-11-21T09:59:57.000Z',
        from: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
        amount: '25.000009',
        late: false,
        confirmations: 19,
      },
    },
  },
});

/** Adds endpoints to a project, and returns their ids in the order of the URLs. */
export async function addEndpoints(
  connection: PostgresConnection,
  projectId: string,
  urls: readonly string[],
): Promise<string[]> {
  const db = openDatabase({ connection, poolSize: 2, applicationName: 'bench', onError: () => undefined });
  const keyRing = createKeyRing([parseMasterKey(BENCH_MASTER_KEY)].flatMap((key) => key ?? []));
  const ids: string[] = [];
  try {
    for (const url of urls) {
      const endpoint = { id: randomUUID(), projectId, url, secret: createWebhookSecret(randomBytes) };
      await addWebhookEndpoint({ db, keyRing, now: unixMs(Date.now()), random: randomBytes }, endpoint);
      ids.push(endpoint.id);
    }
  } finally {
    await db.close();
  }
  return ids;
}

/**
 * Writes the events of this many invoices, with a delivery to each endpoint, and notifies the dispatcher. Skips the foreign keys, because
 * the invoices don't exist. Returns the ids.
 */
export async function writeEvents(
  client: Client,
  projectId: string,
  endpointIds: readonly string[],
  count: number,
): Promise<string[]> {
  await client.query('begin');
  await client.query("set local session_replication_role = 'replica'");
  const { rows } = await client.query<{ id: string }>(INSERT_EVENTS, [projectId, count, EVENT_BODY]);
  const ids = rows.map(({ id }) => id);
  await client.query(INSERT_DELIVERIES, [ids, endpointIds]);
  await client.query('notify quittance_deliveries');
  await client.query('commit');
  return ids;
}

const INSERT_EVENTS = `
  with taken as (
    insert into event_streams as s (project_id, last_position) values ($1, $2::int8)
    on conflict (project_id) do update set last_position = s.last_position + excluded.last_position returning last_position)
  insert into events (id, project_id, network, type, invoice_id, sequence, body, created_at, position)
  select uuidv7(), $1, 'devnet', 'invoice.paid', gen_random_uuid(), 1, $3, now(), last_position - $2::int8 + n
  from taken, generate_series(1, $2::int8) n
  returning id`;

const INSERT_DELIVERIES = `
  insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
  select e.id, endpoint, e.project_id, e.invoice_id, e.sequence, now(), now()
  from events e cross join unnest($2::uuid[]) endpoint where e.id = any($1::uuid[])`;
