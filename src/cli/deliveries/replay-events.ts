import { encodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Sql } from '../../store/database.ts';
import { type DeskEvent, findDeskEvents } from '../../store/delivery-desk.ts';
import { findPlanned, type ReplayCandidate, type Replayed } from '../../store/delivery-replay.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { replayNamed } from '../../webhooks/replay-deliveries.ts';
import { CliError, type Problem } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import { formatTable, type Result, type Terminal } from '../terminal.ts';
import { findEndpoint } from '../webhook/options.ts';
import { withDatabase } from '../with-database.ts';
import { readEventId } from './options.ts';
import { disabledNotes, exhaustedText, type ReplayOptions, refuseMany } from './replay-parts.ts';

/** One command takes so many, in one transaction. */
const MAX_EVENTS = 500;

type Target = ReplayCandidate & { endpointId: string };

/** Sends the named events again, to one endpoint or to all that they were planned for: all or none. */
export async function replayEvents(terminal: Terminal, references: string[], options: ReplayOptions): Promise<Result> {
  const eventIds = [...new Set(references.map(readEventId))];
  if (eventIds.length > MAX_EVENTS) {
    throw new CliError(
      'INVALID_ARGUMENT',
      `${eventIds.length} events were given, and one command takes ${MAX_EVENTS}: use --endpoint with --from and --to`,
    );
  }
  for (const name of ['from', 'to', 'status', 'type'] as const) {
    if (options[name] !== undefined)
      throw new CliError('USAGE', `--${name} chooses events, and events were named: give one of them`);
  }
  const operator = readOperator(options.by, terminal.env);
  return withDatabase(terminal, async ({ db }) => {
    const events = await findDeskEvents(db, eventIds);
    const endpoint = options.endpoint === undefined ? null : await findEndpoint(db, options.endpoint);
    const planned = await findPlanned(db, eventIds, endpoint?.id ?? null);
    refuseUnknown({ eventIds, events, planned, endpoint });
    const targets: Target[] =
      endpoint === null
        ? planned
        : eventIds.map((eventId) => {
            const was = planned.find((delivery) => delivery.eventId === eventId)?.was ?? 'missing';
            return { eventId, endpointId: endpoint.id, was };
          });
    if (options.dryRun === true)
      return describe(
        targets.map((target) => ({ ...target, outcome: null })),
        [],
      );
    refuseMany(targets.length, options.yes);
    const endpoints = await findEndpoints(db, targets);
    const byEndpoint = endpoints.map(({ id, project_id }) => ({
      endpointId: id,
      projectId: project_id,
      eventIds: targets.filter(({ endpointId }) => endpointId === id).map(({ eventId }) => eventId),
    }));
    const now = () => unixMs(systemClock.now());
    return describe(await replayNamed({ db, now, operator }, byEndpoint), disabledNotes(endpoints));
  });
}

/** All problems at once. Errors: `NOT_FOUND`. */
function refuseUnknown(asked: {
  eventIds: readonly string[];
  events: readonly DeskEvent[];
  planned: readonly Target[];
  endpoint: WebhookEndpoint | null;
}): void {
  const { events, planned, endpoint } = asked;
  const problems = asked.eventIds.flatMap((id): Problem[] => {
    const subject = encodeId('evt', id);
    const event = events.find((each) => each.id === id);
    if (event === undefined) return [{ subject, message: `there is no event ${subject}` }];
    if (endpoint !== null && event.projectId !== endpoint.project_id) {
      return [{ subject, message: `${subject} is of another project than ${encodeId('whe', endpoint.id)}` }];
    }
    if (endpoint !== null || planned.some(({ eventId }) => eventId === id)) return [];
    return [{ subject, message: `${subject} was not planned for any endpoint: say which one with --endpoint` }];
  });
  if (problems.length > 0) throw new CliError('NOT_FOUND', 'nothing was replayed', { problems });
}

async function findEndpoints(db: Sql, targets: readonly Target[]): Promise<WebhookEndpoint[]> {
  const ids = [...new Set(targets.map(({ endpointId }) => endpointId))];
  const endpoints: WebhookEndpoint[] = [];
  for (const id of ids) {
    const endpoint = await findWebhookEndpoint(db, id);
    if (endpoint !== null) endpoints.push(endpoint);
  }
  return endpoints;
}

const OUTCOMES: Readonly<Record<Replayed['outcome'], string>> = {
  replayed: 'due now',
  due: 'due within seconds anyway',
  exhausted: 'not sent',
};

/** `outcome` `null`: nothing was done. */
function describe(rows: readonly (Target & { outcome: Replayed['outcome'] | null })[], notes: string[]): Result {
  const exhausted = rows.filter(({ outcome }) => outcome === 'exhausted').length;
  const next = exhausted === 0 ? notes : [...notes, `not sent: ${exhaustedText(exhausted)}`];
  const shown = rows.map((row) => ({
    ...row,
    event: encodeId('evt', row.eventId),
    whe: encodeId('whe', row.endpointId),
  }));
  return {
    data: {
      isDryRun: rows.some(({ outcome }) => outcome === null),
      data: shown.map(({ event, whe, was, outcome }) => ({ eventId: event, endpointId: whe, was, outcome })),
    },
    text: formatTable(
      ['EVENT', 'ENDPOINT', 'WAS', 'NOW'],
      shown.map(({ event, whe, was, outcome }) => [
        event,
        whe,
        was,
        outcome === null ? 'would be due now' : OUTCOMES[outcome],
      ]),
    ),
    ...(next.length === 0 ? {} : { next: next.join('\n') }),
  };
}
