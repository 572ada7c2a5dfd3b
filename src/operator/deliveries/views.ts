import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';
import { DiagnosisView, outcome } from '../webhooks/views.ts';

const [text, count] = [Type.String(), Type.Integer()];

const delivery = {
  ...{ eventId: text, endpointId: text, isEndpointDisabled: Type.Boolean(), type: text, createdAt: Time },
  ...{ invoiceId: nullable(text), externalId: nullable(text), status: Type.Enum(['pending', 'delivered', 'dead']) },
  ...{ attempts: count, attemptsLeft: count, nextAttemptAt: nullable(Time), finishedAt: nullable(Time) },
  ...{ lastStatus: nullable(count), lastError: nullable(text) },
};
export const DeliveryView = Type.Object(delivery);
export type DeliveryView = Static<typeof DeliveryView>;

/** `nextBefore`: the event before which the next page begins. */
export const DeliveryListView = Type.Object({ data: Type.Array(DeliveryView), nextBefore: nullable(text) });
export type DeliveryListView = Static<typeof DeliveryListView>;

export const AttemptView = Type.Object({ attempt: count, ...outcome, answer: nullable(text) });
export type AttemptView = Static<typeof AttemptView>;

/** `diagnosis`: why the last attempt failed, the most telling first. */
export const ShownDeliveryView = Type.Object({
  ...{ ...delivery, attempts: Type.Array(AttemptView), url: text, diagnosis: Type.Array(DiagnosisView) },
});
export type ShownDeliveryView = Static<typeof ShownDeliveryView>;

export const ShownEventView = Type.Object({
  ...{ eventId: text, projectId: text, type: text, createdAt: Time, position: count },
  deliveries: Type.Array(ShownDeliveryView),
});
export type ShownEventView = Static<typeof ShownEventView>;

const was = Type.Enum(['missing', 'pending', 'delivered', 'dead']);

/** `outcome` `null`: nothing was done. */
export const ReplayedEventView = Type.Object({
  ...{ eventId: text, endpointId: text, was, outcome: nullable(Type.Enum(['replayed', 'due', 'exhausted'])) },
});
export type ReplayedEventView = Static<typeof ReplayedEventView>;

export const ReplayedEventsView = Type.Object({ isDryRun: Type.Boolean(), data: Type.Array(ReplayedEventView) });
export type ReplayedEventsView = Static<typeof ReplayedEventsView>;

/** `found`: by what the deliveries were before. A dry run has no outcome. */
export const ReplayedPeriodView = Type.Object({
  ...{ endpointId: text, from: Time, until: Time, isDryRun: Type.Boolean() },
  found: Type.Object({ total: count, missing: count, pending: count, delivered: count, dead: count }),
  ...{ replayed: Type.Optional(count), due: Type.Optional(count), exhausted: Type.Optional(count) },
});
export type ReplayedPeriodView = Static<typeof ReplayedPeriodView>;
