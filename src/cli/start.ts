import type { Start } from '../main.ts';
import { explainDatabaseError } from './terminal/explain-database-error.ts';
import { loadConfig } from './terminal/load-config.ts';
import type { Terminal } from './terminal/terminal.ts';

/** Runs the service of this environment until it is told to stop. */
export async function start(terminal: Terminal): Promise<void> {
  const config = loadConfig(terminal, { showWarnings: true });
  const { main } = await import('../main.ts');
  const runSandbox: Start = async (...given) =>
    (await import('../developer/sandbox/run-sandbox.ts')).runSandbox(...given);
  await main(config, runSandbox).catch((error: unknown) => {
    throw explainDatabaseError(error, config);
  });
}
