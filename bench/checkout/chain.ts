import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { createShop, insertInvoices, planPayments } from '../ingest/shop.ts';

type OpenInvoice = { id: string; token: string };

/** A shop whose chain the benchmark writes, as a watcher would. */
export type BenchChain = {
  connection: PostgresConnection;
  client: pg.Client;
  waiting: OpenInvoice[];
  confirming: OpenInvoice[];
  /** Adds a block with its time, and returns its height. */
  mine(timeMs: number): Promise<number>;
  /** Moves the transfers of all confirming invoices into the newest block. */
  sightAgain(): Promise<void>;
};

const BLOCK_MS = 3000;

export async function createChain(
  server: PostgresConnection,
  counts: { waiting: number; confirming: number },
): Promise<BenchChain> {
  const shop = await createShop(server, 'checkout', null);
  const count = counts.waiting + counts.confirming;
  await insertInvoices(
    shop,
    planPayments(
      shop.accounts,
      Array.from({ length: count }, (_, index) => index),
    ),
  );
  const client = new pg.Client(shop.connection);
  // The connection may end with the server; statements report their own errors.
  client.on('error', () => undefined);
  await client.connect();
  let number = 1000;
  await client.query(
    "insert into chain_cursors (network, solid_number, solid_id, solid_time) values ('devnet', $1, $2, $3)",
    [number, randomBytes(32), new Date(Date.now() - BLOCK_MS)],
  );
  const mine = async (timeMs: number) => {
    number += 1;
    await client.query(
      "insert into head_blocks (network, number, block_id, block_time) values ('devnet', $1, $2, $3)",
      [number, randomBytes(32), new Date(timeMs)],
    );
    return number;
  };
  await mine(Date.now());
  await client.query(
    `insert into sightings (network, block_number, tx_id, log_index, project_id, invoice_id, from_address, amount_micro)
     select network, $1, sha256(id::text::bytea), 0, project_id, id, 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY', payable_micro
     from invoices order by id limit $2`,
    [number, counts.confirming],
  );
  const { rows: sighted } = await client.query<{ id: string }>('select invoice_id as id from sightings');
  await changeStatus(
    client,
    sighted.map(({ id }) => id),
    'CONFIRMING',
  );
  await client.query('vacuum analyze');
  const { rows } = await client.query<OpenInvoice & { status: string }>(
    'select id, checkout_token as token, status from invoices',
  );
  const of = (status: string) => rows.filter((row) => row.status === status);
  return {
    connection: shop.connection,
    client,
    waiting: of('PENDING'),
    confirming: of('CONFIRMING'),
    mine,
    sightAgain: async () => {
      await client.query('update sightings set block_number = $1', [number]);
    },
  };
}

/** Adds a block every 3 s while it's running. It starts running immediately. */
export function startMining(chain: BenchChain): { start(): void; stop(): Promise<void> } {
  let last: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const start = () => {
    timer = setInterval(() => {
      last = chain.mine(Date.now()).catch((error) => console.error(error));
    }, BLOCK_MS);
  };
  start();
  return {
    start,
    stop: async () => {
      clearInterval(timer);
      await last;
    },
  };
}

/** Invoices that already have this status return to PENDING. Each change has its event, as PostgreSQL requires. */
export async function changeStatus(client: pg.Client, ids: readonly string[], status: string): Promise<void> {
  await client.query(
    `with changed as (
       select project_id, id, event_count + 1 as number, case status when $2 then 'PENDING' else $2 end as status
       from invoices where id = any($1::uuid[])),
     told as (
       insert into events (id, project_id, network, type, invoice_id, sequence, body)
       select gen_random_uuid(), project_id, 'devnet', 'invoice.' || lower(status), id, number, '{}' from changed)
     update invoices i set status = c.status, event_count = c.number from changed c where i.project_id = c.project_id and i.id = c.id`,
    [ids, status],
  );
}
