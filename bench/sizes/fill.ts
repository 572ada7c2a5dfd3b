import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import {
  describePayment,
  type EventType,
  eventBody,
  type ProjectedInvoice,
  projectInvoice,
} from '../../src/core/domain/event.ts';
import type { MicroUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { GrowthShop } from '../growth/shop.ts';

export type LedgerCounts = { paid: number; expired: number; events: number; deliveries: number; attempts: number };

export const ADDRESS_COUNT = 50;
const PRICE_COUNT = 2000;

/** Invoices that share the same history. */
const BATCH = 20_000;
/** Runs as often as autovacuum would, because here a year takes minutes. */
const VACUUM_EVERY = 5;
/** Six of ten invoices are paid, as in the growth benchmark; the rest expire. */
const PAID_OF_TEN = 6;
/** One webhook in ten arrives at the second attempt. */
const REPEATED_OF_TEN = 1;

/**
 * Adds invoices in the order of their time, with every row that their history writes and updates: PENDING, CONFIRMING, PAID or EXPIRED, an
 * event and a delivery for each change, attempts, and transfers. All indexes exist from the start, so they fill up as in production.
 * Triggers and foreign keys are disabled, because they write nothing that stays.
 */
export async function fillLedger(
  client: Client,
  shop: GrowthShop,
  count: number,
  onProgress: (text: string) => void,
): Promise<LedgerCounts> {
  await client.query("set synchronous_commit = 'off'; set session_replication_role = 'replica'");
  const { rows } = await client.query<{ id: string }>('select id from webhook_endpoints');
  const endpoint = rows[0]?.id;
  const report = async (type: EventType, isPaid: boolean) => {
    await client.query(INSERT_EVENTS, [shop.projectId, type, sampleBody(shop.projectId, type), isPaid]);
    await client.query(INSERT_DELIVERIES, [endpoint]);
    await client.query(LEASE);
    await client.query(FAIL_SOME);
    await client.query(LEASE);
    await client.query(DELIVER);
    await client.query('truncate told');
  };
  await client.query(
    'create temporary table fresh (id uuid primary key, n bigint, is_paid boolean, paid_transfer_id uuid)',
  );
  await client.query('create temporary table told (event_id uuid primary key)');
  for (let start = 0; start < count; start += BATCH) {
    await client.query(INSERT_INVOICES, [
      shop.projectId,
      shop.addressIds,
      start,
      Math.min(start + BATCH, count),
      count,
      shop.keyId,
    ]);
    await client.query('analyze fresh');
    await client.query(CONFIRM, [shop.projectId]);
    await report('invoice.confirming', true);
    await client.query(INSERT_TRANSFERS, [shop.projectId]);
    await client.query(PAY, [shop.projectId]);
    await report('invoice.paid', true);
    await client.query(EXPIRE, [shop.projectId]);
    await report('invoice.expired', false);
    await client.query('truncate fresh');
    const batch = start / BATCH + 1;
    if (batch % VACUUM_EVERY === 0) {
      await client.query('vacuum invoices, events, deliveries, delivery_attempts, transfers');
      onProgress(`${batch * BATCH} invoices`);
    }
  }
  await client.query("set session_replication_role = 'origin'");
  await client.query('vacuum analyze');
  const counted = await client.query<LedgerCounts>(`select
    (select count(*) from invoices where status = 'PAID')::int as paid,
    (select count(*) from invoices where status = 'EXPIRED')::int as expired,
    (select count(*) from events)::int as events, (select count(*) from deliveries)::int as deliveries,
    (select count(*) from delivery_attempts)::int as attempts`);
  return counted.rows[0] as LedgerCounts;
}

/** Data as long as what the service stores. The content doesn't matter, because such rows aren't compressed. */
function sampleBody(projectId: string, type: EventType): string {
  const now = unixMs(Date.now());
  const status = type === 'invoice.paid' ? 'PAID' : type === 'invoice.confirming' ? 'CONFIRMING' : 'EXPIRED';
  const invoice: ProjectedInvoice = {
    id: randomUUID(),
    externalId: 'order-1000000000000000',
    status,
    checkoutToken: 'A'.repeat(22),
    expiresAt: now,
  };
  const payable = {
    requestedMicro: 25_000_000n as MicroUsdt,
    payableMicro: 25_004_217n as MicroUsdt,
    address: `T${'a'.repeat(33)}`,
  };
  const transaction = {
    txId: 'a'.repeat(64),
    logIndex: 0,
    blockNumber: 76_000_000,
    blockTime: now,
    from: `T${'b'.repeat(33)}`,
    amountMicro: payable.payableMicro,
    late: false,
    headNumber: 76_000_019,
  };
  const data = {
    ...projectInvoice(invoice, 'https://pay.example.com'),
    payment: describePayment(payable, status === 'EXPIRED' ? null : transaction),
  };
  return eventBody({ id: randomUUID(), type, timestamp: now, projectId, sequence: 1, data });
}

const INSERT_INVOICES = `
  with made as (
    insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, status,
      checkout_token, created_at, expires_at, api_key_id)
    select uuidv7(age), $1, 'devnet', ($2::uuid[])[1 + n % ${ADDRESS_COUNT}], gen_random_uuid()::text, 'order-' || 1000000000000000 + n,
      price, price + 9 + 97 * (n / ${ADDRESS_COUNT * PRICE_COUNT}), 'PENDING',
      translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 22), '+/0OIl', 'abcdef'),
      now() + age, now() + age + interval '30 minutes', $6
    from (
      select n, (500 + 97 * (n / ${ADDRESS_COUNT} % ${PRICE_COUNT})) * 10000 as price,
        interval '-365 days' * (1 - n / $5::float8) as age
      from generate_series($3::int8, $4::int8 - 1) n) numbered
    order by n
    returning id, created_at, right(external_id, -6)::int8 - 1000000000000000 as n)
  insert into fresh select id, n, n % 10 < ${PAID_OF_TEN}, uuidv7(created_at - now() + interval '3 minutes') from made`;

const OF_PAID = 'from fresh f where i.project_id = $1 and i.id = f.id and f.is_paid';
const CONFIRM = `update invoices i set status = 'CONFIRMING', event_count = 1 ${OF_PAID}`;
const PAY = `update invoices i set status = 'PAID', event_count = 2, paid_transfer_id = f.paid_transfer_id ${OF_PAID}`;
const EXPIRE = `
  update invoices i set status = 'EXPIRED', event_count = 1
  from fresh f where i.project_id = $1 and i.id = f.id and not f.is_paid`;

const INSERT_TRANSFERS = `
  insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
    amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes, recorded_at)
  select f.paid_transfer_id, project_id, network, address_id, sha256(uuid_send(f.paid_transfer_id)), 0, block, sha256(int8send(block)),
    created_at + interval '2 minutes', 'T' || left(md5(i.id::text) || md5(address_id::text), 33), payable_micro, 'matched', i.id,
    payable_micro, decode(md5((block % 27)::text) || '00000000', 'hex'), 'agreed:2',
    '{https://api.trongrid.io,https://tron.example.com}', created_at + interval '3 minutes'
  from fresh f join invoices i on i.project_id = $1 and i.id = f.id
    cross join lateral (select (extract(epoch from i.created_at) / 3)::int8 as block) b
  where f.is_paid order by f.n`;

const INSERT_EVENTS = `
  with made as (
    insert into events (id, project_id, network, type, invoice_id, sequence, body, created_at, position)
    select uuidv7(i.created_at - now() + interval '3 minutes'), i.project_id, i.network, $2, i.id, i.event_count, $3,
      i.created_at + interval '3 minutes',
      coalesce((select max(position) from events where project_id = $1), 0) + row_number() over (order by f.n)
    from fresh f join invoices i on i.project_id = $1 and i.id = f.id
    where f.is_paid = $4 order by f.n
    returning id)
  insert into told select id from made`;

const INSERT_DELIVERIES = `
  insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
  select e.id, $1, e.project_id, e.invoice_id, e.sequence, e.created_at, e.created_at
  from told t join events e on e.id = t.event_id order by e.position`;

const LEASE = `
  update deliveries d set attempt_count = attempt_count + 1, next_attempt_at = d.next_attempt_at + interval '25 seconds'
  from told t where d.event_id = t.event_id and d.status = 'pending' and d.attempt_count = (
    select count(*) from delivery_attempts a where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id)`;

const FAIL_SOME = `
  with failed as (
    update deliveries d set last_status = 503, last_error = 'HTTP 503', next_attempt_at = d.next_attempt_at + interval '5 seconds'
    from told t where d.event_id = t.event_id and get_byte(uuid_send(d.event_id), 15) % 10 < ${REPEATED_OF_TEN}
    returning d.event_id, d.endpoint_id, d.attempt_count, d.created_at)
  insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, latency_ms, status, error, answer)
  select event_id, endpoint_id, attempt_count, created_at, 38, 503, 'HTTP 503', 'Service Unavailable' from failed`;

const DELIVER = `
  with done as (
    update deliveries d set status = 'delivered', finished_at = d.next_attempt_at, last_status = 204, last_error = null
    from told t where d.event_id = t.event_id
    returning d.event_id, d.endpoint_id, d.attempt_count, d.finished_at)
  insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, latency_ms, status, answer)
  select event_id, endpoint_id, attempt_count, finished_at, 38, 204, '' from done`;
