import { explainDatabaseError } from './terminal/explain-database-error.ts';
import { loadConfig } from './terminal/load-config.ts';
import type { Terminal } from './terminal/terminal.ts';

/** Runs this environment's service until it's stopped. */
export async function start(terminal: Terminal): Promise<void> {
  const config = loadConfig(terminal, { showWarnings: true });
  const { main } = await import('../server/main.ts');
  const loadSandbox = async () => (await import('../developer/sandbox/run-sandbox.ts')).runSandbox;
  await main(config, loadSandbox).catch((error: unknown) => {
    throw explainDatabaseError(error, config);
  });
}
