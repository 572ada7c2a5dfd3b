import { encodeId } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { diagnoseTransfers } from '../../payments/diagnose-transfers.ts';
import { type DeskFilter, type DeskTransfer, listDeskTransfers } from '../../store/transfer-desk.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import type { ProjectOption } from '../option-parts.ts';
import { selectProject } from '../select-project.ts';
import { formatTable, type Result, type Terminal } from '../terminal.ts';
import { toSecond } from '../time-text.ts';
import { withDatabase } from '../with-database.ts';
import { describeNamedInvoice, readKinds, readPeriod, readTransferId } from './options.ts';

export type ListOptions = ProjectOption & {
  kind?: string;
  open?: boolean;
  resolved?: boolean;
  all?: boolean;
  from?: string;
  to?: string;
  limit: string;
  before?: string;
};

/** So many diagnoses are asked for at once, and no terminal shows more. */
const MAX_LIMIT = 500;

/** Lists transfers, the newest first: those that pay nothing and have no resolution yet, unless asked for others. */
export async function listTransfers(terminal: Terminal, options: ListOptions): Promise<Result> {
  const filter = readFilter(options);
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    // One more than asked for shows whether there is another page.
    const found = await listDeskTransfers(db, project.id, { ...filter, limit: filter.limit + 1 });
    const page = found.slice(0, filter.limit);
    const causes = await diagnoseTransfers(
      db,
      page.filter(({ kind }) => kind !== 'matched').map(({ id }) => id),
    );
    const last = found.length > page.length ? page.at(-1) : undefined;
    const nextBefore = last === undefined ? null : encodeId('trf', last.id);
    return {
      data: { data: page.map((transfer) => describe(transfer, causes.get(transfer.id)?.[0])), nextBefore },
      text: formatTable(
        HEADINGS,
        page.map((transfer) => toCells(transfer, causes.get(transfer.id)?.[0])),
      ),
      next: adviceOn(page.length, nextBefore, filter),
    };
  });
}

function readFilter(options: ListOptions): DeskFilter {
  const kinds = options.kind === undefined ? (['unmatched', 'duplicate'] as const) : readKinds(options.kind);
  const named = (['open', 'resolved', 'all'] as const).find((state) => options[state] === true);
  if (options.kind === 'matched' && (named === 'open' || named === 'resolved')) {
    throw new CliError('INVALID_ARGUMENT', `matched transfers paid their invoices: leave out --${named}`);
  }
  const limit = /^[1-9]\d{0,2}$/.test(options.limit) ? Number(options.limit) : 0;
  if (limit < 1 || limit > MAX_LIMIT) {
    throw new CliError('INVALID_ARGUMENT', `--limit is ${clip(options.limit)}: it takes 1 to ${MAX_LIMIT}`);
  }
  return {
    kinds,
    // Whoever asks for matched ones wants to see them, though there is nothing to resolve.
    state: named ?? (kinds.includes('matched') ? 'all' : 'open'),
    ...readPeriod(options),
    before: options.before === undefined ? null : readTransferId(options.before),
    limit,
  };
}

function describe(transfer: DeskTransfer, cause: Cause | undefined) {
  const [nearest] = cause?.invoices ?? [];
  return {
    transferId: encodeId('trf', transfer.id),
    txId: transfer.txId,
    logIndex: transfer.logIndex,
    time: toIso(transfer.blockTime),
    amount: formatAmount(transfer.amountMicro),
    from: transfer.from,
    to: transfer.to,
    kind: transfer.kind,
    invoice: describeNamedInvoice(transfer.invoice),
    reason: cause === undefined ? null : { code: cause.code, confidence: cause.confidence },
    nearestInvoice: nearest === undefined ? null : describeNamedInvoice(nearest),
    resolution: transfer.resolution,
  };
}

const HEADINGS = [
  'TRANSFER',
  'TIME (UTC)',
  'AMOUNT',
  'FROM',
  'TO',
  'KIND',
  'LIKELY REASON',
  'NEAREST INVOICE',
  'RESOLUTION',
];

function toCells(transfer: DeskTransfer, cause: Cause | undefined): string[] {
  const invoice = transfer.invoice ?? cause?.invoices[0];
  const state = transfer.kind === 'matched' ? '' : (transfer.resolution ?? 'open');
  return [
    encodeId('trf', transfer.id),
    toSecond(transfer.blockTime),
    formatAmount(transfer.amountMicro),
    shortAddress(transfer.from),
    shortAddress(transfer.to),
    transfer.kind,
    cause === undefined ? '' : `${cause.code} (${cause.confidence})`,
    invoice === undefined ? '' : shortText(invoice.externalId),
    state,
  ];
}

/** Enough to tell addresses apart in a list; nobody should pay to one that was read off here. */
function shortAddress(address: string): string {
  return `${address.slice(0, 5)}…${address.slice(-5)}`;
}

const MAX_TEXT = 24;

function shortText(text: string): string {
  const characters = [...text];
  return characters.length > MAX_TEXT ? `${characters.slice(0, MAX_TEXT - 1).join('')}…` : text;
}

function adviceOn(count: number, nextBefore: string | null, { state, before }: DeskFilter): string {
  if (nextBefore !== null) return `there are more: the same command with --before ${nextBefore} shows the next page`;
  if (count > 0)
    return 'see one with "quittance transfers show trf_…", and note what you did with "quittance transfers resolve"';
  if (before !== null) return 'no more transfers';
  return state === 'open'
    ? 'nothing waits for a decision; --all shows the resolved ones too, --kind all also what paid its invoice'
    : 'no such transfers';
}
