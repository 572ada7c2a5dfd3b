import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import type { Terminal } from './terminal.ts';

export const SERVER_OPTION = [
  '--server <url>',
  'run the command on this Quittance server, with QUITTANCE_ADMIN_KEY',
] as const;

/**
 * Says where the command runs. A command with an option of this name keeps it, for which Commander takes what stands behind the command
 * as well. QUITTANCE_SERVER without a key sends nothing elsewhere; QUITTANCE_URL, which "listen" and programs of shops read, never does.
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
