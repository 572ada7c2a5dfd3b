import type { PlannedDifference } from '../chain/repair.ts';
import type { Difference } from '../chain/verify-range.ts';
import { encodeId } from '../domain/ids.ts';
import { formatAmount, microUsdt } from '../domain/money.ts';
import { quote } from './clip.ts';
import { formatTable } from './terminal.ts';

const EXPLAINED: Record<Difference['kind'], string> = {
  missing: 'missing in the ledger',
  'not-on-chain': 'not on the chain',
  wrong: 'wrong',
  'taken-back': 'on the chain, but taken back',
};

/** A difference for --json. */
export function describeDifference({
  kind,
  side,
  txId,
  logIndex,
  blockNumber,
  blockId,
  address,
  amountMicro,
  onChain,
}: Difference) {
  return {
    ...{ kind, side, txId, logIndex, blockNumber, blockId, address },
    amount: amountOf(amountMicro),
    onChain: onChain && {
      blockNumber: onChain.blockNumber,
      blockId: onChain.blockId,
      address: onChain.address,
      amount: amountOf(onChain.amountMicro),
    },
  };
}

/** The same with what the ledger made of it. */
export function describePlanned({ recorded, ...difference }: PlannedDifference) {
  const found = recorded?.incoming ?? null;
  const invoice = found?.invoice ?? null;
  return {
    ...describeDifference(difference),
    transferId: found && encodeId('trf', found.id),
    match: found?.kind ?? null,
    invoice: invoice && {
      invoiceId: encodeId('inv', invoice.id),
      externalId: invoice.externalId,
      status: invoice.status,
    },
  };
}

/** One line for each difference; with `recorded` also what it did to which invoice. */
export function tableOfDifferences(differences: readonly (Difference & Partial<PlannedDifference>)[]): string {
  const isPlanned = differences.some(({ recorded }) => recorded !== undefined);
  const rows = differences.map((each) => [...cellsOf(each), ...(isPlanned ? [effectOf(each)] : [])]);
  const names = ['DIFFERENCE', 'SIDE', 'ADDRESS', 'USDT', 'BLOCK', 'TRANSFER'];
  return formatTable([...names, ...(isPlanned ? ['WHAT IT DID'] : [])], rows);
}

function cellsOf({ kind, side, address, amountMicro, blockNumber, txId, logIndex, onChain }: Difference): string[] {
  const truth =
    kind === 'wrong' && onChain !== null
      ? `: ${amountOf(onChain.amountMicro)} to or from ${onChain.address} in block ${onChain.blockNumber}`
      : '';
  return [
    `${EXPLAINED[kind]}${truth}`,
    side,
    address,
    amountOf(amountMicro),
    String(blockNumber),
    `${txId}:${logIndex}`,
  ];
}

function effectOf({ recorded }: Partial<PlannedDifference>): string {
  const found = recorded?.incoming;
  if (found == null) return '';
  const { kind, invoice } = found;
  if (invoice === null) return 'paid nothing';
  const name = `${encodeId('inv', invoice.id)} (${quote(invoice.externalId)}), ${invoice.status}`;
  return kind === 'matched' ? `paid ${name}` : `paid nothing, a duplicate of ${name}`;
}

function amountOf(micro: bigint): string {
  return formatAmount(microUsdt(micro));
}
