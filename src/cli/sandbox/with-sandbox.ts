import { type Database, openDatabase } from '../../store/database.ts';
import { readRunningPostgres } from '../../store/embedded-connection.ts';
import { readSandboxFile, type SandboxFile, sandboxNotRunning } from './sandbox-file.ts';

/** Runs a command's work on the database of the sandbox that runs on a data directory. Error: `SANDBOX_NOT_RUNNING`. */
export async function withSandbox<Output>(
  dataDir: string,
  work: (db: Database, sandbox: SandboxFile) => Promise<Output>,
): Promise<Output> {
  const sandbox = await readSandboxFile(dataDir);
  const connection = await readRunningPostgres(dataDir);
  if (connection === null) throw sandboxNotRunning(dataDir);
  const db = openDatabase({
    connection,
    poolSize: 1,
    applicationName: 'quittance command',
    onError: () => undefined, // The next statement on it says so.
  });
  try {
    return await work(db, sandbox);
  } finally {
    await db.close();
  }
}
