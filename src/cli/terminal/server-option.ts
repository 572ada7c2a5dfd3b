import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import type { Terminal } from './terminal.ts';

export const SERVER_OPTION = [
  '--server <url>',
  'run the command on this Quittance server, with QUITTANCE_ADMIN_KEY',
] as const;

/**
 * Sets where the command runs. If a command has its own `--server` option, the command keeps the value, although Commander also assigns it
 * to the program. QUITTANCE_SERVER has an effect only if there is a key. QUITTANCE_URL is for "listen" and shops' programs, and never has
 * an effect here.
 */
export function chooseServer(terminal: Terminal, program: CommandUnknownOpts, command: CommandUnknownOpts): void {
  const given: unknown = program.getOptionValue('server');
  if (command.options.some(({ long }) => long === '--server')) {
    if (given !== undefined) command.setOptionValue('server', given);
    return;
  }
  const named = textOf(terminal.env['QUITTANCE_ADMIN_KEY']) && textOf(terminal.env['QUITTANCE_SERVER']);
  const server = given ?? named;
  if (typeof server === 'string') terminal.useServer(server);
}

function textOf(text: string | undefined): string | null {
  return text?.trim() || null;
}
