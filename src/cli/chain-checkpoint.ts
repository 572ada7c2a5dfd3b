import { readFile } from 'node:fs/promises';
import { type CheckedCheckpoint, checkCheckpoint } from '../chain/check-checkpoint.ts';
import { type Checkpoint, readCheckpoint, writeCheckpoint } from '../chain/checkpoints.ts';
import type { Network } from '../domain/network.ts';
import { type ChainCursor, findCursor, findHalt } from '../store/chain-cursor.ts';
import type { Sql } from '../store/database.ts';
import { findProducerSets } from '../store/producer-sets.ts';
import { CliError, EXIT } from './cli-error.ts';
import { clip } from './clip.ts';
import { selectNetwork } from './select-network.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';
import { withNodes } from './with-nodes.ts';

export type CheckpointOptions = { check?: string; network?: string };
type CheckOptions = { check: string; network?: string };

/** Shows where the ledger stands, with the producers in force, as a checkpoint: JSON in either case, for it goes into a file. */
export async function showCheckpoint(terminal: Terminal, options: CheckpointOptions): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const network = selectNetwork(config, options.network);
    const { solid } = await findFollowed(db, network);
    const halt = await findHalt(db, network);
    if (halt !== null) throw new CliError('CONFLICT', `${network} is halted, and where it stands is in doubt`);
    const [set] = await findProducerSets(db, network, 1);
    if (set === undefined || solid.number === 0) {
      throw new CliError('NOT_FOUND', `${network} was not followed for long enough: let the service run for a while`);
    }
    const data = writeCheckpoint({ network, ...solid, producers: set.producers });
    return {
      data,
      text: JSON.stringify(data, null, 2),
      next: 'write it to a file, and let another instance check it: quittance chain checkpoint --check FILE',
    };
  });
}

/** Examines a checkpoint by the nodes and the ledger here, and changes nothing. Exit code 1 if anything is wrong with it. */
export async function examineCheckpoint(terminal: Terminal, { check: path, network }: CheckOptions): Promise<Result> {
  const checkpoint = readCheckpoint(await readJson(path));
  return withNodes(terminal, network ?? checkpoint.network, async (deps) => {
    if (deps.network !== checkpoint.network) {
      throw new CliError('INVALID_ARGUMENT', `${clip(path)} is a checkpoint of ${checkpoint.network}`);
    }
    const cursor = await findFollowed(deps.db, deps.network);
    if (checkpoint.number > cursor.solid.number) {
      throw new CliError(
        'INVALID_ARGUMENT',
        `the checkpoint is block ${checkpoint.number}, and the ledger stands at ${cursor.solid.number}: check it when it is past it`,
      );
    }
    const checked = await checkCheckpoint(deps, checkpoint, cursor);
    return {
      data: { network: deps.network, number: checkpoint.number, id: checkpoint.id, ...checked },
      text: describe(checkpoint, checked),
      ...(checked.isGood ? {} : { exitCode: EXIT.failed, next: 'do not ship it: see CONTRIBUTING.md' }),
    };
  });
}

function describe({ number, id, producers }: Checkpoint, checked: CheckedCheckpoint): string {
  const { isShown, isSigned, isRecorded, isLeading, leadsTo, isGood, nodes } = checked;
  const fields = formatFields([
    ['block', `${number} (${id}) is ${isShown ? '' : 'not '}shown by enough operators`],
    [
      'signatures',
      `${isSigned ? 'enough' : 'too few'} of its ${producers.length} producers signed the blocks from it on`,
    ],
    ['producers', `they were ${isRecorded ? '' : 'never '}in force in this ledger, with these keys`],
    ['now', `it leads to ${leadsTo} of those in force here now, which is ${isLeading ? 'enough' : 'too few'}`],
    ['verdict', isGood ? 'good' : 'NOT GOOD'],
  ]);
  const rows = nodes.map(({ origin, shows }) => [origin, shows === 'same' ? 'this block' : `${shows}`]);
  return `${fields}\n\n${formatTable(['NODE', 'SHOWS'], rows)}`;
}

async function findFollowed(db: Sql, network: Network): Promise<ChainCursor> {
  const cursor = await findCursor(db, network);
  if (cursor === null) throw new CliError('NOT_FOUND', `${network} was never followed here: start the service first`);
  return cursor;
}

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError('INVALID_ARGUMENT', `--check ${clip(path)} cannot be read: ${error.code ?? error.message}`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError('INVALID_ARGUMENT', `--check ${clip(path)} is no JSON`);
  }
}
