import { formatFields } from '../../operator/command-text.ts';
import { formatHint } from '../../operator/command-words.ts';
import { showTransfersOperation } from '../../operator/transfers/operations.ts';
import type { CauseView, ResolutionView, TransferEventView, TransferView } from '../../operator/transfers/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

export async function printShown(terminal: Terminal, reference: string): Promise<Result> {
  const { view, projectNames, hint } = await runOperation(terminal, showTransfersOperation, { reference });
  return {
    data: view,
    text: view.data.map((transfer, index) => toText(transfer, projectNames[index] ?? '')).join('\n\n'),
    ...(hint === null ? {} : { next: `when you have decided: ${formatHint(hint)}` }),
  };
}

const KIND_MEANS = {
  matched: 'it paid its invoice',
  duplicate: 'exactly the amount of an invoice that was paid before',
  unmatched: 'no invoice waits for exactly this amount at this address',
} as const;

function toText(transfer: TransferView, projectName: string): string {
  const { invoice, kind, evidence, toRetiredAt, takenBack, refund, causes, claims, events, resolutions } = transfer;
  const { nodes, verified } = evidence;
  const isDecided = kind === 'matched' || takenBack !== null;
  const fields = formatFields([
    ['transfer', transfer.transferId],
    ['project', `${transfer.projectId} (${projectName}), ${transfer.network}`],
    ['kind', `${kind}: ${KIND_MEANS[kind]}`],
    ['taken back', takenBack && describeTakenBack(takenBack, transfer)],
    ['resolution', isDecided ? null : (resolutions.at(-1)?.resolution ?? 'open: nothing was decided yet')],
    [
      'refund',
      refund && `in transaction ${refund.txId}, log ${refund.logIndex}, ${refund.blockTime}, from ${refund.from}`,
    ],
    ['amount', `${transfer.amount} USDT`],
    ['from', transfer.from],
    ['to', toRetiredAt === null ? transfer.to : `${transfer.to} (retired ${toRetiredAt})`],
    ['invoice', invoice && `${invoice.invoiceId} (${invoice.externalId}), ${invoice.status}`],
    ['time', transfer.time],
    ['transaction', `${transfer.txId}, log ${transfer.logIndex}`],
    ['block', `${evidence.blockNumber}, ${evidence.blockId}`],
    ['made by', evidence.producer ?? 'not kept at the time'],
    ['verified', nodes.length === 0 ? verified : `${verified}, shown by ${nodes.join(', ')}`],
    ['recorded', evidence.recordedAt],
  ]);
  const parts = [
    fields,
    causes.length === 0 ? '' : causesText(causes),
    tableOf(CLAIMS, claims),
    tableOf(EVENTS, events),
    tableOf(RESOLUTIONS, resolutions),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function describeTakenBack(
  { at, by, reason, deniedBy }: NonNullable<TransferView['takenBack']>,
  { kind }: TransferView,
): string {
  const means =
    kind === 'matched' ? 'the chain denies this payment, and the invoice stays PAID' : 'the chain denies it';
  return `${means}; by ${by}, ${at}: ${reason} (the chain has block ${deniedBy} there)`;
}

function causesText(causes: readonly CauseView[]): string {
  const parts = causes.flatMap(({ code, confidence, explanation, invoices }, index) => [
    formatFields([[`${index + 1}. ${code}, ${confidence}`, explanation]]),
    tableOf(NEAR_INVOICES, invoices),
  ]);
  return `LIKELY CAUSES, the best first; the chain shows amounts, not intentions\n${parts.filter(Boolean).join('\n')}`;
}

const NEAR_INVOICES: readonly Column<CauseView['invoices'][number]>[] = [
  ['   INVOICE', ({ invoiceId }) => `   ${invoiceId}`],
  ['STATUS', ({ status }) => status],
  ['TO PAY', ({ payableAmount }) => payableAmount],
  ['DIFFERENCE', ({ difference }) => (/^-|^0\.0+$/.test(difference) ? difference : `+${difference}`)],
  ['EXTERNAL ID', ({ externalId }) => externalId],
];

const CLAIMS: readonly Column<TransferView['claims'][number]>[] = [
  ['CLAIMED', ({ claimedAt }) => claimedAt],
  ['BY THE PAYER OF', ({ invoice }) => invoice.invoiceId],
  ['STATUS', ({ invoice }) => invoice.status],
  ['EXTERNAL ID', ({ invoice }) => invoice.externalId],
];

const EVENTS: readonly Column<TransferEventView>[] = [
  ['EVENT', ({ eventId }) => eventId],
  ['TYPE', ({ type }) => type],
  ['CREATED', ({ createdAt }) => createdAt],
  ['ENDPOINT', ({ delivery }) => delivery?.endpointId ?? 'no endpoint at the time'],
  ['DELIVERY', ({ delivery }) => (delivery === null ? '' : deliveryText(delivery))],
];

function deliveryText(delivery: NonNullable<TransferEventView['delivery']>): string {
  const { status, isEndpointDisabled, attempts, nextAttemptAt, lastStatus, lastError } = delivery;
  const next = isEndpointDisabled ? 'its endpoint is disabled' : `next ${nextAttemptAt}`;
  const parts = [
    `${status} after ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}`,
    lastError ?? (lastStatus === null ? null : `status ${lastStatus}`),
    status === 'pending' ? next : null,
  ];
  return parts.filter((part) => part !== null).join(', ');
}

const RESOLUTIONS: readonly Column<ResolutionView>[] = [
  ['RESOLVED', ({ resolvedAt }) => resolvedAt],
  ['AS', ({ resolution }) => resolution],
  ['BY', ({ resolvedBy }) => resolvedBy],
  ['INVOICE', ({ invoice }) => invoice?.externalId ?? ''],
  ['NOTE', ({ note }) => note],
];
