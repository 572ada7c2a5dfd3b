import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addDatabaseCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('database')
    .description('embedded databases that root keeps outside their data directories, also of deleted checkouts');
  group
    .command('list')
    .description('each with its data directory, whether that still exists, its size and its last use')
    .action(async () => print((await import('./database.ts')).printDatabases(terminal)));
  group
    .command('remove')
    .description('delete those whose data directory is gone; asks first')
    .argument('[directories...]', 'only these; one whose state is unknown or replaced must be named')
    .option('--yes', 'you have read the list; do not ask')
    .action(async (named, options) =>
      print((await import('./database.ts')).printRemovedDatabases(terminal, named, options)),
    );
}
