import { AppError } from '../../domain/errors.ts';
import { formatFields } from '../../operator/command-text.ts';
import { MAX_REPLAYED_ATTEMPTS } from '../../operator/deliveries/delivery-replay.ts';
import { replayEventsOperation, replayPeriodOperation } from '../../operator/deliveries/operations.ts';
import { readReplayedEvents } from '../../operator/deliveries/replay-events.ts';
import type { ReplayedEventView } from '../../operator/deliveries/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

type Input = Partial<Parameters<typeof replayPeriodOperation.read>[0]> & { by?: string | undefined };

/** Sends events again: those that are named, or those of one endpoint and time. */
export async function printReplay(terminal: Terminal, events: readonly string[], input: Input): Promise<Result> {
  if (events.length > 0) return printReplayedEvents(terminal, events, input);
  const { endpoint, from, by, ...asked } = input;
  const isDryRun = asked.isDryRun === true;
  if (endpoint === undefined || from === undefined) {
    throw new AppError(
      'USAGE',
      'nothing was replayed: name events (evt_…), or give --endpoint and --from (and --to) for all of a time',
    );
  }
  const { view, waiting } = await runOperation(terminal, replayPeriodOperation, { ...asked, endpoint, from }, { by });
  const { found, replayed = 0, due = 0, exhausted = 0 } = view;
  const { total, ...was } = found;
  const parts = Object.entries(was).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`]));
  const text = formatFields([
    ['endpoint', endpoint],
    ['from', view.from],
    ['to', view.until],
    [isDryRun ? 'would be sent' : 'found', total === 0 ? 'nothing' : `${total}: ${parts.join(', ')}`],
    ['due now', isDryRun ? null : String(replayed)],
    ['due anyway', due === 0 ? null : `${due}, within seconds`],
    ['not sent', exhausted === 0 ? null : exhaustedText(exhausted)],
  ]);
  return { data: view, text, ...noteOf(waitingNotes(waiting)) };
}

async function printReplayedEvents(terminal: Terminal, events: readonly string[], input: Input): Promise<Result> {
  readReplayedEvents(events);
  for (const name of ['from', 'to', 'status', 'type'] as const) {
    if (input[name] !== undefined)
      throw new AppError('USAGE', `--${name} chooses events, and events were named: give one of them`);
  }
  const { by, endpoint, isDryRun, isConfirmed } = input;
  const given = { events: [...events], endpoint, isDryRun, isConfirmed };
  const { view, waiting } = await runOperation(terminal, replayEventsOperation, given, { by });
  const exhausted = view.data.filter(({ outcome }) => outcome === 'exhausted').length;
  const notes = exhausted === 0 ? [] : [`not sent: ${exhaustedText(exhausted)}`];
  return { data: view, text: tableOf(REPLAYED, view.data), ...noteOf([...waitingNotes(waiting), ...notes]) };
}

const OUTCOMES = { replayed: 'due now', due: 'due within seconds anyway', exhausted: 'not sent' } as const;

const REPLAYED: readonly Column<ReplayedEventView>[] = [
  ['EVENT', ({ eventId }) => eventId],
  ['ENDPOINT', ({ endpointId }) => endpointId],
  ['WAS', ({ was }) => was],
  ['NOW', ({ outcome }) => (outcome === null ? 'would be due now' : OUTCOMES[outcome])],
];

function exhaustedText(count: number): string {
  return `${count}, after ${MAX_REPLAYED_ATTEMPTS} attempts: read them from the feed (GET /v1/events)`;
}

function waitingNotes(endpointIds: readonly string[]): string[] {
  return endpointIds.map((id) => `${id} is disabled: they wait until "quittance webhook enable ${id}"`);
}

function noteOf(notes: readonly string[]): { next?: string } {
  return notes.length === 0 ? {} : { next: notes.join('\n') };
}
