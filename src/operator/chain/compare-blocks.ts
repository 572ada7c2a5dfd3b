import type { ChainTransfer, SolidBlock } from '../../domain/chain-block.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { Sql } from '../../store/db/database.ts';
import type { AccountHex } from '../../tron/address.ts';
import { findTakenBack } from './annulments.ts';
import { findLedgerRange, findOurAddresses, keyOf, type LedgerTransfer } from './chain-ledger.ts';
import { concerns } from './record-rescanned.ts';
import type { DifferenceView } from './views.ts';

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

/** As it is shown. */
export function describeDifference({ amountMicro, onChain, ...difference }: Difference): DifferenceView {
  const { kind, side, txId, logIndex, blockNumber, blockId, address } = difference;
  return {
    ...{ kind, side, txId, logIndex, blockNumber, blockId, address, amount: amountOf(amountMicro) },
    onChain: onChain && {
      ...{ blockNumber: onChain.blockNumber, blockId: onChain.blockId, address: onChain.address },
      amount: amountOf(onChain.amountMicro),
    },
  };
}

/** Compares contiguous blocks with the ledger. Transfers from before an address was ours are no part of the ledger. */
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

/** A transfer that an operator took back is not missing by mistake, and no rescan brings it back. */
async function markTakenBack(db: Sql, network: Network, differences: Difference[]): Promise<Difference[]> {
  const missing = differences.flatMap(({ kind, txId }) => (kind === 'missing' ? [txId] : []));
  const takenBack = await findTakenBack(db, network, missing);
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
