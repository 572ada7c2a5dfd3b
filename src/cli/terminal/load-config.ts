import { AppError, usageError } from '../../core/domain/errors.ts';
import { type Config, readConfig } from '../../server/config/config.ts';
import type { Terminal } from './terminal.ts';

/** Loads this environment's configuration, for commands that run locally. Throws `CONFIG_INVALID` with every problem. */
export function loadConfig(terminal: Terminal, options: { showWarnings: boolean } = { showWarnings: false }): Config {
  refuseServer(terminal);
  const result = readConfig(terminal.env);
  if (options.showWarnings) for (const { message } of result.warnings) terminal.note(`warning: ${message}`);
  if (result.kind === 'ok') return result.config;
  const problems = result.errors.map(({ variable, message }) => ({ subject: variable, message }));
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
  throw new AppError('CONFIG_INVALID', `the configuration has ${count}; nothing was started`, { problems });
}

/** Refuses a server for commands that only run locally. Throws `USAGE`. */
export function refuseServer(terminal: Terminal): void {
  if (terminal.server() === null) return;
  throw usageError`this command works only on the server itself (docs/reference/admin-api.md explains why): leave out --server, or unset QUITTANCE_ADMIN_KEY`;
}
