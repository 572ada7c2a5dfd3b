import {
  adviseOnDifferences,
  explainDifference,
  listCounts,
  sayRescanned,
  sayUnattested,
  sayVerified,
} from '../../operator/chain/range-words.ts';
import { readRange } from '../../operator/chain/read-range.ts';
import { readInvoiceId, repairRange } from '../../operator/chain/repair-range.ts';
import { rescanRange } from '../../operator/chain/rescan-range.ts';
import { verifyRange } from '../../operator/chain/verify-range.ts';
import type { DifferenceView, PlannedView } from '../../operator/chain/views.ts';
import { formatHint, writeText } from '../../operator/command-words.ts';
import { quote } from '../../operator/input/clip.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { cliActor } from '../terminal/operator.ts';
import { readReason } from '../terminal/read-reason.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withNodes } from '../terminal/with-nodes.ts';

type RangeOptions = { from: string; to: string; network?: string };
type Read = { blockCount: number; attestedCount: number };

const NOTE_MS = 2000;

export async function printRescanned(terminal: Terminal, options: RangeOptions): Promise<Result> {
  const range = readRange(options);
  const onProgress = progressOf(terminal, range);
  const data = await withNodes(terminal, options.network, (deps) =>
    rescanRange({ ...deps, onProgress }, cliActor(terminal), range),
  );
  return { data, text: sayRescanned(data), ...hintOf(data) };
}

/** Exit code 1 if there is any difference. */
export async function printVerified(terminal: Terminal, options: RangeOptions): Promise<Result> {
  const range = readRange(options);
  const onProgress = progressOf(terminal, range);
  const { view, hint } = await withNodes(terminal, options.network, (deps) =>
    verifyRange({ ...deps, onProgress }, cliActor(terminal), range),
  );
  const summary = sayVerified(view);
  if (hint === null) return { data: view, text: summary, ...hintOf(view) };
  return {
    data: view,
    text: `${tableOf(DIFFERENCES, view.differences)}\n\n${summary}`,
    next: writeText(adviseOnDifferences(hint)),
    exitCode: EXIT.failed,
  };
}

type RepairOptions = RangeOptions & { yes?: boolean; reason?: string; invoice?: string[]; by?: string };

/** Without `--yes` nothing is changed, and the exit code is 1 if there is anything to repair. */
export async function printRepaired(terminal: Terminal, options: RepairOptions): Promise<Result> {
  const range = readRange(options);
  const invoiceIds = (options.invoice ?? []).map(readInvoiceId);
  const order = options.yes === true ? { reason: readReason(options.reason) } : null;
  const actor = cliActor(terminal, order === null ? undefined : options.by);
  const onProgress = progressOf(terminal, range);
  const { view, hint } = await withNodes(terminal, options.network, (deps) =>
    repairRange({ ...deps, onProgress, write: writeText }, actor, { range, invoiceIds, order }),
  );
  const { blockCount, differences } = view;
  if (hint === null) {
    const text = `${blockCount} blocks read: the ledger is the same, there is nothing to repair`;
    return { data: view, text, ...hintOf(view) };
  }
  const table = tableOf(PLANNED, differences);
  const payments = differences.filter(({ match }) => match === 'matched');
  if (!view.isChanged) {
    const denied = 'an invoice is PAID by what the chain denies and will stay so: ship nothing for it. ';
    return {
      data: view,
      text: `${table}\n\n${blockCount} blocks read, ${differences.length} differences; nothing was changed`,
      next: `${payments.length === 0 ? 'when' : `${denied}When`} you know why: ${formatHint(hint)}`,
      exitCode: EXIT.failed,
    };
  }
  const { takenBack, added, left } = view;
  const denied = payments.map((each) => `${nameInvoice(each)} stays PAID, and the chain denies its payment`);
  const still = left.length === 0 ? '' : `\n\nstill different:\n${tableOf(DIFFERENCES, left)}`;
  return {
    data: view,
    text: `${[table, '', `${takenBack} taken back; new in the ledger: ${listCounts(added)}`, ...denied].join('\n')}${still}`,
    next: `see whether the books are right now: ${formatHint(hint)}`,
    ...(left.length === 0 ? {} : { exitCode: EXIT.failed }),
  };
}

const DIFFERENCES: readonly Column<DifferenceView>[] = [
  ['DIFFERENCE', explainDifference],
  ['SIDE', ({ side }) => side],
  ['ADDRESS', ({ address }) => address],
  ['USDT', ({ amount }) => amount],
  ['BLOCK', ({ blockNumber }) => String(blockNumber)],
  ['TRANSFER', ({ txId, logIndex }) => `${txId}:${logIndex}`],
];

const PLANNED: readonly Column<PlannedView>[] = [
  ...DIFFERENCES,
  [
    'WHAT IT DID',
    (planned) => {
      const { match, invoice } = planned;
      if (match === null) return '';
      if (invoice === null) return 'paid nothing';
      const name = `${nameInvoice(planned)}, ${invoice.status}`;
      return match === 'matched' ? `paid ${name}` : `paid nothing, a duplicate of ${name}`;
    },
  ],
];

function nameInvoice({ invoice }: PlannedView): string {
  return invoice === null ? '' : `${invoice.invoiceId} (${quote(invoice.externalId)})`;
}

function hintOf(read: Read): { next?: string } {
  const next = sayUnattested(read);
  return next === null ? {} : { next };
}

/** Shows, now and then, how far it is, how fast, and how long it takes. */
function progressOf(terminal: Terminal, { from, to }: { from: number; to: number }): (done: number) => void {
  const total = to - from + 1;
  const startMs = performance.now();
  let notedMs = startMs;
  return (done) => {
    const nowMs = performance.now();
    if (nowMs - notedMs < NOTE_MS || done >= total) return;
    notedMs = nowMs;
    const perSecond = done / ((nowMs - startMs) / 1000);
    const leftSeconds = Math.ceil((total - done) / perSecond);
    terminal.note(`${done} of ${total} blocks, ${perSecond.toFixed(1)} a second, about ${leftSeconds} s left`);
  };
}
