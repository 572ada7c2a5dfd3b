import { encodeId, firstIdOf } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { findActionsSince, type RecordedAction } from '../../store/access/audit-log.ts';
import { findDeliveryDoubts, hastenPutOff } from '../../store/outbox/delivery-doubts.ts';
import { tellDelivery } from './inventory-alarms.ts';
import type { Keeping } from './keeping.ts';

const DAY_MS = 86_400_000;
/** The longest pause between two attempts is a day and a half. */
const LONGEST_MS = 2 * DAY_MS;
/** Clocks of processes differ by less, or that is an alarm. */
const SKEW_MS = 60_000;
/** As many as a person looks at. */
const MAX_TOLD = 20;
/** Since one of these, an endpoint wants other events than before. */
const REASONS: readonly RecordedAction[] = ['webhook.added', 'webhook.changed', 'webhook.enabled'];

/** Finds events of the last day that somebody keeps from an endpoint, and makes due what nobody puts off for so long. */
export async function lookAtDeliveries(keeping: Keeping): Promise<void> {
  const { db, network, now } = keeping;
  for (const { eventId, endpointId } of (await hastenPutOff(db, network, now(), unixMs(now() + LONGEST_MS))).slice(
    0,
    MAX_TOLD,
  ))
    await tellDelivery(keeping, {
      eventId,
      endpointId,
      what: 'was put off for longer than Quittance ever does; it is due again',
    });
  const found = await findDeliveryDoubts(db, network, firstIdOf(unixMs(now() - DAY_MS)));
  const names = found.filter(({ kind }) => kind === 'missing').map(({ endpointId }) => encodeId('whe', endpointId));
  const done = names.length === 0 ? [] : await findActionsSince(db, 0, names, []);
  for (const { eventId, endpointId, kind, createdAt } of found) {
    const isReason = ({ subject, action, actedAt }: (typeof done)[number]) =>
      subject === encodeId('whe', endpointId) && REASONS.includes(action) && actedAt >= createdAt - SKEW_MS;
    if (kind === 'missing' && done.some(isReason)) continue;
    const what =
      kind === 'missing' ? 'is not planned, though the endpoint wants it' : 'has ended, and no attempt says so';
    await tellDelivery(keeping, { eventId, endpointId, what });
  }
}
