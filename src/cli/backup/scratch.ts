import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../../runtime/is-running.ts';
import { createLogger } from '../../runtime/log.ts';
import { type Connection, type Database, openDatabase } from '../../store/database.ts';
import { startEmbeddedPostgres } from '../../store/embedded.ts';
import type { Terminal } from '../terminal.ts';

const PREFIX = 'quittance-verify-';

/** Runs `work` with a database server of its own, which is gone afterwards with all that it held. */
export async function withScratch<Output>(
  { stderr }: Pick<Terminal, 'stderr'>,
  work: (scratch: { connection: Connection; open(): Database }) => Promise<Output>,
): Promise<Output> {
  await removeRemains();
  const parent = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  try {
    // Root's PostgreSQL runs as another user, who must pass through; what holds the data stays closed.
    await chmod(parent, 0o711);
    const postgres = await startEmbeddedPostgres({
      dataDir: join(parent, 'data'),
      sharedDir: join(parent, 'shared'),
      log: createLogger({ level: 'warn', destination: stderr }),
      isDurable: false,
    });
    const { connection } = postgres;
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
      return await work({ connection, open });
    } finally {
      await Promise.all(opened.map((db) => db.close()));
      await postgres.stop();
    }
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}

/** What was left by commands that were killed; the name holds the process id. */
async function removeRemains(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (pid > 1 && !isRunning(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}
