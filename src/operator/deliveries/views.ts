import { type Static, Type } from '../../runtime/type.ts';
import { choice, id, list, listOf, maybe, of, part, type Shown, schemaOf, text, time, whole, yes } from '../fields.ts';
import { diagnosisFields } from '../subjects/webhook-sending.ts';
import { attemptFields } from '../subjects/webhooks.ts';
import { Time } from '../view.ts';

const delivery = {
  ...{ eventId: id('evt'), endpointId: id('whe'), isEndpointDisabled: yes, type: text, createdAt: time },
  ...{ invoiceId: maybe(id('inv')), externalId: maybe(text), status: choice(['pending', 'delivered', 'dead']) },
  ...{ attempts: of('attemptCount', whole), attemptsLeft: whole, nextAttemptAt: maybe(time), finishedAt: maybe(time) },
  ...{ lastStatus: maybe(whole), lastError: maybe(text) },
};
export type DeliveryView = Shown<typeof delivery>;

/** `nextBefore`: the event before which the next page begins. */
export const DeliveryListView = listOf(delivery, { nextBefore: maybe(text).schema });
export type DeliveryListView = { data: DeliveryView[]; nextBefore: string | null };

const attempt = { attempt: whole, ...attemptFields, answer: maybe(text) };
export type AttemptView = Shown<typeof attempt>;

/** `diagnosis`: why the last attempt failed, the most telling first. */
const shown = { ...delivery, attempts: list(part(attempt)), url: text, diagnosis: list(part(diagnosisFields)) };
export type ShownDeliveryView = Shown<typeof shown>;

const event = {
  eventId: text,
  projectId: text,
  type: text,
  createdAt: time,
  position: whole,
  deliveries: list(part(shown)),
};
export const ShownEventView = schemaOf(event);
export type ShownEventView = Shown<typeof event>;

const was = choice(['missing', 'pending', 'delivered', 'dead']);

/** `outcome` `null`: nothing was done. */
const replayed = {
  ...{ eventId: id('evt'), endpointId: id('whe'), was, outcome: maybe(choice(['replayed', 'due', 'exhausted'])) },
};
export type ReplayedEventView = Shown<typeof replayed>;

export const ReplayedEventsView = Type.Object({ isDryRun: yes.schema, data: Type.Array(schemaOf(replayed)) });
export type ReplayedEventsView = { isDryRun: boolean; data: ReplayedEventView[] };

const count = Type.Integer();
/** `found`: by what the deliveries were before. A dry run has no outcome. */
export const ReplayedPeriodView = Type.Object({
  ...{ endpointId: Type.String(), from: Time, until: Time, isDryRun: Type.Boolean() },
  found: Type.Object({ total: count, missing: count, pending: count, delivered: count, dead: count }),
  ...{ replayed: Type.Optional(count), due: Type.Optional(count), exhausted: Type.Optional(count) },
});
export type ReplayedPeriodView = Static<typeof ReplayedPeriodView>;
