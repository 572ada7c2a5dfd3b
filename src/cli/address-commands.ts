import type { Command } from 'commander';
import type { AddAddressOptions } from './address.ts';
import { PROJECT_OPTION, type Print, type ProjectOption } from './option-parts.ts';
import type { Terminal } from './terminal.ts';

export function addAddressCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('address').description('receiving addresses of your own wallet; never keys');
  group
    .command('add')
    .description('add addresses, all of them or, if one is wrong, none')
    .argument('[addresses...]', 'T…; "-" reads standard input, one a line')
    .option(...PROJECT_OPTION)
    .option('--file <path>', 'read addresses from a file, one a line; # starts a comment')
    .action(async (addresses: string[], options: AddAddressOptions) =>
      print((await import('./address.ts')).addAddresses(terminal, addresses, options)),
    );
  group
    .command('list')
    .description('list the addresses in the order of their use')
    .option(...PROJECT_OPTION)
    .action(async (options: ProjectOption) =>
      print((await import('./address.ts')).listProjectAddresses(terminal, options)),
    );
}
