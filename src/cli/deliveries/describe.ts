import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import type { DeskDelivery } from '../../store/delivery-desk.ts';

/** A delivery for --json. */
export function describeDelivery(delivery: DeskDelivery) {
  const { status, attemptCount, maxAttempts } = delivery;
  return {
    eventId: encodeId('evt', delivery.eventId),
    endpointId: encodeId('whe', delivery.endpointId),
    isEndpointDisabled: delivery.isEndpointDisabled,
    type: delivery.type,
    createdAt: toIso(delivery.createdAt),
    invoiceId: delivery.invoiceId && encodeId('inv', delivery.invoiceId),
    externalId: delivery.externalId,
    status,
    attempts: attemptCount,
    attemptsLeft: status === 'pending' ? Math.max(0, maxAttempts - attemptCount) : 0,
    nextAttemptAt: status === 'pending' ? toIso(delivery.nextAttemptAt) : null,
    finishedAt: delivery.finishedAt && toIso(delivery.finishedAt),
    lastStatus: delivery.lastStatus,
    lastError: delivery.lastError,
  };
}
