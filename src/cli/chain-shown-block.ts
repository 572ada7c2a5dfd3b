import type { ShownBlock } from '../chain/show-block.ts';
import { encodeId } from '../domain/ids.ts';
import { formatAmount, microUsdt } from '../domain/money.ts';
import { findIncoming } from '../store/incoming.ts';
import { formatFields, formatTable } from './terminal.ts';
import type { NodeCommand } from './with-nodes.ts';

type Ours = {
  txId: string;
  logIndex: number;
  address: string;
  amount: string;
  invoiceId: string | null;
  status: string | null;
};

/** What it would bring to our addresses, and which invoice that would pay. */
export async function findOurs({ db, network }: NodeCommand, { id: blockId, transfers }: ShownBlock): Promise<Ours[]> {
  const incoming = await findIncoming(
    db,
    network,
    transfers.map((transfer) => ({ ...transfer, blockId })),
  );
  return incoming.flatMap(({ index, address, invoice }): Ours[] => {
    const transfer = transfers[index];
    if (transfer === undefined) return [];
    const { txId, logIndex, amount } = transfer;
    const ofInvoice = { invoiceId: invoice && encodeId('inv', invoice.id), status: invoice?.status ?? null };
    return [{ txId, logIndex, address, amount: formatAmount(microUsdt(amount)), ...ofInvoice }];
  });
}

/** For --json. */
export function describeShown(
  network: string,
  number: number,
  shown: readonly ShownBlock[],
  block: ShownBlock,
  transfers: readonly Ours[],
) {
  return {
    network,
    number,
    blockId: block.id,
    transactionCount: block.transactionCount,
    isHeaderProven: block.isHeaderProven,
    shownBy: shown.map(({ node, id, problem }) => ({
      node: node.origin,
      operator: node.operator,
      blockId: id,
      problem,
    })),
    transfers,
  };
}

/** For people. */
export function describeShownText(
  number: number,
  shown: readonly ShownBlock[],
  block: ShownBlock,
  transfers: readonly Ours[],
): string {
  const header = block.isHeaderProven ? 'signed by a known producer, and the id belongs to it' : 'not proven either';
  const fields = formatFields([
    ['block', String(number)],
    ['id', block.id],
    ['header', header],
    ['transactions', String(block.transactionCount)],
    ['to our addresses', `${transfers.length} transfers of USDT`],
  ]);
  const nodes = shown.map(({ node, id, transactionCount, problem }) => [
    node.origin,
    node.operator,
    id === block.id ? 'this one' : id,
    String(transactionCount),
    problem ?? '',
  ]);
  const rows = transfers.map(({ amount, address, invoiceId, status, txId, logIndex }) => [
    amount,
    address,
    invoiceId === null ? '' : `${invoiceId}, ${status}`,
    `${txId}:${logIndex}`,
  ]);
  const parts = [
    fields,
    formatTable(['SHOWN BY', 'OPERATOR', 'BLOCK', 'TRANSACTIONS', 'WHY IT IS NOT PROVEN'], nodes),
    formatTable(['USDT', 'ADDRESS', 'INVOICE', 'TRANSFER'], rows),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}
