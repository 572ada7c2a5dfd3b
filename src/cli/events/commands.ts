import { type Command, Option } from '@commander-js/extra-typings';
import { collect, PROJECT_OPTION } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addEventsCommands(program: Command, terminal: Terminal): void {
  const group = program
    .command('events')
    .description('what happened in a project, as its feed and its webhooks tell it');
  group
    .command('tail')
    .description('show the newest events, and then each one that comes; with --json their stored bodies, one a line')
    .option(...PROJECT_OPTION)
    .option('--type <type…>', 'only these types, several separated by commas: invoice.paid,transfer.unmatched', collect)
    .addOption(new Option('--limit <count>', 'how many of the newest to begin with, 0 to 1000').default('10'))
    .addOption(new Option('--after <evt_…>', 'begin after this event instead').conflicts('limit'))
    .option('--no-follow', 'end when all that is there is shown')
    .action(async (options) => {
      const { printEvents } = await import('./tail.ts');
      const stopping = new AbortController();
      const stop = () => stopping.abort();
      // Once: who presses Ctrl-C again does not want to wait.
      process.once('SIGINT', stop).once('SIGTERM', stop);
      await printEvents(terminal, options, { signal: stopping.signal });
    });
}
