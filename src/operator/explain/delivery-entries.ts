import { assertNever } from '../../domain/assert-never.ts';
import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import { shorten } from '../input/clip.ts';
import type { ExplainedAttempt, ExplainedDelivery, ExplainedEvent } from './event-queries.ts';

type Answer = { delivery: ExplainedDelivery; attempts: readonly ExplainedAttempt[] };

/** The attempts that failed in a row as one entry, each delivered one, and the next attempt or the result of those that were not logged. */
export function describeDelivery(event: ExplainedEvent, { delivery, attempts }: Answer): TimelineEntry[] {
  const runs: ExplainedAttempt[][] = [];
  for (const attempt of attempts) {
    const before = runs.at(-1);
    if (before === undefined || attempt.error === null || before.at(-1)?.error === null) runs.push([attempt]);
    else before.push(attempt);
  }
  const entries = runs.map((run) => describeRun(event, delivery, run));
  const state = describeState(event, { delivery, attempts });
  return state === null ? entries : [...entries, state];
}

/** One or more attempts: a receiver that is down for a day fails some 240. */
function describeRun(
  event: ExplainedEvent,
  delivery: ExplainedDelivery,
  run: readonly ExplainedAttempt[],
): TimelineEntry {
  const [first, last] = [run[0], run.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('a run has no attempt');
  const { attempt, status, error } = last;
  const before = run.length - 1;
  const others = before === 0 ? '' : `; the ${before === 1 ? 'attempt' : `${before} attempts`} before it failed too`;
  return {
    at: last.at,
    kind: 'attempt',
    text: `${attempt} of ${event.type} to ${shorten(delivery.url)}: ${describeOutcome(status, error)}${others}`,
    details:
      before === 0
        ? []
        : run
            .slice(-MAX_SHOWN)
            .map((made) => `${made.attempt} at ${toIso(made.at)}: ${describeOutcome(made.status, made.error)}`),
    data: {
      ...names(delivery),
      ...(before === 0 ? {} : { firstAttempt: first.attempt, firstAt: toIso(first.at) }),
      ...{ attempt, status, error, isDelivered: error === null },
    },
  };
}

/** The newest failures of a row that are listed one by one. */
const MAX_SHOWN = 10;

/** `delivered, HTTP 204`, or why not. Errors begin with the HTTP status where one came. */
export function describeOutcome(status: number | null, error: string | null): string {
  if (error === null) return `delivered, HTTP ${status}`;
  return shorten(error, 200);
}

/** Describes the facts about a delivery that its log of attempts does not show. */
function describeState(event: ExplainedEvent, { delivery, attempts }: Answer): TimelineEntry | null {
  const { status, attemptCount, finishedAt, lastStatus, lastError, nextAttemptAt, endpointDisabled } = delivery;
  const subject = `${event.type} to ${shorten(delivery.url)}`;
  const entry = { kind: 'delivery', details: [], data: { ...names(delivery), status, attemptCount } } as const;
  const last = describeOutcome(lastStatus, lastError);
  switch (status) {
    case 'delivered':
      // Delivered before attempts were logged.
      if (attempts.length > 0 || finishedAt === null) return null;
      return { ...entry, at: finishedAt, text: `${subject}: ${last}, at attempt ${attemptCount}` };
    case 'dead':
      return {
        ...entry,
        at: finishedAt ?? nextAttemptAt,
        text: `${subject} is dead after attempt ${attemptCount}: ${last}`,
      };
    case 'pending':
      if (endpointDisabled !== null) {
        const text = `${subject} waits: the endpoint is disabled (${shorten(endpointDisabled.reason, 200)})`;
        return { ...entry, at: endpointDisabled.at, text };
      }
      return { ...entry, at: nextAttemptAt, text: `${subject}: ${describeNext(delivery, attempts)}` };
    default:
      return assertNever(status);
  }
}

/** Whether the attempt that counted last has no outcome yet: it is being made, or the process that made it ended. */
export function isInProgress({ delivery, attempts }: Answer): boolean {
  const { attemptCount, lastStatus, lastError } = delivery;
  const isLogged = attempts.length > 0 || (lastStatus === null && lastError === null);
  return isLogged && attemptCount > 0 && !attempts.some(({ attempt }) => attempt === attemptCount);
}

function describeNext(delivery: ExplainedDelivery, attempts: Answer['attempts']): string {
  const { attemptCount, lastStatus, lastError } = delivery;
  // Attempts of before they were logged have left only their last outcome.
  const isLogged = attempts.length > 0 || (lastStatus === null && lastError === null);
  if (isInProgress({ delivery, attempts }))
    return `attempt ${attemptCount} is in progress; without a result the next one follows now`;
  const before = isLogged ? '' : `; the last one: ${describeOutcome(lastStatus, lastError)}`;
  return `attempt ${attemptCount + 1} is due${before}`;
}

function names({ eventId, endpointId, url }: ExplainedDelivery) {
  return { eventId: encodeId('evt', eventId), endpointId: encodeId('whe', endpointId), url };
}
