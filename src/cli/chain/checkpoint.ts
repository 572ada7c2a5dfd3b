import { readFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { checkCheckpoint, readCheckpoint } from '../../operator/chain/check-checkpoint.ts';
import { makeCheckpointOperation } from '../../operator/chain/operations.ts';
import type { CheckedCheckpointView } from '../../operator/chain/views.ts';
import { formatFields } from '../../operator/command-text.ts';
import { clip } from '../../operator/input/clip.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { cliActor } from '../terminal/operator.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withNodes } from '../terminal/with-nodes.ts';

type NetworkOption = { network?: string };

/** JSON in either case, for it goes into a file. */
export async function printCheckpoint(terminal: Terminal, options: NetworkOption): Promise<Result> {
  const data = await runOperation(terminal, makeCheckpointOperation, options);
  return {
    data,
    text: JSON.stringify(data, null, 2),
    next: 'write it to a file, and let another instance check it: quittance chain checkpoint --check FILE',
  };
}

/** Exit code 1 if anything is wrong with it. */
export async function printCheckedCheckpoint(
  terminal: Terminal,
  path: string,
  { network }: NetworkOption,
): Promise<Result> {
  const checkpoint = readCheckpoint(await readJson(path));
  const data = await withNodes(terminal, network ?? checkpoint.network, async (deps) => {
    if (deps.network === checkpoint.network) return checkCheckpoint(deps, cliActor(terminal), { checkpoint });
    throw new AppError('INVALID_ARGUMENT', `${clip(path)} is a checkpoint of ${checkpoint.network}`);
  });
  return {
    data,
    text: describe(data, checkpoint.producers.length),
    ...(data.isGood ? {} : { exitCode: EXIT.failed, next: 'do not ship it: see CONTRIBUTING.md' }),
  };
}

function describe(checked: CheckedCheckpointView, producerCount: number): string {
  const { number, id, isShown, isSigned, isRecorded, isLeading, leadsTo, isGood, nodes } = checked;
  const fields = formatFields([
    ['block', `${number} (${id}) is ${isShown ? '' : 'not '}shown by enough operators`],
    ['signatures', `${isSigned ? 'enough' : 'too few'} of its ${producerCount} producers signed the blocks from it on`],
    ['producers', `they were ${isRecorded ? '' : 'never '}in force in this ledger, with these keys`],
    ['now', `it leads to ${leadsTo} of those in force here now, which is ${isLeading ? 'enough' : 'too few'}`],
    ['verdict', isGood ? 'good' : 'NOT GOOD'],
  ]);
  return `${fields}\n\n${tableOf(NODES, nodes)}`;
}

const NODES: readonly Column<CheckedCheckpointView['nodes'][number]>[] = [
  ['NODE', ({ origin }) => origin],
  ['SHOWS', ({ shows }) => (shows === 'same' ? 'this block' : shows)],
];

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('INVALID_ARGUMENT', `--check ${clip(path)} cannot be read: ${error.code ?? error.message}`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new AppError('INVALID_ARGUMENT', `--check ${clip(path)} is no JSON`);
  }
}
