import { randomBytes, randomUUID } from 'node:crypto';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { migrate } from '../../src/core/store/db/migrate.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { onServer } from '../databases.ts';
import { BENCH_KEY_RING, benchSeals } from '../master-key.ts';
import { type Shop, seedShop } from '../seed.ts';
import type { Payment } from './day.ts';

/** A shop in its own database. `accounts` are those of its addresses, in the same order. */
export type IngestShop = Shop & { connection: PostgresConnection; accounts: string[] };

/** Creates a database with the schema and a shop. With `webhookUrl`, the shop receives its events there. */
export async function createShop(
  server: PostgresConnection,
  name: string,
  webhookUrl: string | null,
): Promise<IngestShop> {
  await onServer(server, (client) => client.query(`create database ${name}`));
  const connection = { ...server, database: name };
  const onError = (error: Error) => {
    throw error;
  };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'bench', onError, seals: benchSeals() });
  try {
    await migrate(db);
    const shop = await seedShop(db);
    if (webhookUrl !== null) {
      const endpoint = { id: uuidV7(Date.now(), randomBytes(10)), projectId: shop.projectId, url: webhookUrl };
      const deps = { db, keyRing: BENCH_KEY_RING, now: unixMs(Date.now()), random: randomBytes };
      await addWebhookEndpoint(deps, { ...endpoint, secret: createWebhookSecret(randomBytes) });
    }
    const accounts = await onServer(connection, async (client) => {
      const { rows } = await client.query<{ id: string; account: string }>(
        "select id, encode(account, 'hex') as account from addresses",
      );
      return shop.addressIds.map((id) => rows.find((row) => row.id === id)?.account ?? '');
    });
    return { ...shop, connection, accounts };
  } finally {
    await db.close();
  }
}

/** Every fourth payment appears only in a log of another contract. No amount occurs twice. */
export function planPayments(accounts: readonly string[], numbers: readonly number[]): Payment[] {
  return numbers.map((number, index) => ({
    number,
    account: accounts[index % accounts.length] ?? '',
    amountMicro: String(10_000_001 + 10 * index),
    isDirect: index % 4 !== 3,
  }));
}

/** Creates an invoice for each payment, older than a day of blocks. Returns the invoices' ids by the block that pays them. */
export async function insertInvoices(shop: IngestShop, payments: readonly Payment[]): Promise<Map<string, number>> {
  const ids = payments.map(() => uuidV7(Date.now(), randomBytes(10)));
  const addresses = payments.map(({ account }) => shop.addressIds[shop.accounts.indexOf(account)]);
  const amounts = payments.map(({ amountMicro }) => amountMicro);
  const tokens = payments.map(() => randomUUID().replaceAll('-', '').replaceAll('0', 'x').slice(0, 22));
  await onServer(shop.connection, (client) =>
    client.query(
      `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
         status, checkout_token, created_at, expires_at)
       select id, $1, 'devnet', address, id::text, 'order-' || id, amount, amount, 'PENDING', token, now() - interval '2 days', now() + interval '1 day'
       from unnest($2::uuid[], $3::uuid[], $4::int8[], $5::text[]) as invoice (id, address, amount, token)`,
      [shop.projectId, ids, addresses, amounts, tokens],
    ),
  );
  return new Map(ids.map((id, index) => [id, payments[index]?.number ?? 0]));
}

/**
 * Throws unless each payment up to `solid` has paid its invoice exactly once with the expected verification, and no other payment exists.
 */
export async function checkPaid(
  shop: IngestShop,
  payments: readonly Payment[],
  solid: number,
  inside: string,
): Promise<number> {
  const due = payments.filter(({ number }) => number <= solid);
  const direct = due.filter(({ isDirect }) => isDirect).length;
  const { rows } = await onServer(shop.connection, (client) =>
    client.query<Record<string, string>>(
      `select (select count(*) from invoices where status = 'PAID') as paid,
         (select count(*) from transfers) as transfers,
         (select count(*) from transfers where kind = 'matched' and verified = 'proven') as proven,
         (select count(*) from transfers where kind = 'matched' and verified = $1) as inside,
         (select count(*) from events where type = 'invoice.paid') as events`,
      [inside],
    ),
  );
  const expected = {
    paid: due.length,
    transfers: due.length,
    proven: direct,
    inside: due.length - direct,
    events: due.length,
  };
  const seen = Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, count]) => [name, Number(count)]));
  for (const [name, count] of Object.entries(expected)) {
    if (seen[name] !== count)
      throw new Error(`${name}: ${seen[name]} where ${count} were expected: ${JSON.stringify(seen)}`);
  }
  return due.length;
}
