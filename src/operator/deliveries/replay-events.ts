import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { type Actor, maySee } from '../actor.ts';
import { notifyDispatchers } from '../subjects/webhook-sending.ts';
import { selectEndpoint } from '../subjects/webhooks.ts';
import { type DeskEvent, findDeskEvents } from './delivery-desk.ts';
import { findPlanned, type ReplayCandidate, type Replayed, replayDeliveries } from './delivery-replay.ts';
import { type ReplayDeps, recordReplay, refuseMany } from './replay-deliveries.ts';
import { readEventId } from './select-event.ts';
import type { ReplayedEventsView } from './views.ts';

/** The most events of one call; one transaction takes them all. */
const MAX_EVENTS = 500;

/** The UUIDs of events that are named (`evt_…`), each once. Errors: `INVALID_ARGUMENT`. */
export function readReplayedEvents(events: readonly string[]): string[] {
  const eventIds = [...new Set(events.map(readEventId))];
  if (eventIds.length <= MAX_EVENTS) return eventIds;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${eventIds.length} events were given, and one command takes ${MAX_EVENTS}: use ${{ field: 'endpoint' }} with ${{ field: 'from' }} and ${{ field: 'to' }}`,
  );
}

type Target = ReplayCandidate & { endpointId: string };
type Input = { eventIds: readonly string[]; endpoint?: string | undefined; isDryRun: boolean; isConfirmed: boolean };

/**
 * Sends events (UUIDs) again, to one endpoint or to all that they were planned for: all or none. `waiting`: endpoints that are disabled.
 * Errors: `INVALID_ARGUMENT`, `NOT_FOUND`, and `USAGE` for many without a confirmation.
 */
export async function replayEvents(
  { db, now }: ReplayDeps,
  actor: Actor,
  { eventIds, isDryRun, isConfirmed, ...asked }: Input,
): Promise<{ view: ReplayedEventsView; waiting: string[] }> {
  const events = (await findDeskEvents(db, eventIds)).filter(({ projectId }) => maySee(actor, projectId));
  const endpoint = asked.endpoint === undefined ? null : await selectEndpoint(db, actor, asked.endpoint);
  const planned = await findPlanned(db, eventIds, endpoint?.id ?? null);
  refuseUnknown({ eventIds, events, planned, endpoint });
  const missing = (eventId: string, { id: endpointId }: WebhookEndpoint) => ({
    eventId,
    endpointId,
    was: 'missing' as const,
  });
  const targets: Target[] =
    endpoint === null
      ? planned
      : eventIds.map((id) => planned.find(({ eventId }) => eventId === id) ?? missing(id, endpoint));
  if (isDryRun) return { view: viewReplayed(targets.map((target) => ({ ...target, outcome: null }))), waiting: [] };
  refuseMany(targets.length, isConfirmed);
  const endpoints: WebhookEndpoint[] = [];
  for (const id of new Set(targets.map(({ endpointId }) => endpointId))) {
    const found = await findWebhookEndpoint(db, id);
    if (found !== null) endpoints.push(found);
  }
  const replayed = await db.transaction(async (tx) => {
    const all: (Target & Replayed)[] = [];
    for (const { id: endpointId } of endpoints) {
      const own = targets.filter((target) => target.endpointId === endpointId).map(({ eventId }) => eventId);
      const results = await replayDeliveries(tx, { endpointId, eventIds: own, now: now() });
      all.push(...results.map((result) => ({ ...result, endpointId })));
    }
    for (const { id: endpointId, projectId } of endpoints) {
      const own = all.filter((each) => each.endpointId === endpointId);
      const detail = { events: own.map(({ eventId }) => encodeId('evt', eventId)) };
      await recordReplay(tx, { now, actor }, { projectId, endpointId, detail });
    }
    return all;
  });
  await notifyDispatchers(db);
  const waiting = endpoints.filter(({ disabledAt }) => disabledAt !== null).map(({ id }) => encodeId('whe', id));
  return { view: viewReplayed(replayed), waiting };
}

/** All problems at once. Errors: `NOT_FOUND`. */
function refuseUnknown(asked: {
  eventIds: readonly string[];
  events: readonly DeskEvent[];
  planned: readonly Target[];
  endpoint: WebhookEndpoint | null;
}): void {
  const { events, planned, endpoint } = asked;
  const problems = asked.eventIds.flatMap((id): FieldProblem[] => {
    const subject = encodeId('evt', id);
    const event = events.find((each) => each.id === id);
    if (event === undefined) return [{ subject, message: `there is no event ${subject}` }];
    if (endpoint !== null && event.projectId !== endpoint.projectId) {
      return [{ subject, message: `${subject} is of another project than ${encodeId('whe', endpoint.id)}` }];
    }
    if (endpoint !== null || planned.some(({ eventId }) => eventId === id)) return [];
    return [
      {
        subject,
        message: say`${subject} was not planned for any endpoint: say which one with ${{ field: 'endpoint' }}`,
      },
    ];
  });
  if (problems.length > 0) throw new AppError('NOT_FOUND', 'nothing was replayed', { problems });
}

function viewReplayed(rows: readonly (Target & { outcome: Replayed['outcome'] | null })[]): ReplayedEventsView {
  return {
    isDryRun: rows.some(({ outcome }) => outcome === null),
    data: rows.map(({ eventId, endpointId, was, outcome }) => {
      return { eventId: encodeId('evt', eventId), endpointId: encodeId('whe', endpointId), was, outcome };
    }),
  };
}
