import type { ChainTransfer, SolidBlock } from '../domain/chain-block.ts';
import type { Network } from '../domain/network.ts';
import { concerns } from '../payments/record-rescanned.ts';
import { findTakenBack } from '../store/annulments.ts';
import { findLedgerRange, findOurAddresses, type LedgerTransfer } from '../store/chain-ledger.ts';
import type { Sql } from '../store/database.ts';
import type { AccountHex } from '../tron/address.ts';
import { type ReadSolid, readSolid } from './read-solid.ts';
import type { ReadSolidDeps } from './read-verified.ts';

/**
 * Where the ledger and the chain are not the same. `wrong` is in both, but not in the same block, at the same address or of the same
 * amount: `onChain` says what it is. `taken-back` is on the chain, and an operator took it back. `chainBlockId` is the block of the
 * chain at its height.
 */
export type Difference = LedgerTransfer & {
  kind: 'missing' | 'not-on-chain' | 'wrong' | 'taken-back';
  chainBlockId: string;
  onChain: LedgerTransfer | null;
};

/** The most differences that are kept: more of them say nothing new. */
const MAX_DIFFERENCES = 1000;

/**
 * Compares the transfers of our addresses in the blocks from `from` to `to` with the ledger, and changes nothing.
 * `onProgress` hears how many blocks were compared. Errors as of `readSolid`.
 */
export async function verifyRange(
  deps: ReadSolidDeps,
  range: { from: number; to: number },
  onProgress: (blockCount: number) => void,
): Promise<ReadSolid & { differences: Difference[]; comparedCount: number }> {
  const differences: Difference[] = [];
  let done = 0;
  let comparedCount = 0;
  const read = await readSolid(deps, range, async (blocks) => {
    const compared = await compareBlocks(deps.db, deps.network, blocks);
    comparedCount += compared.chainCount;
    differences.push(...compared.differences.slice(0, MAX_DIFFERENCES - differences.length));
    done += blocks.length;
    onProgress(done);
  });
  return { ...read, differences, comparedCount };
}

/** Compares contiguous blocks with the ledger. What moved before an address was ours is no part of the ledger. */
export async function compareBlocks(
  db: Sql,
  network: Network,
  blocks: readonly SolidBlock[],
): Promise<{ differences: Difference[]; chainCount: number }> {
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

/** What an operator took back is not missing by mistake, and no rescan brings it back. */
async function markTakenBack(db: Sql, network: Network, differences: Difference[]): Promise<Difference[]> {
  const missing = differences.filter(({ kind }) => kind === 'missing');
  const takenBack = await findTakenBack(
    db,
    network,
    missing.map(({ txId }) => txId),
  );
  if (takenBack.length === 0) return differences;
  const isTakenBack = (each: Difference) =>
    each.kind === 'missing' && takenBack.some((old) => keyOf(old) === keyOf(each) && isSame(old, each));
  return differences.map((each) => (isTakenBack(each) ? { ...each, kind: 'taken-back' } : each));
}

function isSame(left: Omit<LedgerTransfer, 'blockNumber'>, right: Omit<LedgerTransfer, 'blockNumber'>): boolean {
  const { blockId, address, amountMicro } = right;
  return left.blockId === blockId && left.address === address && left.amountMicro === amountMicro;
}

type Side = LedgerTransfer & { isOurs: boolean };

/** Both sides of the transfers that concern an address of ours. */
async function readSides(db: Sql, network: Network, blocks: readonly SolidBlock[]): Promise<Map<string, Side>> {
  const accounts = new Set(blocks.flatMap(({ transfers }) => transfers.flatMap(({ from, to }) => [from, to])));
  const addresses = await findOurAddresses(db, network, [...accounts]);
  const sides = new Map<string, Side>();
  const add = (block: SolidBlock, transfer: ChainTransfer, side: Side['side'], account: AccountHex) => {
    const found = addresses.get(account);
    if (found === undefined || transfer.amount === 0n) return;
    const entry = {
      side,
      txId: transfer.txId,
      logIndex: transfer.logIndex,
      blockNumber: block.number,
      blockId: block.id,
      address: found.address,
      amountMicro: transfer.amount,
      isOurs: concerns(found.createdAt, block.time),
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

function keyOf({ side, txId, logIndex }: Pick<LedgerTransfer, 'side' | 'txId' | 'logIndex'>): string {
  return `${side} ${txId} ${logIndex}`;
}
