import { decodeId } from '../../core/domain/ids.ts';
import { openKeyRing } from '../../core/runtime/open-key-ring.ts';
import { type Database, openDatabase } from '../../core/store/db/database.ts';
import { createSeals } from '../../core/store/db/seals.ts';
import { readRunningPostgres } from '../../core/store/embedded/connection.ts';
import { readSandboxFile, type SandboxFile, sandboxNotRunning } from './sandbox-file.ts';

/**
 * A running sandbox with its database, for the project `projectUuid` with the key `apiKey`. This is either the demo project or, with
 * `isOfKey`, the project of the request's key. A request can't reach any other project.
 */
export type Sandbox = Omit<SandboxFile, 'retiredAddress'> & {
  db: Database;
  projectUuid: string;
  retiredAddress: string | null;
  isOfKey?: boolean;
};

/** Runs `work` with the running sandbox of a data directory. Throws `SANDBOX_NOT_RUNNING`. */
export async function withSandbox<Output>(
  dataDir: string,
  work: (sandbox: Sandbox) => Promise<Output>,
): Promise<Output> {
  const file = await readSandboxFile(dataDir);
  const projectUuid = decodeId('prj', file.projectId);
  if (projectUuid === null) throw new Error(`not a project id: ${file.projectId}`);
  const connection = (await readRunningPostgres(dataDir)) ?? sandboxNotRunning(dataDir);
  const judge = { mode: 'ledger', onProblem: () => undefined } as const;
  const settings = { masterKeys: null, databaseUrl: null, dataDir };
  const db = openDatabase({
    connection,
    seals: createSeals(judge, () => openKeyRing(settings, { mayCreate: false })),
    poolSize: 1,
    applicationName: 'quittance command',
    onError: () => undefined, // The next statement on the connection reports the error.
  });
  try {
    return await work({ ...file, db, projectUuid });
  } finally {
    await db.close();
  }
}
