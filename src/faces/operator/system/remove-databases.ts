import { basename } from 'node:path';
import { AppError, conflict, notFound } from '../../../core/domain/errors.ts';
import {
  listSharedHomes,
  removeSharedHome,
  SHARED_DIR,
  type SharedHome,
} from '../../../core/store/embedded/cluster.ts';
import { clip } from '../input/problems.ts';

export { SHARED_DIR, type SharedHome };

/** Lists the embedded databases that root stores apart from their data directories. Throws `INVALID_ARGUMENT`. */
export async function listSharedDatabases(sharedDir: string): Promise<SharedHome[]> {
  if (process.getuid?.() !== 0) {
    const problem = `the databases in ${sharedDir} belong to root, and only root can read them: run this command as root`;
    throw new AppError('INVALID_ARGUMENT', problem);
  }
  return listSharedHomes(sharedDir);
}

/**
 * Selects the databases with these names or paths, or by default the ones whose data directory is gone. Refuses one that is in use. Throws
 * `NOT_FOUND` or `CONFLICT`.
 */
export function selectSharedDatabases(homes: readonly SharedHome[], named: readonly string[]): readonly SharedHome[] {
  if (named.length === 0) return homes.filter(({ state }) => state === 'orphaned');
  return [...new Set(named.map((name) => select(homes, name)))];
}

function select(homes: readonly SharedHome[], name: string): SharedHome {
  const found = homes.find(({ home }) => home === name || basename(home) === name);
  if (found === undefined) throw notFound`the embedded database ${clip(name)} does not exist`;
  const { home, dataDir, state } = found;
  if (state === 'running') throw conflict`${home} was not deleted, because a PostgreSQL server is using it`;
  if (state === 'used')
    throw conflict`${home} was not deleted, because its data directory ${String(dataDir)} still exists and uses it`;
  return found;
}

/** Deletes them. `failed` lists the databases that are in use by now, or that couldn't be removed completely. */
export async function removeSharedDatabases(chosen: readonly SharedHome[]) {
  const [removed, failed]: [SharedHome[], SharedHome[]] = [[], []];
  for (const each of chosen) ((await removeSharedHome(each.home)) ? removed : failed).push(each);
  return { removed, failed };
}
