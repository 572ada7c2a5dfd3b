import type { ChainBlock } from '../../domain/chain-block.ts';
import type { Network } from '../../domain/network.ts';
import { printableText } from '../../domain/text.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_CURSOR } from '../db/sealed-tables.ts';
import { count, hex, jsonRows, maybe, type Row, sealedBefore, statement } from '../db/statement.ts';
import type { Lease } from './leases.ts';

const BLOCK = { number: count, id: 'text', time: 'timestamptz' } as const;

/**
 * How far a network's watcher has got. `solid` is the newest recorded block. `head` is the newest examined block, which is never below it.
 * Block ids are 64 hex characters.
 */
export type ChainCursor = { solid: Row<typeof BLOCK>; head: Row<typeof BLOCK> };

/** Returns the cursor, or `null` if no block of the network has been examined yet. */
export const findCursor = answerOf(
  'chain-cursor-select',
  { solid: maybe(BLOCK), head: maybe(BLOCK), seal: sealedBefore(SEALED_CURSOR) },
  `select c.solid_number, encode(c.solid_id, 'hex') as solid_id, c.solid_time,
     h.number as head_number, encode(h.block_id, 'hex') as head_id, h.block_time as head_time,
     ${sealColumn(SEALED_CURSOR, 'c.')} as seal
   from chain_cursors c
   left join lateral (
     select number, block_id, block_time from head_blocks where network = c.network order by number desc limit 1) h on true
   where c.network = $1`,
  (network: Network) => [network],
  ([row]) => (row?.solid ? { solid: row.solid, head: row.head ?? row.solid } : null),
);

const lock = statement('chain-cursor-lock', {}, 'select from chain_cursors where network = $1 for update');

/**
 * Returns the cursor, locked until the transaction ends. Call `checkLease` in the same transaction. Locking and reading are separate
 * statements, because a single statement that had to wait for the lock would combine the new cursor with the old head blocks.
 */
export async function lockCursor(tx: Sql, network: Network): Promise<ChainCursor | null> {
  await tx.run(lock, [network]);
  return findCursor(tx, network);
}

/** Whether this process still holds the lease. No other process can acquire it until the transaction ends (fencing). */
export const checkLease = answerOf(
  'lease-check',
  { epoch: 'int8' },
  'select epoch from leases where name = $1 and holder = $2 and epoch = $3 and expires_at > now() for share',
  (lease: Lease) => [lease.name, lease.holder, lease.epoch],
  ({ length }) => length === 1,
);

const sealCursor = (network: Network, { number, id }: ChainCursor['solid']) =>
  sealOf(SEALED_CURSOR, { network, solidNumber: number, solidId: id });

/** Sets the first block and block 0 of a new network. Returns `false` if the network already has a cursor. */
export const insertCursor = attemptOf(
  'chain-cursor-insert',
  `insert into chain_cursors (network, solid_number, solid_id, solid_time, genesis_id, mac)
   values ($1, $2, decode($3, 'hex'), $4, decode($5, 'hex'), $6)
   on conflict (network) do nothing`,
  (network: Network, block: ChainCursor['solid'], genesisId: string | null) => [
    network,
    block.number,
    block.id,
    new Date(block.time),
    genesisId,
    sealCursor(network, block),
  ],
);

/** Returns the id of the followed network's block 0, or `null` if it's unknown. */
export const findGenesisId = answerOf(
  'chain-cursor-genesis',
  { genesisId: 'text?' },
  "select encode(genesis_id, 'hex') as genesis_id from chain_cursors where network = $1",
  (network: Network) => [network],
  ([row]) => row?.genesisId ?? null,
);

/** Stops the network's watcher until an operator runs `clearHalt`. */
export const setHalt = commandOf(
  'chain-cursor-halt',
  'update chain_cursors set halted_at = now(), halt_reason = $2 where network = $1 and halted_at is null',
  (network: Network, reason: string) => [network, printableText(reason)],
);

const halt = { at: 'timestamptz', reason: 'text' } as const;

export type Halt = Row<typeof halt>;

/** Returns when and why the watcher was halted, or `null`. */
export const findHalt = rowOf(
  'chain-cursor-halt-select',
  halt,
  'select halted_at as at, halt_reason as reason from chain_cursors where network = $1 and halted_at is not null',
  (network: Network) => [network],
);

export const clearHalt = commandOf(
  'chain-cursor-resume',
  'update chain_cursors set halted_at = null, halt_reason = null where network = $1',
  (network: Network) => [network],
);

export const updateCursor = commandOf(
  'chain-cursor-update',
  `update chain_cursors set solid_number = $2, solid_id = decode($3, 'hex'), solid_time = $4, updated_at = now(), mac = $5
   where network = $1`,
  (network: Network, block: ChainCursor['solid']) => [
    ...[network, block.number, block.id, new Date(block.time)],
    sealCursor(network, block),
  ],
);

