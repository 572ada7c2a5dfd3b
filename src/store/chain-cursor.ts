import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import type { Lease } from './leases.ts';
import { statement } from './statement.ts';

/** Where the watcher of a network stands. Block ids are 64 hex characters. */
export type ChainCursor = {
  solid: { number: number; id: string; time: UnixMs };
  /** The newest examined block, at or above the solid one. */
  head: { number: number; id: string; time: UnixMs };
};

const columns = {
  solid_number: 'int8',
  solid_id: 'text',
  solid_time: 'timestamptz',
  head_number: 'int8?',
  head_id: 'text?',
  head_time: 'timestamptz?',
} as const;

const SELECT = `select c.solid_number, encode(c.solid_id, 'hex') as solid_id, c.solid_time,
     h.number as head_number, encode(h.block_id, 'hex') as head_id, h.block_time as head_time
   from chain_cursors c
   left join lateral (
     select number, block_id, block_time from head_blocks where network = c.network order by number desc limit 1) h on true`;

const select = statement('chain-cursor-select', columns, `${SELECT} where c.network = $1`);

/** The cursor, or `null` before the first block of a network was examined. */
export async function findCursor(db: Sql, network: Network): Promise<ChainCursor | null> {
  return toCursor(await db.run(select, [network]));
}

const lock = statement('chain-cursor-lock', {}, 'select from chain_cursors where network = $1 for update');

/**
 * The cursor, locked to the end of the transaction. Call `checkLease` in the same transaction. Locked and read by two
 * statements: one that had to wait for the lock would see the new row of the cursor beside the head blocks of before.
 */
export async function lockCursor(tx: Sql, network: Network): Promise<ChainCursor | null> {
  await tx.run(lock, [network]);
  return findCursor(tx, network);
}

function toCursor([row]: Awaited<ReturnType<typeof runSelect>>): ChainCursor | null {
  if (row === undefined) return null;
  const solid = { number: Number(row.solid_number), id: row.solid_id, time: row.solid_time };
  const { head_number, head_id, head_time } = row;
  if (head_number === null || head_id === null || head_time === null) return { solid, head: solid };
  return { solid, head: { number: Number(head_number), id: head_id, time: head_time } };
}

function runSelect(db: Sql) {
  return db.run(select, []);
}

const check = statement(
  'lease-check',
  { epoch: 'int8' },
  'select epoch from leases where name = $1 and holder = $2 and epoch = $3 and expires_at > now() for share',
);

/** Whether the lease is still ours. Until the transaction ends nobody can take it over (fencing). */
export async function checkLease(tx: Sql, lease: Lease): Promise<boolean> {
  return (await tx.run(check, [lease.name, lease.holder, lease.epoch])).length === 1;
}

const insert = statement(
  'chain-cursor-insert',
  { is_new: 'bool' },
  `insert into chain_cursors (network, solid_number, solid_id, solid_time, genesis_id)
   values ($1, $2, decode($3, 'hex'), $4, decode($5, 'hex'))
   on conflict (network) do nothing returning true as is_new`,
);

/** Sets the block from which a new network is followed, and its block 0; does nothing, and returns `false`, if the network has a cursor. */
export async function insertCursor(
  tx: Sql,
  network: Network,
  block: ChainCursor['solid'],
  genesisId: string | null,
): Promise<boolean> {
  return (await tx.run(insert, [network, block.number, block.id, new Date(block.time), genesisId])).length === 1;
}

const genesis = statement(
  'chain-cursor-genesis',
  { genesis_id: 'text?' },
  "select encode(genesis_id, 'hex') as genesis_id from chain_cursors where network = $1",
);

/** The id of block 0 of the network that is followed, or `null` if it is not known. */
export async function findGenesisId(db: Sql, network: Network): Promise<string | null> {
  const [row] = await db.run(genesis, [network]);
  return row?.genesis_id ?? null;
}

const halt = statement(
  'chain-cursor-halt',
  {},
  'update chain_cursors set halted_at = now(), halt_reason = $2 where network = $1 and halted_at is null',
);

/** Stops the network's watcher for good: only `clearHalt`, an operator's command, lets it go on. */
export async function setHalt(db: Sql, network: Network, reason: string): Promise<void> {
  await db.run(halt, [network, reason]);
}

const haltOf = statement(
  'chain-cursor-halt-select',
  { halted_at: 'timestamptz', halt_reason: 'text' },
  'select halted_at, halt_reason from chain_cursors where network = $1 and halted_at is not null',
);

/** Why and since when the watcher is stopped, or `null`. */
export async function findHalt(db: Sql, network: Network): Promise<{ at: UnixMs; reason: string } | null> {
  const [row] = await db.run(haltOf, [network]);
  return row === undefined ? null : { at: row.halted_at, reason: row.halt_reason };
}

const resume = statement(
  'chain-cursor-resume',
  {},
  'update chain_cursors set halted_at = null, halt_reason = null where network = $1',
);

export async function clearHalt(db: Sql, network: Network): Promise<void> {
  await db.run(resume, [network]);
}

const update = statement(
  'chain-cursor-update',
  {},
  `update chain_cursors set solid_number = $2, solid_id = decode($3, 'hex'), solid_time = $4, updated_at = now()
   where network = $1`,
);

export async function updateCursor(tx: Sql, network: Network, block: ChainCursor['solid']): Promise<void> {
  await tx.run(update, [network, block.number, block.id, new Date(block.time)]);
}

const earliest = statement(
  'invoice-earliest',
  { created_at: 'timestamptz?' },
  'select min(created_at) as created_at from invoices where network = $1',
);

/** When the first invoice of a network was created; `null` if there is none. Read once, for a network without a cursor. */
export async function findEarliestInvoiceTime(db: Sql, network: Network): Promise<UnixMs | null> {
  const [row] = await db.run(earliest, [network]);
  return row?.created_at ?? null;
}
