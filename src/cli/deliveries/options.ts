import { EVENT_TYPES, type EventType } from '../../domain/event.ts';
import { decodeId } from '../../domain/ids.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';

/** The UUID behind an `evt_…`. Errors: `INVALID_ARGUMENT`. */
export function readEventId(text: string): string {
  const id = decodeId('evt', text);
  if (id !== null) return id;
  throw new CliError(
    'INVALID_ARGUMENT',
    `${clip(text)} is not an event id: it is "evt_" and 26 characters, as webhooks and "quittance deliveries list" show it`,
  );
}

export function noEvent(text: string): CliError {
  return new CliError('NOT_FOUND', `there is no event ${text}: "quittance deliveries list" shows those there are`);
}

/** One of `choices`. Errors: `INVALID_ARGUMENT`. */
export function readChoice<Choice extends string>(option: string, text: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new CliError('INVALID_ARGUMENT', `${option} is ${clip(text)}: choose ${choices.join(', ')}`);
}

/** One type of event. Errors: `INVALID_ARGUMENT`. */
export function readType(text: string): EventType {
  return readChoice('--type', text, EVENT_TYPES);
}

/** How many a list shows at most. */
const MAX_LIMIT = 500;

/** Errors: `INVALID_ARGUMENT`. */
export function readLimit(text: string): number {
  const limit = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new CliError('INVALID_ARGUMENT', `--limit is ${clip(text)}: it takes 1 to ${MAX_LIMIT}`);
}
