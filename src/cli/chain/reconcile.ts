import { readAddress, reconcileNow } from '../../operator/chain/reconcile-now.ts';
import { adviseOnBooks, noteReconciled } from '../../operator/chain/reconcile-words.ts';
import type { ReconciledAddress } from '../../operator/chain/views.ts';
import { formatTable } from '../../operator/command-text.ts';
import { writeText } from '../../operator/command-words.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withNodes } from '../terminal/with-nodes.ts';

/** Exit code 1 unless all of them balance. */
export async function printReconciled(
  terminal: Terminal,
  { address, network }: { address?: string[]; network?: string },
): Promise<Result> {
  const addresses = (address ?? []).map(readAddress);
  const onProgress = (done: number, total: number) => {
    if (done < total) terminal.note(`${done} of ${total} addresses`);
  };
  const { view, firstChecked, hints } = await withNodes(terminal, network, (deps) =>
    reconcileNow({ ...deps, onProgress }, cliActor(terminal), { addresses }),
  );
  const rows = view.data;
  return {
    data: view,
    text: formatTable(
      ['ADDRESS', 'STATUS', 'LEDGER', 'CHAIN', 'DIFFERENCE', 'NOTE'],
      rows.map((row) => cellsOf(row, firstChecked)),
    ),
    ...(rows.length === 0 ? { next: 'no address yet: add one with "quittance address add T…"' } : {}),
    ...(rows.every(({ status }) => status === 'good')
      ? {}
      : { next: adviseOnBooks(hints).map(writeText).join('\n'), exitCode: EXIT.failed }),
  };
}

function cellsOf(row: ReconciledAddress, firstChecked: ReadonlySet<string>): string[] {
  const { address } = row;
  const note = noteReconciled(row, firstChecked.has(address));
  switch (row.status) {
    case 'good':
      return [address, 'good', row.balance, row.balance, '0.000000', note];
    case 'differs':
      return [address, 'DIFFERS', row.ledger, row.chain, row.difference, note];
    case 'too-early':
      return [address, 'too early', '', '', '', note];
  }
}
