import { quote } from '../../operator/input/clip.ts';
import { readTransferFilter } from '../../operator/transfers/list-transfers.ts';
import {
  listTransfersOperation,
  refundTransferOperation,
  resolveTransfersOperation,
} from '../../operator/transfers/operations.ts';
import type { ListedTransferView, ResolvedView, TransferListView } from '../../operator/transfers/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

type ListInput = Parameters<typeof readTransferFilter>[0] & { projectId: string | undefined };

export async function printTransfers(terminal: Terminal, { projectId, ...input }: ListInput): Promise<Result> {
  const filter = readTransferFilter(input);
  const data = await runOperation(terminal, listTransfersOperation, { projectId, ...input });
  return { data, text: tableOf(TRANSFERS, data.data), next: adviceOnList(data, filter) };
}

const TRANSFERS: readonly Column<ListedTransferView>[] = [
  ['TRANSFER', ({ transferId }) => transferId],
  ['TIME (UTC)', ({ time }) => time.slice(0, 19).replace('T', ' ')],
  ['AMOUNT', ({ amount }) => amount],
  ['FROM', ({ from }) => shortAddress(from)],
  ['TO', ({ to }) => shortAddress(to)],
  ['KIND', ({ kind }) => kind],
  ['LIKELY REASON', ({ reason }) => (reason === null ? '' : `${reason.code} (${reason.confidence})`)],
  ['NEAREST INVOICE', ({ invoice, nearestInvoice }) => shortText((invoice ?? nearestInvoice)?.externalId ?? '')],
  ['CLAIMED BY', ({ claimedBy }) => shortText(claimedBy.map(({ externalId }) => externalId).join(', '))],
  ['RESOLUTION', ({ kind, resolution }) => (kind === 'matched' ? '' : (resolution ?? 'open'))],
];

/** Enough to tell addresses apart in a list; nobody should pay to one that was read off here. */
function shortAddress(address: string): string {
  return `${address.slice(0, 5)}…${address.slice(-5)}`;
}

const MAX_TEXT = 24;

function shortText(text: string): string {
  const characters = [...text];
  return characters.length > MAX_TEXT ? `${characters.slice(0, MAX_TEXT - 1).join('')}…` : text;
}

function adviceOnList(
  { data, nextBefore }: TransferListView,
  { state, before }: ReturnType<typeof readTransferFilter>,
): string {
  if (nextBefore !== null) return `there are more: the same command with --before ${nextBefore} shows the next page`;
  if (data.length > 0)
    return 'see one with "quittance transfers show trf_…", and note what you did with "quittance transfers resolve"';
  if (before !== null) return 'no more transfers';
  return state === 'open'
    ? 'nothing waits for a decision; --all shows the resolved ones too, --kind all also what paid its invoice'
    : 'no such transfers';
}

type ResolveInput = {
  transfers: string[];
  resolution: string;
  note?: string | undefined;
  invoice?: string | undefined;
  by?: string | undefined;
};

export async function printResolved(terminal: Terminal, { by, ...input }: ResolveInput): Promise<Result> {
  const data = await runOperation(terminal, resolveTransfersOperation, input, { by });
  const hadBefore = data.transfers.some(({ before }) => before !== null);
  const kept = hadBefore ? '\nwhat was noted before stays in the history' : '';
  return { data, text: `${tableOf(resolvedColumns(data), data.transfers)}${kept}`, next: adviceOnResolved(data) };
}

type RefundInput = {
  transferId: string;
  tx: string;
  note?: string | undefined;
  invoice?: string | undefined;
  by?: string | undefined;
};

export async function printRefunded(terminal: Terminal, { by, ...input }: RefundInput): Promise<Result> {
  const data = await runOperation(terminal, refundTransferOperation, input, { by });
  const { amount, from, to, txId, logIndex, blockNumber } = data.refund;
  const went = `${amount} USDT went back from ${from} to ${to}, in block ${blockNumber}, transaction ${txId}, log ${logIndex}`;
  return { data, text: `${tableOf(resolvedColumns(data), data.transfers)}\n${went}`, next: adviceOnResolved(data) };
}

function resolvedColumns({
  resolution,
}: Pick<ResolvedView, 'resolution'>): Column<ResolvedView['transfers'][number]>[] {
  return [
    ['TRANSFER', ({ transferId }) => transferId],
    ['RESOLUTION', () => resolution],
    [
      'BEFORE',
      ({ before }) => (before === null ? 'open' : `${before.resolution} by ${before.resolvedBy}, ${before.resolvedAt}`),
    ],
  ];
}

function adviceOnResolved({ resolution, invoice }: Pick<ResolvedView, 'resolution' | 'invoice'>): string {
  const which =
    invoice === null ? 'no invoice changed' : `the invoice ${quote(invoice.externalId)} stays ${invoice.status}`;
  if (resolution !== 'credited-outside') return which;
  return `${which}: PAID means one transfer of exactly its amount and nothing else, so what you granted stands in your own system only`;
}
