import { encodeId } from '../../domain/ids.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import type { Sql } from '../../store/db/database.ts';
import { describeDelivery } from './delivery-entries.ts';
import {
  type ExplainedAttempt,
  type ExplainedDelivery,
  type ExplainedEvent,
  findAttempts,
  findDeliveries,
} from './event-queries.ts';

/** An event, and what became of each of its deliveries that is shown. */
export type DescribedEvent = {
  event: ExplainedEvent;
  /** `null` if they are among those that are not shown. */
  deliveries: { delivery: ExplainedDelivery; attempts: ExplainedAttempt[] }[] | null;
};

/** Shown at most. */
const MAX_DELIVERIES = 60;
/** Of each delivery. It has 12 by its schedule, and up to 240 while its endpoint fails. */
const MAX_ATTEMPTS = 60;

/** Reads what became of events. Only the newest deliveries are read. */
export async function readDeliveries(
  db: Sql,
  events: readonly ExplainedEvent[],
): Promise<{ events: DescribedEvent[]; deliveries: { shown: number; total: number } }> {
  const ids = events.map(({ id }) => id);
  const deliveries = await findDeliveries(db, ids, MAX_DELIVERIES);
  const total = deliveries[0]?.total ?? 0;
  const attempts = await findAttempts(db, deliveries, MAX_ATTEMPTS);
  const described = events.map((event) => {
    const own = deliveries.filter(({ eventId }) => eventId === event.id);
    if (own.length === 0 && total > deliveries.length) return { event, deliveries: null };
    const withAttempts = own.map((delivery) => {
      const { endpointId } = delivery;
      return {
        delivery,
        attempts: attempts.filter((one) => one.eventId === event.id && one.endpointId === endpointId),
      };
    });
    return { event, deliveries: withAttempts };
  });
  return { events: described, deliveries: { shown: deliveries.length, total } };
}

/** The event, its deliveries and their attempts. */
export function describeEvent({ event, deliveries }: DescribedEvent): TimelineEntry[] {
  const { id, type, sequence, createdAt } = event;
  const eventId = encodeId('evt', id);
  const place = type.startsWith('invoice.') ? `, number ${sequence} of this invoice` : '';
  const entry: TimelineEntry = {
    at: createdAt,
    kind: 'event',
    text: `${type}${place}: ${eventId}`,
    details: deliveries?.length === 0 ? ['sent to nobody: no webhook endpoint was active then'] : [],
    data: { eventId, type, sequence },
  };
  return [entry, ...(deliveries ?? []).flatMap((described) => describeDelivery(event, described))];
}
