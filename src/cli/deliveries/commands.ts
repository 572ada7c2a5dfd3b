import { type Command, Option } from '@commander-js/extra-typings';
import { collect, PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const FROM_OPTION = [
  '--from <date>',
  'events from this day or moment on (2026-09-01, UTC; a time needs its zone)',
] as const;
const TO_OPTION = ['--to <date>', 'to the end of this day, or until before this moment'] as const;

export function addDeliveriesCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('deliveries').description('what became of each event at each endpoint');
  group
    .command('list')
    .description('list deliveries, those of the newest events first')
    .option(...PROJECT_OPTION)
    .option('--endpoint <whe_…>', 'only those to this endpoint')
    .option(
      '--status <status>',
      'pending, failing (pending, and the last attempt failed), delivered or dead (tests only with --type ping)',
    )
    .option('--type <type>', 'only events of this type, for example invoice.paid')
    .option('--invoice <invoice>', 'only events of this invoice: inv_… or the externalId')
    .option('--event <evt_…>', 'only this event')
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .addOption(new Option('--before <evt_…>', 'the page after this event: those before it').conflicts('to'))
    .option('--limit <count>', 'how many at most, 1 to 500', '50')
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./list.ts')).printDeliveries(terminal, { ...input, projectId })),
    );
  group
    .command('show')
    .description('show an event: every attempt to deliver it, what is planned, and why the last one failed')
    .argument('<event>', 'evt_…')
    .option('--endpoint <whe_…>', 'only at this endpoint')
    .action(async (eventId, { endpoint }) =>
      print((await import('./show.ts')).printDelivery(terminal, { eventId, endpoint })),
    );
  group
    .command('replay')
    .description('send events again: those that are named, or those of one endpoint and time')
    .argument('[events...]', 'evt_…, at most 500; without --endpoint to all endpoints that they were planned for')
    .option('--endpoint <whe_…>', 'where to; one that an event was not planned for gets it, too')
    .option(...FROM_OPTION)
    .option(...TO_OPTION)
    .option(
      '--status <status…>',
      'dead, failing, delivered, missing (never planned for the endpoint), or all; else dead,missing',
      collect,
    )
    .option('--type <type…>', 'only events of these types, several separated by commas', collect)
    .option('--dry-run', 'only count them')
    .option('--yes', 'also when there are more than 100')
    .option('--by <name>', 'who does this, for the record; else your user name')
    .action(async (events, { dryRun: isDryRun = false, yes: isConfirmed = false, ...input }) =>
      print((await import('./replay.ts')).printReplay(terminal, events, { ...input, isDryRun, isConfirmed })),
    );
}
