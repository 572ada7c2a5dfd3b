import { explainDatabaseError } from './explain-database-error.ts';
import { loadConfig } from './load-config.ts';
import type { Terminal } from './terminal.ts';

/** Runs the service of this environment until it is told to stop. */
export async function start(terminal: Terminal): Promise<void> {
  const config = loadConfig(terminal, { showWarnings: true });
  const { main } = await import('../main.ts');
  await main(config).catch((error: unknown) => {
    throw explainDatabaseError(error, config);
  });
}
