/**
 * Runs an embedded PostgreSQL on the data directory of the first argument, until a line arrives on standard input or SIGTERM. Reports
 * events as lines of JSON on standard output. The second argument is the shared directory.
 */
import { createLogger } from '../../src/core/runtime/log.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';

const [dataDir = '', sharedDir] = process.argv.slice(2);

function report(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

try {
  const postgres = await startEmbeddedPostgres({
    dataDir,
    log: createLogger({ level: 'silent' }),
    onExit: (exit) => {
      report({ kind: 'exited', exit });
      process.exit(3);
    },
    ...(sharedDir ? { sharedDir } : {}),
  });
  const stop = async () => {
    await postgres.stop();
    report({ kind: 'stopped' });
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.stdin.once('data', stop);
  // As the superuser, because the tests examine the server.
  report({ kind: 'ready', connection: postgres.owner });
} catch (error) {
  const { code, message } = error as { code?: string; message: string };
  report({ kind: 'failed', code, message });
  process.exit(1);
}
