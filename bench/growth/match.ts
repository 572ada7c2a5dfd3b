import { randomBytes } from 'node:crypto';
import type { AccountHex } from '@quittance/tron/address';
import type { Client } from 'pg';
import type { ChainTransfer, SolidBlock } from '../../src/core/domain/chain-block.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import type { Watching } from '../../src/core/payments/watching.ts';
import { pooledRandom } from '../../src/core/runtime/random.ts';
import { findCursor, insertCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease } from '../../src/core/store/chain/leases.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import type { GrowthShop } from './shop.ts';

/** The number of transfers in a block of the main network, and how many of them pay an invoice. */
const TRANSFERS = 90;
const PAID_PER_BLOCK = 2;
/** The size of a batch while catching up (`chain/promote`). */
const BATCH_BLOCKS = 20;
export const PAID_PER_BATCH = PAID_PER_BLOCK * BATCH_BLOCKS;

const NETWORK = 'devnet';
/** One day, which is longer than any run. */
const LEASE_MS = 86_400_000;
const EVIDENCE = { nodes: ['http://127.0.0.1:8090'], operatorCount: 1 };
const PRODUCER = '0'.repeat(40) as AccountHex;

/** An unpaid invoice: the account of its address, and its amount. */
export type Payable = { account: AccountHex; amount: bigint };

/** Acquires the watcher's right to record, on a chain that starts here. */
export async function startWatching(db: Database): Promise<Watching> {
  const lease = await acquireLease(db, `watcher:${NETWORK}`, 'bench', LEASE_MS);
  if (lease === null) throw new Error('the lease is taken');
  await insertCursor(db, NETWORK, { number: 1_000_000, id: hex(32), time: now() }, null);
  return { db, network: NETWORK, publicUrl: 'https://pay.example', now, random: pooledRandom, lease };
}

/** Records blocks that pay these invoices, `PAID_PER_BLOCK` in each block, in batches. Returns the milliseconds per batch. */
export async function payAll(watching: Watching, payables: readonly Payable[]): Promise<number> {
  const cursor = await findCursor(watching.db, NETWORK);
  if (cursor === null) throw new Error('there is no cursor');
  const blocks = makeBlocks(cursor.solid, payables);
  const batches = blocks.length / BATCH_BLOCKS;
  let matched = 0;
  const startedAt = performance.now();
  for (let batch = 0; batch < batches; batch++) {
    const counts = await applySolidBlocks(watching, blocks.slice(batch * BATCH_BLOCKS, (batch + 1) * BATCH_BLOCKS));
    matched += counts.matched;
  }
  const msEach = (performance.now() - startedAt) / batches;
  if (matched !== payables.length) throw new Error(`${matched} of ${payables.length} payments were matched`);
  return msEach;
}

function makeBlocks(parent: { number: number; id: string }, payables: readonly Payable[]): SolidBlock[] {
  let last = parent;
  return Array.from({ length: payables.length / PAID_PER_BLOCK }, (_, index) => {
    const paid = payables.slice(index * PAID_PER_BLOCK, (index + 1) * PAID_PER_BLOCK);
    const transfers = Array.from({ length: TRANSFERS }, (_, at) =>
      makeTransfer(paid[at] ?? { account: hex(20) as AccountHex, amount: BigInt(1 + randomBytes(4).readUInt32BE()) }),
    );
    const block = { number: last.number + 1, id: hex(32), parentId: last.id, time: now(), producer: PRODUCER };
    last = block;
    return { ...block, transfers, evidence: EVIDENCE };
  });
}

function makeTransfer({ account, amount }: Payable): ChainTransfer {
  return { txId: hex(32), logIndex: 0, from: hex(20) as AccountHex, to: account, amount, isProven: true };
}

function hex(bytes: number): string {
  return randomBytes(bytes).toString('hex');
}

function now(): UnixMs {
  return unixMs(Date.now());
}

/** Returns unpaid invoices from all parts of the table, in random order. */
export async function anyPayables(client: Client, { projectId }: GrowthShop, count: number): Promise<Payable[]> {
  const { rows } = await client.query<Payable>(
    `select encode(a.account, 'hex') as account, i.payable_micro as amount
     from (select * from invoices where project_id = $1 and status <> 'PAID' order by random() limit $2) i
     join addresses a on a.id = i.address_id order by random()`,
    [projectId, count],
  );
  return rows.map(({ account, amount }) => ({ account, amount: BigInt(amount) }));
}

/** Returns the amounts that pay these invoices, by their UUIDs. */
export async function payablesOf(
  client: Client,
  { projectId }: GrowthShop,
  ids: readonly string[],
): Promise<Payable[]> {
  const { rows } = await client.query<Payable>(
    `select encode(a.account, 'hex') as account, i.payable_micro as amount
     from invoices i join addresses a on a.id = i.address_id where i.project_id = $1 and i.id = any ($2::uuid[])`,
    [projectId, ids],
  );
  return rows.map(({ account, amount }) => ({ account, amount: BigInt(amount) }));
}
