import { AppError } from '../../domain/errors.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import { clip } from '../../operator/input/clip.ts';
import {
  findSharedHome,
  listSharedHomes,
  removeSharedHome,
  SHARED_DIR,
  type SharedHome,
} from '../../store/embedded/shared-homes.ts';
import { askPerson, hasPerson } from '../terminal/ask-person.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { refuseServer } from '../terminal/load-config.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** `sharedDir`: another one than root's, for tests. */
export async function printDatabases(terminal: Terminal, sharedDir = SHARED_DIR): Promise<Result> {
  const homes = await findAll(terminal, sharedDir);
  const orphaned = homes.filter(({ state }) => state === 'orphaned');
  return {
    data: { data: homes.map(view) },
    text: homes.length === 0 ? `no database in ${sharedDir}` : tableOf(COLUMNS, homes),
    ...(orphaned.length === 0
      ? {}
      : {
          next: `next: quittance database remove deletes the ${orphaned.length} whose data directory is gone (${sizeOf(orphaned)})`,
        }),
  };
}

/** Deletes those that are named, else those whose data directory is gone. Errors: `INVALID_ARGUMENT`, `CONFLICT`, `NOT_FOUND`. */
export async function printRemovedDatabases(
  terminal: Terminal,
  named: readonly string[],
  { yes }: { yes?: true | undefined },
  sharedDir = SHARED_DIR,
): Promise<Result> {
  const homes = await findAll(terminal, sharedDir);
  const chosen =
    named.length === 0
      ? homes.filter(({ state }) => state === 'orphaned')
      : [...new Set(named)].map((name) => select(homes, name, sharedDir));
  if (chosen.length === 0) {
    return { data: { removed: [], failed: [] }, text: `no database in ${sharedDir} has lost its data directory` };
  }
  terminal.note(tableOf(COLUMNS, chosen));
  terminal.note(
    'A data directory that was moved, or whose disk is not mounted, looks deleted, too: start Quittance in it once first.',
  );
  if (yes !== true) await confirm(terminal, chosen);
  const [removed, failed]: [SharedHome[], SharedHome[]] = [[], []];
  for (const each of chosen) ((await removeSharedHome(each.home)) ? removed : failed).push(each);
  return {
    data: { removed: removed.map(view), failed: failed.map(view) },
    text: [
      ...(removed.length === 0 ? [] : [`deleted ${countOf(removed)}, ${sizeOf(removed)}`]),
      ...failed.map(({ home }) => `not deleted: ${home}; it is in use by now, or a part of it cannot be deleted`),
    ].join('\n'),
    exitCode: failed.length === 0 ? EXIT.ok : EXIT.failed,
  };
}

async function findAll(terminal: Terminal, sharedDir: string): Promise<SharedHome[]> {
  refuseServer(terminal);
  if (process.getuid?.() !== 0 && sharedDir === SHARED_DIR) {
    throw new AppError(
      'INVALID_ARGUMENT',
      `only root keeps databases in ${sharedDir}, and only root can read them: run this command as root`,
    );
  }
  return listSharedHomes(sharedDir);
}

function select(homes: readonly SharedHome[], name: string, sharedDir: string): SharedHome {
  const found = findSharedHome(homes, name);
  if (found === undefined) throw new AppError('NOT_FOUND', `there is no database ${clip(name)} in ${sharedDir}`);
  const { home, dataDir, state } = found;
  if (state === 'running' || state === 'used') {
    const why =
      state === 'running'
        ? 'a PostgreSQL serves it: stop that first'
        : `its data directory ${dataDir} exists and uses it`;
    throw new AppError('CONFLICT', `${home} was not deleted: ${why}`);
  }
  return found;
}

async function confirm(terminal: Terminal, chosen: readonly SharedHome[]): Promise<void> {
  if (!hasPerson(terminal)) {
    throw new AppError('INVALID_ARGUMENT', 'nothing was deleted: say --yes, or run this in a terminal');
  }
  const typed = await askPerson(terminal, `Type yes to delete ${countOf(chosen)} (${sizeOf(chosen)}) permanently: `);
  if (typed !== 'yes') throw new AppError('INVALID_ARGUMENT', 'nothing was deleted');
}

const STATES: Readonly<Record<SharedHome['state'], string>> = {
  running: 'running',
  used: 'in use',
  replaced: 'replaced: its data directory uses another',
  orphaned: 'its data directory is gone',
  unknown: 'unknown: not started since it is recorded',
};

const COLUMNS: readonly Column<SharedHome>[] = [
  ['DIRECTORY', ({ home }) => home],
  ['DATA DIRECTORY', ({ dataDir }) => dataDir ?? '–'],
  ['STATE', ({ state }) => STATES[state]],
  ['SIZE', (each) => sizeOf([each])],
  ['LAST USED', ({ lastUsedMs }) => timeOf(lastUsedMs).slice(0, 10)],
];

const view = ({ home, dataDir, state, bytes, lastUsedMs }: SharedHome) => ({
  ...{ directory: home, dataDirectory: dataDir, state, bytes },
  lastUsedAt: timeOf(lastUsedMs),
});

const timeOf = (ms: number) => toIso(unixMs(Math.trunc(ms)));
const countOf = ({ length }: readonly SharedHome[]) => `${length} ${length === 1 ? 'database' : 'databases'}`;
const sizeOf = (homes: readonly SharedHome[]) =>
  `${Math.ceil(homes.reduce((sum, { bytes }) => sum + bytes, 0) / 1024 ** 2)} MB`;
