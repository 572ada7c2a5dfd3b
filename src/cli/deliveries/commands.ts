import type { Command } from '@commander-js/extra-typings';
import { AppError } from '../../domain/errors.ts';
import { runAndPrint } from '../terminal/add-operations.ts';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** Adds the command that sends events again. It runs one operation for events that are named, and another for those of a time. */
export function addReplay(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('replay')
    .description('send events again: those that are named, or those of one endpoint and time')
    .argument('[events...]', 'evt_…, at most 500; without --endpoint to all endpoints that they were planned for')
    .option('--endpoint <whe_…>', 'where to; one that an event was not planned for gets it, too')
    .option('--from <date>', 'events from this day or moment on (2026-09-01, UTC; a time needs its zone)')
    .option('--to <date>', 'to the end of this day, or until before this moment')
    .option(
      '--status <status…>',
      'dead, failing, delivered, missing (never planned for the endpoint), or all; else dead,missing',
      collect,
    )
    .option('--type <type…>', 'only events of these types, several separated by commas', collect)
    .option('--dry-run', 'only count them')
    .option('--yes', 'also when there are more than 100')
    .option('--by <name>', 'who does this, for the record; else your user name')
    .action((events, { by, dryRun: isDryRun, yes: isConfirmed, ...input }) =>
      print(replay(terminal, events, { ...input, isDryRun, isConfirmed }, by)),
    );
}

type Input = {
  [Name in 'endpoint' | 'from' | 'to']?: string | undefined;
} & { [Name in 'status' | 'type']?: string[] | undefined } & {
  [Name in 'isDryRun' | 'isConfirmed']: boolean | undefined;
};

async function replay(
  terminal: Terminal,
  events: readonly string[],
  input: Input,
  by: string | undefined,
): Promise<Result> {
  const { readReplayedEvents, replayEvents, replayPeriod } = await import('../../operator/subjects/delivery-replay.ts');
  const { endpoint, from, isDryRun, isConfirmed } = input;
  if (events.length > 0) {
    readReplayedEvents(events);
    for (const name of ['from', 'to', 'status', 'type'] as const) {
      if (input[name] !== undefined)
        throw new AppError('USAGE', `--${name} chooses events, and events were named: give one of them`);
    }
    return runAndPrint(terminal, replayEvents, { input: { events, endpoint, isDryRun, isConfirmed }, by });
  }
  if (endpoint !== undefined && from !== undefined) return runAndPrint(terminal, replayPeriod, { input, by });
  throw new AppError(
    'USAGE',
    'nothing was replayed: name events (evt_…), or give --endpoint and --from (and --to) for all of a time',
  );
}
