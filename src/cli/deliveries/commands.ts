import type { Command } from '@commander-js/extra-typings';
import { AppError } from '../../domain/errors.ts';
import { runAndPrint } from '../terminal/add-operations.ts';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** Adds the command that sends events again. It runs one operation for events that are named, and another for those of a time. */
export function addReplay(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('replay')
    .description('send events again: the given ones, or those of an endpoint in a period')
    .argument('[events...]', 'evt_…, at most 500; without --endpoint, to all endpoints they were scheduled for')
    .option('--endpoint <whe_…>', 'where to; one that an event was not planned for gets it, too')
    .option('--from <date>', 'start of the period: a day (2026-09-01, UTC) or a time with its zone')
    .option('--to <date>', 'end of the period: a day (included) or a time (excluded)')
    .option(
      '--status <status…>',
      'dead, failing, delivered, missing (never scheduled for the endpoint), or all (default: dead,missing)',
      collect,
    )
    .option('--type <type…>', 'only events of these types, comma-separated', collect)
    .option('--dry-run', 'only count them')
    .option('--yes', 'confirm sending more than 100')
    .option('--by <name>', 'who does this, for the record (default: your user name)')
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
        throw new AppError('USAGE', `--${name} selects events, but event ids were given too: use one or the other`);
    }
    return runAndPrint(terminal, replayEvents, { input: { events, endpoint, isDryRun, isConfirmed }, by });
  }
  if (endpoint !== undefined && from !== undefined) return runAndPrint(terminal, replayPeriod, { input, by });
  throw new AppError(
    'USAGE',
    'nothing was replayed: give event ids (evt_…), or --endpoint and --from (and --to) for all events of a period',
  );
}
