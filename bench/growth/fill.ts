import type { Client } from 'pg';
import type { MicroUsdt } from '../../src/core/domain/money.ts';
import { codeWords, wordRange } from '../../src/core/domain/policy.ts';
import { HINT_EVERY } from '../../src/core/payments/create-invoice.ts';
import { MAX_SURCHARGE_MICRO } from '../prices.ts';
import type { GrowthShop } from './shop.ts';

/** The benchmark's prices: 5.00, 5.97, 6.94 … */
export function priceAt(index: number): MicroUsdt {
  return ((500n + 97n * BigInt(index)) * 10_000n) as MicroUsdt;
}

/** The number of different prices among the invoices of `fillHistory`. */
export const PRICE_COUNT = 2000;
/**
 * The number of addresses over which they are spread evenly. From ten million invoices on, each address has 100 invoices of every price,
 * out of 900 possible ones.
 */
export function addressCount(invoices: number): number {
  return Math.max(50, Math.ceil(invoices / (100 * PRICE_COUNT)));
}

const BATCH = 500_000;

/**
 * Adds the invoices of 90 days, and the transfers that paid 60 % of them. The newest 1 % are PENDING, the rest EXPIRED. Ids follow the
 * time; keys and tokens are random. Their tails differ on each address, but aren't code words. They have no events, so none are counted.
 */
export async function fillHistory(
  client: Client,
  shop: GrowthShop,
  count: number,
  onProgress: (text: string) => void,
): Promise<void> {
  for (let start = 0; start < count; start += BATCH) {
    await client.query(INSERT_INVOICES, [
      shop.projectId,
      shop.addressIds,
      start,
      Math.min(start + BATCH, count),
      count,
    ]);
    if ((start / BATCH) % 4 === 3) onProgress(`${start + BATCH} invoices`);
  }
  await client.query(INSERT_TRANSFERS, [shop.projectId]);
}

const INSERT_INVOICES = `
  insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
    status, checkout_token, created_at, expires_at, paid_transfer_id)
  select uuidv7(age), $1, 'devnet', ($2::uuid[])[1 + n % cardinality($2::uuid[])], gen_random_uuid()::text, 'order-' || 1000000000000000 + n,
    price, price + 9 + 97 * (n / (cardinality($2::uuid[]) * ${PRICE_COUNT})), status,
    translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 22), '+/0OIl', 'abcdef'),
    now() + age, now() + age + interval '30 minutes', case status when 'PAID' then uuidv7(age + interval '2 minutes') end
  from (
    select n, (500 + 97 * (n / cardinality($2::uuid[]) % ${PRICE_COUNT})) * 10000 as price,
      interval '-5 minutes' - interval '90 days' * (1 - n / $5::float8) as age,
      case when n >= 0.99 * $5::int8 then 'PENDING' when n % 10 < 6 then 'PAID' else 'EXPIRED' end as status
    from generate_series($3::int8, $4::int8 - 1) n)`;

const INSERT_TRANSFERS = `
  insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
    amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes)
  select paid_transfer_id, project_id, network, address_id, sha256(uuid_send(paid_transfer_id)), 0, block,
    sha256(int8send(block)), created_at + interval '2 minutes', 'T' || left(md5(id::text) || md5(address_id::text), 33), payable_micro,
    'matched', id, payable_micro, decode(left(md5((block % 27)::text), 40) || '00000000', 'hex'), 'proven', '{http://127.0.0.1}'
  from (select *, (extract(epoch from created_at) / 3)::int8 as block from invoices where project_id = $1 and status = 'PAID')`;

/** Reserves the first `words` code words of each price on each address, as expired invoices. */
export async function fillWords(
  client: Client,
  { projectId }: GrowthShop,
  addressIds: readonly string[],
  prices: readonly MicroUsdt[],
  words: number,
): Promise<void> {
  for (const price of prices) {
    const taken = codeWords(wordRange(price, MAX_SURCHARGE_MICRO)).slice(0, words);
    await client.query(INSERT_RESERVATIONS, [projectId, addressIds, price.toString(), taken.map(String)]);
  }
}

/**
 * Reserves each price itself, on as many addresses in turn as `counts` says, as the `exact` policy does. Also leaves the hint that creation
 * would have left.
 */
export async function fillExact(
  client: Client,
  { projectId }: GrowthShop,
  addressIds: readonly string[],
  counts: readonly number[],
  prices: readonly MicroUsdt[],
): Promise<void> {
  for (const [index, price] of prices.entries()) {
    const count = counts[index % counts.length] ?? 0;
    const taken = addressIds.slice(0, count);
    await client.query(INSERT_RESERVATIONS, [projectId, taken, price.toString(), [price.toString()]]);
    await client.query(INSERT_HINT, [
      projectId,
      price.toString(),
      (price + 1n).toString(),
      count - (count % HINT_EVERY),
    ]);
  }
}

const INSERT_HINT = `
  insert into allocation_hints (project_id, policy, from_micro, below_micro, position, epoch) values ($1, 'exact', $2, $3, $4, 0)`;

const INSERT_RESERVATIONS = `
  insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, status,
    checkout_token, created_at, expires_at)
  select uuidv7(), $1, 'devnet', address, gen_random_uuid()::text, 'order-' || gen_random_uuid(), $3, payable, 'EXPIRED',
    translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 22), '+/0OIl', 'abcdef'), now(), now() + interval '30 minutes'
  from unnest($2::uuid[]) address, unnest($4::int8[]) payable`;
