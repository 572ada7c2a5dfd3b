import { createHash, randomBytes } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import type { Client } from 'pg';
import { formatApiKey } from '../src/core/domain/api-key.ts';
import { uuidV7 } from '../src/core/domain/ids.ts';
import type { Database } from '../src/core/store/db/database.ts';
import { insertAddress } from '../src/core/store/ledger/addresses.ts';
import { insertProject } from '../src/core/store/ledger/projects.ts';
import { insertApiKey } from '../src/faces/operator/subjects/keys.ts';
import { createPlacer, MAX_SURCHARGE_MICRO, type Place } from './prices.ts';

export type Shop = { projectId: string; addressIds: string[]; apiKey: string };

const ADDRESS_COUNT = 4;

/** A project with a key and four addresses, as its owner would have created them. */
export async function seedShop(db: Database): Promise<Shop> {
  const uuid = () => uuidV7(Date.now(), randomBytes(10));
  const [projectId, keyId] = [uuid(), uuid()];
  const project = { id: projectId, name: 'Benchmark', network: 'devnet', invoiceLifetimeMs: 30 * 60_000 } as const;
  const limits = { maxSurchargeMicro: MAX_SURCHARGE_MICRO, maxUnpaid: null, maxUnpaidPerMinute: null };
  await insertProject(db, { ...project, ...limits });
  const apiKey = formatApiKey('devnet', keyId, randomBytes(32));
  const secretSha256 = createHash('sha256').update(apiKey).digest();
  await insertApiKey(db, { id: keyId, projectId, name: 'bench', secretSha256, allowedCidrs: null, expiresAt: null });
  const addressIds = Array.from({ length: ADDRESS_COUNT }, uuid);
  for (const id of addressIds) {
    const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
    await insertAddress(db, { id, projectId, account, address: accountToAddress(account) });
  }
  return { projectId, addressIds, apiKey };
}

const BATCH = 50_000;

/**
 * Adds the invoices of 90 days. Their ids and order numbers follow their time; keys and tokens are random. All are EXPIRED, because PAID
 * ones would need transfers, which neither creating nor reading uses.
 */
export async function seedInvoices(client: Client, shop: Shop, count: number): Promise<void> {
  const place = createPlacer(shop.addressIds.length, Math.random);
  const { rows: uniques } = await client.query<{ name: string; definition: string }>(SELECT_UNIQUES);
  for (const { name } of uniques) await client.query(`alter table invoices drop constraint ${name}`);
  // Skips the foreign keys, because the rows satisfy them by construction.
  await client.query("set session_replication_role = 'replica'");
  for (let start = 0; start < count; start += BATCH) {
    const places = Array.from({ length: Math.min(BATCH, count - start) }, place);
    await client.query(INSERT, [shop.projectId, shop.addressIds, ...columnsOf(places), start, count]);
  }
  await client.query("set session_replication_role = 'origin'");
  for (const { name, definition } of uniques) {
    await client.query(`alter table invoices add constraint ${name} ${definition}`);
  }
  await client.query('vacuum analyze');
  await client.query('checkpoint');
}

function columnsOf(places: Place[]): [string[], string[], number[]] {
  return [
    places.map(({ requestedMicro }) => requestedMicro.toString()),
    places.map(({ payableMicro }) => payableMicro.toString()),
    places.map(({ address }) => address + 1),
  ];
}

const INSERT = `
  insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
    status, checkout_token, created_at, expires_at)
  select uuidv7(age), $1, 'devnet', ($2::uuid[])[address], gen_random_uuid()::text, 'order-' || 1000000000000000 + $6::int8 + number,
    requested, payable, 'EXPIRED', translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 22), '+/0OIl', 'abcdef'),
    now() + age, now() + age + interval '30 minutes'
  from (
    select requested, payable, address, number, interval '1 hour' - interval '90 days' * (1 - ($6::int8 + number) / $7::float8) as age
    from unnest($3::int8[], $4::int8[], $5::int4[]) with ordinality as place (requested, payable, address, number))`;

/** The constraints whose indexes are created afterwards, from sorted keys. An index that a foreign key needs must stay. */
const SELECT_UNIQUES = `
  select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint c
  where conrelid = 'invoices'::regclass and contype = 'u'
    and not exists (select from pg_constraint f where f.contype = 'f' and f.conindid = c.conindid)`;

/** Empties the tables of invoices again. Bypasses the triggers that forbid this. */
export async function emptyInvoices(client: Client, table = 'invoices'): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  await client.query(`truncate ${table} cascade`);
  await client.query("set session_replication_role = 'origin'");
}

const MAX_IDS = 20_000;

/** Returns the UUIDs of random invoices, at most 20,000. */
export async function sampleIds(client: Client, table = 'invoices'): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(`select id from ${table} order by random() limit $1`, [MAX_IDS]);
  return rows.map(({ id }) => id);
}
