import { chmod, lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../../runtime/is-running.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Connection, type Database, openDatabase } from '../../store/db/database.ts';
import { startEmbeddedPostgres } from '../../store/embedded/embedded.ts';
import { EmbeddedPostgresError } from '../../store/embedded/error.ts';
import { removeAsOwner } from '../../store/embedded/user.ts';

const PREFIX = 'quittance-verify-';
/** In that of a scratch; what is directly below may be PostgreSQL's user's. */
const DIRECTORIES = ['data', 'shared'] as const;

export type Scratch = { connection: Connection; owner: Connection; open(): Database };

/** Runs `work` with a database server of its own, which is gone afterwards with all that it held. */
export async function withScratch<Output>(
  { log, needsOwnUser }: { log: Logger; needsOwnUser: boolean },
  work: (scratch: Scratch) => Promise<Output>,
): Promise<Output> {
  await removeRemains();
  const parent = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  try {
    // Root's PostgreSQL runs as another user, who must pass through; what holds the data stays closed.
    await chmod(parent, 0o711);
    const postgres = await startEmbeddedPostgres({
      dataDir: join(parent, DIRECTORIES[0]),
      sharedDir: join(parent, DIRECTORIES[1]),
      log,
      isDurable: false,
      needsOwnUser,
    }).catch(nameUse);
    const { connection, owner } = postgres;
    const opened: Database[] = [];
    try {
      const open = () => {
        const db = openDatabase({
          connection,
          poolSize: 4,
          applicationName: 'quittance command',
          onError: () => undefined, // The next statement on it says so.
        });
        opened.push(db);
        return db;
      };
      return await work({ connection, owner, open });
    } finally {
      await Promise.all(opened.map((db) => db.close()));
      await postgres.stop();
    }
  } finally {
    await removeScratch(parent);
  }
}

/** Where Quittance runs without it for a PostgreSQL of the operator's own, it is needed all the same. */
export function nameUse(error: unknown): never {
  if (!(error instanceof EmbeddedPostgresError) || error.code !== 'EMBEDDED_MISSING') throw error;
  const missing =
    'a backup is verified in the PostgreSQL that comes with Quittance, and this installation has none: take the image that brings it (target "embedded" of the Dockerfile), or install with optional dependencies';
  throw new EmbeddedPostgresError(error.code, missing, { cause: error });
}

/** Removes the remains of killed commands of this user. The name holds the process id, and anybody may make such a name. */
async function removeRemains(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (!(pid > 1) || isRunning(pid)) continue;
    const path = join(tmpdir(), name);
    const found = await lstat(path).catch(() => undefined);
    if (found?.isDirectory() === true && found.uid === process.getuid?.()) await removeScratch(path);
  }
}

/** Root's PostgreSQL runs as another user, who could plant a link here: that user's files are removed with that user's rights, or stay. */
async function removeScratch(parent: string): Promise<void> {
  for (const directory of DIRECTORIES) {
    const entries = await readdir(join(parent, directory)).catch(() => []);
    for (const entry of entries) if (!(await removeAsOwner(join(parent, directory, entry)))) return;
  }
  await rm(parent, { recursive: true, force: true });
}
