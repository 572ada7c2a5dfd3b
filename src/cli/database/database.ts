import { toIso, unixMs } from '../../core/domain/time.ts';
import { type Column, columnsText } from '../../faces/operator/command-words.ts';
import {
  listSharedDatabases,
  removeSharedDatabases,
  SHARED_DIR,
  type SharedHome,
  selectSharedDatabases,
} from '../../faces/operator/system/remove-databases.ts';
import { confirm } from '../terminal/ask-person.ts';
import { refuseServer } from '../terminal/load-config.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** Tests pass a `sharedDir` other than root's. */
export async function printDatabases(terminal: Terminal, sharedDir = SHARED_DIR): Promise<Result> {
  refuseServer(terminal);
  const homes = await listSharedDatabases(sharedDir);
  const orphaned = selectSharedDatabases(homes, []);
  return {
    data: { data: homes.map(view) },
    text: homes.length === 0 ? `no database in ${sharedDir}` : columnsText(homes, COLUMNS),
    next:
      orphaned.length === 0
        ? null
        : `next: to delete ${countOf(orphaned)} without a data directory (${sizeOf(orphaned)}), run "quittance database remove"`,
  };
}

/**
 * Deletes the named databases, or by default the ones whose data directory is gone. Throws `INVALID_ARGUMENT`, `CONFLICT` or `NOT_FOUND`.
 */
export async function printRemovedDatabases(
  terminal: Terminal,
  named: readonly string[],
  { yes }: { yes?: true | undefined },
  sharedDir = SHARED_DIR,
): Promise<Result> {
  refuseServer(terminal);
  const homes = await listSharedDatabases(sharedDir);
  const chosen = selectSharedDatabases(homes, named);
  if (chosen.length === 0) {
    return { data: { removed: [], failed: [] }, text: `every database in ${sharedDir} still has its data directory` };
  }
  terminal.note(columnsText(chosen, COLUMNS));
  terminal.note(
    'A data directory also appears deleted if it was moved or its disk is not mounted. Check the list first.',
  );
  const question = `Type yes to delete ${countOf(chosen)} (${sizeOf(chosen)}) permanently: `;
  if (yes !== true) await confirm(terminal, { question, nothing: 'nothing was deleted' });
  const { removed, failed } = await removeSharedDatabases(chosen);
  return {
    data: { removed: removed.map(view), failed: failed.map(view) },
    text: [
      ...(removed.length === 0 ? [] : [`deleted ${countOf(removed)}, ${sizeOf(removed)}`]),
      ...failed.map(({ home }) => `not deleted: ${home}; it is now in use, or part of it cannot be deleted`),
    ].join('\n'),
    hasFailed: failed.length > 0,
  };
}

const STATES: Readonly<Record<SharedHome['state'], string>> = {
  running: 'running',
  used: 'in use',
  replaced: 'replaced: its data directory now uses a different database',
  orphaned: 'its data directory no longer exists',
  unknown: 'unknown: not started since Quittance began to record data directories',
};

const COLUMNS: readonly Column<SharedHome>[] = [
  ['DIRECTORY', 'home'],
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
