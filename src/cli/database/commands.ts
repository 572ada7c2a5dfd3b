import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addDatabaseCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('database')
    .description(
      'manage embedded databases that root keeps outside their data directories, including those of deleted checkouts',
    );
  group
    .command('list')
    .description('list the databases with their data directory, whether it still exists, their size and last use')
    .action(async () => print((await import('./database.ts')).printDatabases(terminal)));
  group
    .command('remove')
    .description('delete those whose data directory is gone; asks first')
    .argument('[directories...]', 'only these (required for a database whose state is unknown or replaced)')
    .option('--yes', 'delete without asking; read the list first')
    .action(async (named, options) =>
      print((await import('./database.ts')).printRemovedDatabases(terminal, named, options)),
    );
}
