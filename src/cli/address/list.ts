import { listAddressesOperation } from '../../operator/addresses/operations.ts';
import type { ListedAddressView } from '../../operator/addresses/views.ts';
import { formatHint } from '../../operator/command-words.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

const ADDRESSES: readonly Column<ListedAddressView>[] = [
  ['POSITION', ({ position }) => String(position)],
  ['ADDRESS', ({ address }) => address],
  ['POLICY', ({ policy }) => policy],
  ['STATUS', ({ status }) => status],
  ['DERIVED', ({ derivationIndex: index }) => (index === null ? '' : `#${index + 1}`)],
  ['CREATED', ({ createdAt }) => createdAt],
];

export async function printAddresses(
  terminal: Terminal,
  options: { project?: string | undefined; after?: string | undefined },
): Promise<Result> {
  const { project: projectId, after } = options;
  const { view, next } = await runOperation(terminal, listAddressesOperation, { projectId, after });
  const command = next && formatHint(next);
  const note = view.data.length === 0 ? `no address yet: add one with "${command}"` : `there may be more: ${command}`;
  return { data: view, text: tableOf(ADDRESSES, view.data), ...(next === null ? {} : { next: note }) };
}