/**
 * Records that the newest examined block is the network's newest, according to a node, and stores the block's time together with the
 * database's time. While no blocks are visible, the chain's time is then derived from the time that has passed on the database's clock. If
 * that clock is behind the block's time, it's wrong, and correcting it later would move the chain's time too far, so nothing is stored. A
 * block that was recorded before keeps its first time, unless `isAgain`: a stuck node may show the same block for hours, also to a process
 * that has just started.
 */
export const markLive = commandOf(
  'chain-cursor-live',
  `update chain_cursors c set live_time = case when n.is_right then n.time end, live_at = case when n.is_right then now() end
   from (
     select newest.time, newest.time < now() + interval '30 seconds' as is_right
     from (
       select coalesce((select block_time from head_blocks where network = k.network order by number desc limit 1), k.solid_time) as time
       from chain_cursors k where k.network = $1) newest) n
   where c.network = $1 and ($2 or c.live_time is distinct from n.time)`,
  (network: Network, isAgain: boolean) => [network, isAgain],
);

/**
 * Returns when a network's first invoice was created, or `null` if the network has no invoices. It's read only once, for a network without
 * a cursor.
 */
export const findEarliestInvoiceTime = answerOf(
  'invoice-earliest',
  { createdAt: 'timestamptz?' },
  'select min(created_at) as created_at from invoices where network = $1',
  (network: Network) => [network],
  ([row]) => row?.createdAt ?? null,
);

/** Returns the id of the examined block at a height above the solid one, or `null`. */
export const findHeadBlockId = answerOf(
  'head-block-id',
  { blockId: 'text' },
  "select encode(block_id, 'hex') as block_id from head_blocks where network = $1 and number = $2",
  (network: Network, number: number) => [network, number],
  ([row]) => row?.blockId ?? null,
);

const blocks = jsonRows({ number: count, id: hex(), time: 'timestamptz' });

/** Inserts examined blocks. Existing ones stay unchanged. Fails if a different block exists at the same height. */
export const insertHeadBlocks = commandOf(
  'head-block-insert',
  `insert into head_blocks (network, number, block_id, block_time)
   select $1, t.number, t.id, t.time from ${blocks.table('$2')}
   where not exists (
     select from head_blocks h where h.network = $1 and h.number = t.number and h.block_id = t.id)`,
  (network: Network, added: ChainBlock[]) => [network, blocks.bind(added)],
);

const INVOICE_KEY = { projectId: 'uuid', invoiceId: 'uuid' } as const;

export type InvoiceKey = Row<typeof INVOICE_KEY>;

/** Returns invoices with a sighting above a height. */
export const findInvoicesDetectedAbove = rowsOf(
  'sightings-above',
  INVOICE_KEY,
  'select distinct project_id, invoice_id from sightings where network = $1 and block_number > $2',
  (network: Network, number: number) => [network, number],
);

/** Returns invoices with a sighting at or below a height. */
export const findInvoicesDetectedUpTo = rowsOf(
  'sightings-up-to',
  INVOICE_KEY,
  'select distinct project_id, invoice_id from sightings where network = $1 and block_number <= $2',
  (network: Network, number: number) => [network, number],
);

/**
 * Deletes the examined blocks above a height, and their sightings, because they were orphaned or will be written again. Keeps the blocks in
 * `kept`.
 */
export const deleteHeadBlocksAbove = commandOf(
  'head-block-delete-above',
  'select from forget_head_blocks_above($1, $2, $3::text::jsonb)',
  (network: Network, above: number, kept: readonly { number: number; id: string }[]) => [
    network,
    above,
    JSON.stringify(kept.map(({ number, id }) => ({ number, id }))),
  ],
);

/** Deletes the examined blocks up to and including a height, and their sightings, because the solid chain replaces them. */
export const deleteHeadBlocksUpTo = commandOf(
  'head-block-delete-up-to',
  'select from forget_head_blocks_up_to($1, $2)',
  (network: Network, number: number) => [network, number],
);

const sighting = {
  blockNumber: count,
  /** Increases in the order of the transfers within a block. */
  position: 'int4',
  txId: hex(),
  logIndex: 'int4',
  projectId: 'uuid',
  invoiceId: 'uuid',
  fromAddress: 'text',
  amountMicro: 'int8',
} as const;

export type Sighting = Row<typeof sighting>;

const rows = jsonRows(sighting);

/** Inserts sightings. Existing sightings, which belong to a block that was kept, stay unchanged. */
export const insertSightings = commandOf(
  'sighting-insert',
  `insert into sightings (network, ${rows.columns}) select $1, ${rows.columns} from ${rows.table('$2')} on conflict do nothing`,
  (network: Network, sightings: Sighting[]) => [network, rows.bind(sightings)],
);

/** Returns which of these invoices have been sighted. */
export const findDetected = answerOf(
  'sightings-of-invoices',
  { invoiceId: 'uuid' },
  'select distinct invoice_id from sightings where network = $1 and invoice_id = any($2::uuid[])',
  (network: Network, invoiceIds: string[]) => [network, invoiceIds],
  (found) => new Set(found.map(({ invoiceId }) => invoiceId)),
);
