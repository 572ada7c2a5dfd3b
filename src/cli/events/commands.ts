import { type Command, Option } from '@commander-js/extra-typings';
import { collect, PROJECT_OPTION } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addEventsCommands(program: Command, terminal: Terminal): void {
  const group = program.command('events').description('follow the events of a project, as in its feed and webhooks');
  group
    .command('tail')
    .description('show the newest events, then new ones as they arrive; with --json, their stored bodies, one per line')
    .option(...PROJECT_OPTION)
    .option(
      '--type <type…>',
      'only these event types, comma-separated, such as invoice.paid,transfer.unmatched',
      collect,
    )
    .addOption(new Option('--limit <count>', 'number of recent events to start with, 0 to 1000').default('10'))
    .addOption(new Option('--after <evt_…>', 'start after this event instead').conflicts('limit'))
    .option('--no-follow', 'exit after showing the existing events')
    .action(async (options) => {
      const { printEvents } = await import('./tail.ts');
      const stopping = new AbortController();
      const stop = () => stopping.abort();
      // Once: who presses Ctrl-C again does not want to wait.
      process.once('SIGINT', stop).once('SIGTERM', stop);
      await printEvents(terminal, options, { signal: stopping.signal });
    });
}
