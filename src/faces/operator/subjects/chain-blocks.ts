import { setTimeout as delay } from 'node:timers/promises';
import type { AccountHex } from '@quittance/tron/address';
import { addVote, needsAgreement, settle, toChainBlock, toWindowBlock } from '../../../core/chain/follow/window.ts';
import { type Node, orNull } from '../../../core/chain/nodes/node.ts';
import type { ProvenHeader } from '../../../core/chain/proof/prove-block.ts';
import { isSignedBy, type KnownProducers, solidHeightBy } from '../../../core/chain/verify/producers.ts';
import {
  RANGE_BLOCKS,
  type ReadBlock,
  readBlocks,
  readHeaderAt,
  readLogsOf,
  withLogs,
} from '../../../core/chain/verify/read-block.ts';
import type { ChainTransfer, SolidBlock } from '../../../core/domain/chain-block.ts';
import { AppError, invalidArgument, notFound } from '../../../core/domain/errors.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { findReplacement } from '../../../core/payments/contract-states.ts';
import { inGroups } from '../../../core/runtime/concurrency.ts';
import { type ChainCursor, findCursor } from '../../../core/store/chain/cursor.ts';
import { findProducerSets, type ProducerSet } from '../../../core/store/chain/producer-sets.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { count, type Row, text } from '../../../core/store/db/statement.ts';
import { notAnnulled, outgoingAnnulment, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import { clip, FieldError } from '../input/problems.ts';
import type { ReadSolidDeps } from '../operation.ts';

/** Block heights, both inclusive. */
export type Range = { from: number; to: number };

/** The maximum number of blocks in one command: three and a half days, read with at least 30,000 requests. */
const MAX_BLOCKS = 100_000;

/** Reads a range of blocks. Throws `INVALID_ARGUMENT`. */
export function readRange(input: { from: string; to: string }): Range {
  const { from, to } = { from: readHeight('from', input.from), to: readHeight('to', input.to) };
  if (from > to) throw invalidArgument`${{ field: 'from' }} ${from} is above ${{ field: 'to' }} ${to}`;
  const count = to - from + 1;
  if (count <= MAX_BLOCKS) return { from, to };
  throw invalidArgument`${count} blocks are more than ${MAX_BLOCKS} at once: read ${{ field: 'from' }} ${from} ${{ field: 'to' }} ${from + MAX_BLOCKS - 1} first, then continue with the rest`;
}

/** Reads a block height. Anything that doesn't fit in 2^53 is refused before a node is queried. */
export function readHeight(field: string, text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new FieldError(field, `${clip(text)} is not a block number: use a whole number of 1 or more`);
}

/** Returns a range as the input for another use case. */
export function rangeInput(network: string, range: Range): { network: string; from: string; to: string } {
  return { network, ...heights(range) };
}

/** Returns a range as the input for a use case that doesn't need the network's name. */
export function heights({ from, to }: Range): { from: string; to: string } {
  return { from: String(from), to: String(to) };
}

/** Returns the position of a network's watcher. Throws `NOT_FOUND` if the watcher has never run. */
export async function followedCursor(db: Sql, network: Network): Promise<ChainCursor> {
  const cursor = await findCursor(db, network);
  if (cursor !== null) return cursor;
  throw notFound`this ledger has never followed ${network}: start the service first`;
}

/** Identifies one side of a transfer. */
export const TRANSFER_KEY = { side: text<'in' | 'out'>(), txId: 'text', logIndex: 'int4' } as const;
const LEDGER_TRANSFER = {
  ...TRANSFER_KEY,
  blockNumber: count,
  blockId: 'text',
  address: 'address',
  amountMicro: 'numeric',
} as const;

/** One side of a transfer in the ledger. `txId` and `blockId` are 64 hex characters. */
export type LedgerTransfer = Row<typeof LEDGER_TRANSFER>;
export type TransferKey = Row<typeof TRANSFER_KEY>;

export function keyOf({ side, txId, logIndex }: TransferKey): string {
  return `${side} ${txId} ${logIndex}`;
}

/**
 * Returns the ledger's transfers in the blocks `from` to `to`, both included. Query only a few blocks at once. Searches by address, because
 * that is how the ledger is indexed.
 */
export const findLedgerRange = rowsOf(
  'ledger-range',
  LEDGER_TRANSFER,
  `select t.side, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, encode(t.block_id, 'hex') as block_id,
     ${addressColumn('a')} as address, t.amount_micro
   from addresses a
   cross join lateral (
     select 'in' as side, tx_id, log_index, block_number, block_id, amount_micro from transfers t
     where address_id = a.id and block_number between $2 and $3 and ${notAnnulled('t')}
     union all
     select 'out', tx_id, log_index, block_number, block_id, amount_micro from outgoing_transfers o
     where address_id = a.id and block_number between $2 and $3 and ${outgoingNotAnnulled('o')}) t
   where a.network = $1
   order by t.block_number, tx_id, t.log_index, t.side`,
  (network: Network, from: number, to: number) => [network, from, to],
);

/** Returns the accounts that are our addresses, active or retired, and when each was added. */
export const findOurAddresses = answerOf(
  'ledger-addresses',
  { account: text<AccountHex>(), address: 'address', createdAt: 'timestamptz' },
  `select encode(a.account, 'hex') as account, ${addressColumn('a')} as address, a.created_at from addresses a
   where a.network = $1 and a.account in (select decode(account, 'hex') from unnest($2::text[]) as t(account))`,
  (network: Network, accounts: AccountHex[]) => [network, accounts],
  (rows) => new Map(rows.map((row) => [row.account, row])),
);

/** Returns the transfers in these transactions that an operator took back. */
const findTakenBack = rowsOf(
  'annulment-taken-back',
  { ...TRANSFER_KEY, blockId: 'text', address: 'address', amountMicro: 'numeric' },
  `select t.side, encode(t.tx_id, 'hex') as tx_id, t.log_index, encode(t.block_id, 'hex') as block_id, ${addressColumn('a')} as address, t.amount_micro
   from (
     select 'in' as side, t.tx_id, t.log_index, t.block_id, t.address_id, t.amount_micro
     from transfers t join transfer_annulments n on n.transfer_id = t.id
     where t.network = $1 and t.tx_id in (select decode(tx_id, 'hex') from unnest($2::text[]) as asked (tx_id))
     union all
     select 'out', o.tx_id, o.log_index, o.block_id, o.address_id, o.amount_micro
     from outgoing_transfers o join outgoing_annulments n on ${outgoingAnnulment('o')}
     where o.network = $1 and o.tx_id in (select decode(tx_id, 'hex') from unnest($2::text[]) as asked (tx_id))) t
   join addresses a on a.id = t.address_id`,
  (network: Network, txIds: readonly string[]) => [network, txIds],
);

/**
 * A difference between the ledger and the chain. `wrong` means that the transfer is in both, but with a different block, address or amount;
 * `onChain` is the chain's version. `taken-back` means that it's on the chain, but an operator took it back. `chainBlockId` is the id of
 * the chain's block at that height.
 */
export type Difference = LedgerTransfer & {
  kind: 'missing' | 'not-on-chain' | 'wrong' | 'taken-back';
  chainBlockId: string;
  onChain: LedgerTransfer | null;
};

/** A difference in the form for programs. `onChain` is the chain's version. */
export type DifferenceView = ReturnType<typeof describeDifference>;

export function describeDifference({ amountMicro, onChain, ...difference }: Difference) {
  const { kind, side, txId, logIndex, blockNumber, blockId, address } = difference;
  return {
    ...{ kind, side, txId, logIndex, blockNumber, blockId, address, amount: amountOf(amountMicro) },
    onChain: onChain && {
      ...{ blockNumber: onChain.blockNumber, blockId: onChain.blockId, address: onChain.address },
      amount: amountOf(onChain.amountMicro),
    },
  };
}

/** Compares contiguous blocks with the ledger. The ledger doesn't include transfers from before an address was added. */
export async function compareBlocks(db: Sql, network: Network, blocks: readonly SolidBlock[]) {
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return { differences: [], chainCount: 0 };
  const chain = await readSides(db, network, blocks);
  const ledger = await findLedgerRange(db, network, first.number, last.number);
  const inLedger = new Map(ledger.map((transfer) => [keyOf(transfer), transfer]));
  const differences: Difference[] = [];
  const add = (transfer: LedgerTransfer, kind: Difference['kind'], onChain: LedgerTransfer | null) => {
    const chainBlockId = blocks[transfer.blockNumber - first.number]?.id ?? '';
    differences.push({ ...transfer, kind, chainBlockId, onChain });
  };
  for (const [key, { isOurs, ...transfer }] of chain) {
    const recorded = inLedger.get(key);
    inLedger.delete(key);
    if (recorded === undefined) {
      if (isOurs) add(transfer, 'missing', transfer);
    } else if (!isSame(recorded, transfer)) {
      add(recorded, 'wrong', transfer);
    }
  }
  for (const transfer of inLedger.values()) add(transfer, 'not-on-chain', null);
  return { differences: await markTakenBack(db, network, differences), chainCount: chain.size };
}

/** Marks transfers that an operator took back. They aren't missing by mistake, and a rescan doesn't restore them. */
async function markTakenBack(db: Sql, network: Network, differences: Difference[]): Promise<Difference[]> {
  const missing = differences.flatMap(({ kind, txId }) => (kind === 'missing' ? [txId] : []));
  if (missing.length === 0) return differences;
  const takenBack = await findTakenBack(db, network, missing);
  const isTakenBack = (each: Difference) =>
    each.kind === 'missing' && takenBack.some((old) => keyOf(old) === keyOf(each) && isSame(old, each));
  return differences.map((each) => (isTakenBack(each) ? { ...each, kind: 'taken-back' } : each));
}

function isSame(left: Omit<LedgerTransfer, 'blockNumber'>, right: Omit<LedgerTransfer, 'blockNumber'>): boolean {
  const { blockId, address, amountMicro } = right;
  return left.blockId === blockId && left.address === address && left.amountMicro === amountMicro;
}

type Side = LedgerTransfer & { isOurs: boolean };

/** Returns both sides of every transfer that involves one of our addresses. */
async function readSides(db: Sql, network: Network, blocks: readonly SolidBlock[]): Promise<Map<string, Side>> {
  const accounts = new Set(blocks.flatMap(({ transfers }) => transfers.flatMap(({ from, to }) => [from, to])));
  const addresses = await findOurAddresses(db, network, [...accounts]);
  const sides = new Map<string, Side>();
  const add = (block: SolidBlock, transfer: ChainTransfer, side: Side['side'], account: AccountHex) => {
    const found = addresses.get(account);
    if (found === undefined || transfer.amount === 0n) return;
    const entry = {
      ...{ side, txId: transfer.txId, logIndex: transfer.logIndex, blockNumber: block.number, blockId: block.id },
      ...{ address: found.address, amountMicro: transfer.amount, isOurs: concerns(found.createdAt, block.time) },
    };
    sides.set(keyOf(entry), entry);
  };
  for (const block of blocks) {
    for (const transfer of block.transfers) {
      add(block, transfer, 'in', transfer.to);
      add(block, transfer, 'out', transfer.from);
    }
  }
  return sides;
}

function amountOf(micro: bigint): string {
  return formatAmount(microUsdt(micro));
}

/** How far the clock of the server that added an address may be ahead of the chain's clock. The limit is generous. */
const CLOCK_MARGIN_MS = 10 * 60_000;

/**
 * Whether a block can be relevant to an address that was added at `createdAt`. The watcher sees only new blocks, but a rescan also reads
 * old ones, and transfers from before the address was added don't belong to the ledger.
 */
export function concerns(createdAt: UnixMs, blockTime: UnixMs): boolean {
  return blockTime >= createdAt - CLOCK_MARGIN_MS;
}

/**
 * `attestedCount` is the number of blocks that a known producer signed. The other blocks are accepted only because a known block builds on
 * them.
 */
export type ReadSolid = { blockCount: number; attestedCount: number };

/**
 * The maximum number of blocks that wait for others to build on them. This is many rounds of all 27 producers; a block that's still
 * undecided after that will stay undecided.
 */
const MAX_WAITING_BLOCKS = 500;
/** The maximum number of producer sets to keep in memory: three years with one change a day. */
const MAX_SETS = 1000;

type Link = ProvenHeader & { isAttested: boolean; node: Node };
type UnattestedBlock = { block: SolidBlock; isAttested: boolean };
type Ledger = { number: number; id: string };

/**
 * Reads the irreversible blocks from `from` to `to` and verifies them as the watcher does. Passes each block on, in order, as soon as
 * enough known producers have built on it or the ledger's newest block descends from it, with the number of blocks passed on so far. Throws
 * `NOT_FOUND` if the network was never followed, `INVALID_ARGUMENT` above the ledger's blocks, `CHAIN_CONTRADICTION` if no node's blocks lead
 * to the ledger's newest block, `BLOCK_UNVERIFIABLE` if too few known producers built on the blocks, `NODES_DISAGREE`, `NO_NODE` or
 * `NODE_REFUSED`.
 */
export async function readSolid(
  deps: ReadSolidDeps,
  { from, to }: Range,
  onBlocks: (blocks: SolidBlock[], blockCount: number) => Promise<void>,
): Promise<ReadSolid> {
  const { solid } = await followedCursor(deps.db, deps.network);
  refuseAbove(to, solid.number);
  const sets = (await findProducerSets(deps.db, deps.network, MAX_SETS)).reverse();
  const counts = { blockCount: 0, attestedCount: 0 };
  const handOver = async (ready: UnattestedBlock[]) => {
    const blockCount = counts.blockCount + ready.length;
    const blocks = ready.map(({ block }) => block);
    await onBlocks(blocks, blockCount);
    counts.blockCount = blockCount;
    counts.attestedCount += ready.filter(({ isAttested }) => isAttested).length;
  };
  const lost = new Map<string, LostBranch>();
  while (counts.blockCount <= to - from) {
    try {
      const start = from + counts.blockCount;
      await readBranch({ ...deps, lost }, { from: start, to }, { sets, ledger: solid }, handOver);
    } catch (error) {
      // This loop ends, because each round excludes one more node.
      if (!(error instanceof LostBranch) || lost.has(error.node.origin)) throw error;
      lost.set(error.node.origin, error);
      deps.pool.report(error.node, 'unverifiable', error.message);
    }
  }
  return counts;
}

/** Throws `INVALID_ARGUMENT` for blocks above the ledger's newest, because only the watcher reads these. */
export function refuseAbove(to: number, solidNumber: number): void {
  if (to <= solidNumber) return;
  throw invalidArgument`${{ field: 'to' }} ${to} is above block ${solidNumber}, the last recorded block: the service reads later blocks itself`;
}

async function readBranch(
  deps: VerifiedDeps,
  { from, to }: Range,
  { sets, ledger }: { sets: readonly ProducerSet[]; ledger: Ledger },
  onReady: (ready: UnattestedBlock[]) => Promise<void>,
): Promise<void> {
  const links: Link[] = [];
  const waiting: UnattestedBlock[] = [];
  const push = (node: Node, header: ProvenHeader): Link => {
    const link = identifySigner(sets, links.at(-1), node, header, ledger);
    links.push(link);
    return link;
  };
  const settle = async () => {
    const upTo = solidUpTo(sets, links, ledger.number) ?? -1;
    const kept = links.findIndex(({ number }) => number > upTo);
    links.splice(0, kept === -1 ? links.length - 1 : kept);
    const ready = waiting.filter(({ block }) => block.number <= upTo);
    waiting.splice(0, ready.length);
    if (ready.length > 0) await onReady(ready);
    refuseUnproven(links);
  };
  for (let first = from; first <= to; first += RANGE_BLOCKS) {
    const last = Math.min(to, first + RANGE_BLOCKS - 1);
    for (const { node, header, block } of await readVerified(deps, first, last)) {
      waiting.push({ block, isAttested: push(node, header).isAttested });
    }
    await settle();
  }
  for (let number = to + 1; waiting.length > 0; number += 1) {
    const { node, header } = await fromAnyNode(deps, async (each) => {
      return { node: each, header: await readHeaderAt(deps, each, number) };
    });
    push(node, header);
    await settle();
  }
}

/** Links a header to the previous one, and checks whether a producer known at that time signed it. */
function identifySigner(
  sets: readonly ProducerSet[],
  before: Link | undefined,
  node: Node,
  header: ProvenHeader,
  ledger: Ledger,
): Link {
  const { number, id, parentId, time } = header;
  const known = inForce(sets, time);
  const isAttested = known !== null && isSignedBy(known, header);
  if (before !== undefined && before.id !== parentId) {
    // If two nodes differ, the one whose block has no known signer is wrong.
    const wrong = isAttested && !before.isAttested ? before.node : node;
    const seen = `${node.origin} returned block ${number} (${id}) with parent ${parentId}`;
    throw new LostBranch(wrong, `${seen}, but block ${before.number} of ${before.node.origin} is ${before.id}`);
  }
  if (number === ledger.number && id !== ledger.id) {
    const stands = `the last recorded block is ${number} (${ledger.id})`;
    throw new LostBranch(node, `${stands}, but ${node.origin} returned ${id}`);
  }
  return { ...header, isAttested, node };
}

/**
 * Returns the producer sets that may have been in force at a time. These are the last set adopted before it and that set's neighbours,
 * because Quittance learns of changes late.
 */
function inForce(sets: readonly ProducerSet[], time: UnixMs): KnownProducers | null {
  const later = sets.findIndex(({ chainTime }) => chainTime > time);
  const at = later === -1 ? sets.length - 1 : Math.max(0, later - 1);
  const [newest, ...earlier] = sets.slice(Math.max(0, at - 1), at + 2).reverse();
  return newest === undefined ? null : { newest, earlier };
}

/**
 * Returns the height up to which the linked blocks are irreversible, either because enough producers have built on them or because the
 * ledger builds on them.
 */
function solidUpTo(sets: readonly ProducerSet[], links: readonly Link[], ledgerNumber: number): number | null {
  const newest = links.at(-1);
  if (newest === undefined) return null;
  if (newest.number === ledgerNumber) return newest.number;
  const known = inForce(sets, newest.time);
  return known && solidHeightBy(known, links);
}

function refuseUnproven(waiting: readonly { number: number }[]): void {
  const [first] = waiting;
  if (first === undefined || waiting.length <= MAX_WAITING_BLOCKS) return;
  throw new AppError(
    'BLOCK_UNVERIFIABLE',
    `too few known producers confirmed block ${first.number} within ${waiting.length} blocks, so this block and the blocks after it were not used`,
  );
}

/** `lost` contains the nodes that are no longer queried, by origin, and the reason. */
type VerifiedDeps = ReadSolidDeps & { lost: ReadonlyMap<string, LostBranch> };

const PARALLEL_LOGS = 4;
const RETRY_MS = 500;

/** This node's blocks don't lead to the ledger's block. Another node's blocks may. */
class LostBranch extends AppError {
  readonly node: Node;

  constructor(node: Node, message: string) {
    super('CHAIN_CONTRADICTION', message);
    this.node = node;
  }
}

/**
 * Reads blocks from one node, each with its linked header and the node that returned its logs. The blocks are proven by their own bytes, and
 * enough operators agree on the logs.
 */
async function readVerified(deps: VerifiedDeps, first: number, last: number) {
  const replacedIn = await findReplacement(deps.db, deps.network);
  if (replacedIn !== null) deps.fees.noteReplaced(replacedIn);
  await deps.fees.unansweredFrom(deps);
  return fromAnyNode(deps, async (node, nodes) => {
    const blocks = await readBlocks(deps, node, first, last);
    return inGroups(blocks, PARALLEL_LOGS, async (block) => {
      const read = await withLogs(deps, node, block);
      return { node: read.node, header: read.block, block: await agree(deps, read, nodes) };
    });
  });
}

/** Compares the data that only the logs show with other operators' logs, until enough operators agree. Throws `NODES_DISAGREE`. */
async function agree(deps: ReadSolidDeps, read: ReadBlock, nodes: readonly Node[]): Promise<SolidBlock> {
  const { block, node } = read;
  const window = toWindowBlock(read, null);
  const agreement = needsAgreement(read) ? deps.agreement : 1;
  settle(window, agreement);
  for (const other of nodes.filter(({ operator }) => operator !== node.operator)) {
    if (window.agreed !== null) break;
    const shown = await readLogsOf(deps, other, block).catch(orNull);
    if (shown !== null) addVote(window, other, shown, agreement);
  }
  if (window.agreed !== null) return { ...toChainBlock(window), evidence: window.agreed.evidence };
  const asked = [...window.votes.values()].map(({ origin, logs: { digest } }) => `${origin}: ${digest.slice(0, 12)}`);
  throw new AppError(
    'NODES_DISAGREE',
    `${agreement} operators must return the same USDT logs for block ${block.number}, but they returned ${asked.join(', ')}`,
    { retryable: true },
  );
}

/**
 * Tries the nodes in order of preference until one returns a valid result. Starts again until `patienceMs` have passed. Throws the last
 * node's error.
 */
async function fromAnyNode<Result>(deps: VerifiedDeps, read: (node: Node, nodes: readonly Node[]) => Promise<Result>) {
  const deadlineMs = performance.now() + deps.patienceMs;
  for (;;) {
    const nodes = (await deps.pool.available()).filter(({ origin }) => !deps.lost.has(origin));
    const [contradiction] = deps.lost.values();
    if (nodes.length === 0 && contradiction !== undefined) throw contradiction;
    let failure = new AppError('NO_NODE', `no ${deps.network} node is available`, { retryable: true });
    for (const node of nodes) {
      try {
        return await read(node, nodes);
      } catch (error) {
        if (!(error instanceof AppError) || !error.retryable) throw error;
        failure = error;
      }
    }
    if (performance.now() >= deadlineMs) throw failure;
    await delay(RETRY_MS);
  }
}
