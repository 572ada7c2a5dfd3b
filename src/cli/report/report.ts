import { invalidArgument } from '../../core/domain/errors.ts';
import { asSum } from '../../core/domain/money.ts';
import { type Column, columnsText, formatFields } from '../../faces/operator/command-words.ts';
import { type ReportSums, type ReportView, showReport, writeReport } from '../../faces/operator/subjects/reports.ts';
import { runOperation } from '../terminal/run-operation.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

type Input = {
  projectId: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  csv?: boolean | undefined;
};

/** Returns `null` with `csv`, because standard output then holds only the CSV. */
export async function printReport(terminal: Terminal, { csv = false, ...input }: Input): Promise<Result | null> {
  if (csv && terminal.json) throw invalidArgument`--json and --csv cannot be combined: leave one out`;
  const data = await runOperation(terminal, showReport, input);
  if (csv) {
    terminal.stdout.write(writeReport(data));
    return null;
  }
  return {
    data,
    text: [columnsText(rowsOf(data), COLUMNS), formatFields(balanceOf(data))],
    next: 'compare the balance with the chain: "quittance reconcile"',
  };
}

type Row = ReportSums & { name: string };

/** Returns a row for each day, for each month if there are several, and for the total. */
function rowsOf({ days, months, total }: ReportView): Row[] {
  const ofMonths = months.length > 1 ? months.map(({ month, ...sums }) => ({ name: month, ...sums })) : [];
  const ofDays = days.map(({ day, ...sums }) => ({ name: day, ...sums }));
  return [...ofDays, ...ofMonths, { name: 'sum', ...total }];
}

const counted = ({ count, amount }: ReportSums['out']) => (count === 0 ? '' : `${asSum(amount)} (${count})`);

const COLUMNS: readonly Column<Row>[] = [
  ['DAY (UTC)', 'name'],
  ['PAID', 'paid'],
  ['REQUESTED', ({ requested }) => asSum(requested)],
  ['RECEIVED', ({ received }) => asSum(received)],
  ['TAILS', ({ tails }) => asSum(tails)],
  ['LATE', ({ late }) => counted(late)],
  ['DUPLICATE', ({ duplicate }) => counted(duplicate)],
  ['UNMATCHED', ({ unmatched }) => counted(unmatched)],
  ['OUT', ({ out }) => counted(out)],
];

function balanceOf({ projectId, from, to, balance }: ReportView): (readonly [string, string | null])[] {
  const { start, came, left, end, uncompared } = balance;
  return [
    ['project', projectId],
    [`balance before ${from}`, asSum(start)],
    ['received', asSum(came)],
    ['sent', asSum(left)],
    [`balance at the end of ${to}`, asSum(end)],
    [
      'not included',
      uncompared === 0
        ? null
        : `opening balances of ${uncompared} ${uncompared === 1 ? 'address' : 'addresses'}, not yet compared with the chain`,
    ],
  ];
}
