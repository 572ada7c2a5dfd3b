import { AppError } from '../../domain/errors.ts';
import { formatHint } from '../../domain/format-hint.ts';
import { listAddresses } from '../../operator/addresses/list-addresses.ts';
import type { ListedAddressView } from '../../operator/addresses/views.ts';
import { clip } from '../../operator/input/clip.ts';
import { cliActor } from '../terminal/operator.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

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
  const input = { projectId: options.project, after: readPosition(options.after) };
  const { view, next } = await withDatabase(terminal, (deps) => listAddresses(deps, cliActor(terminal), input));
  const command = next && formatHint(next);
  const note = view.data.length === 0 ? `no address yet: add one with "${command}"` : `there may be more: ${command}`;
  return { data: view, text: tableOf(ADDRESSES, view.data), ...(next === null ? {} : { next: note }) };
}

function readPosition(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new AppError('INVALID_ARGUMENT', `--after is ${clip(text)}: give the position of an address, a whole number`);
}
