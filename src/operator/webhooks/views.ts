import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Said, Time } from '../view.ts';

const [text, count, flag] = [Type.String(), Type.Integer(), Type.Boolean()];

const endpoint = {
  ...{ endpointId: text, projectId: text, network: text, url: text, description: text },
  /** `null`: all. */
  eventTypes: nullable(Type.Array(text)),
};

/** A new endpoint. `secret`: one that was made for it, which is shown this one time. */
export const AddedEndpointView = Type.Object({ ...endpoint, secret: nullable(text) });
export type AddedEndpointView = Static<typeof AddedEndpointView>;

/** An endpoint without its secrets. `paused`: attempts kept failing, so none is made for a while. */
export const EndpointView = Type.Object({
  ...endpoint,
  ...{ status: Type.Enum(['active', 'failing', 'paused', 'disabled']), createdAt: Time },
  ...{ failingSince: nullable(Time), pausedUntil: nullable(Time) },
  ...{ disabledAt: nullable(Time), disabledReason: nullable(text) },
});
export type EndpointView = Static<typeof EndpointView>;

/** The result of an attempt. `error` `null`: delivered. `webPage`: the title or first words of the web page that answered. */
export const outcome = {
  attemptedAt: Time,
  latencyMs: nullable(count),
  status: nullable(count),
  error: nullable(text),
  webPage: nullable(text),
};

export const ListedEndpointView = Type.Object({
  ...{ ...EndpointView.properties, undelivered: count, isUndeliveredMore: flag },
  lastAttempt: nullable(Type.Object(outcome)),
  secrets: Type.Array(Type.Object({ createdAt: Time, endsAt: nullable(Time) })),
});
export type ListedEndpointView = Static<typeof ListedEndpointView>;

export const EndpointListView = Type.Object({ data: Type.Array(ListedEndpointView) });
export type EndpointListView = Static<typeof EndpointListView>;

/**
 * `day`: what became of the newest deliveries of 24 hours, tests left out; `isSample`: there were more than were looked through. `fingerprint`:
 * the first 12 hexadecimal digits of the SHA-256 of the secret; `null`: no key at hand opens it.
 */
export const ShownEndpointView = Type.Object({
  ...ListedEndpointView.properties,
  day: Type.Object({ looked: count, delivered: count, waiting: count, dead: count, isSample: flag }),
  oldestUndelivered: nullable(Time),
  secrets: Type.Array(Type.Object({ createdAt: Time, endsAt: nullable(Time), fingerprint: nullable(text) })),
});
export type ShownEndpointView = Static<typeof ShownEndpointView>;

export const RotatedSecretView = Type.Object({
  ...{ endpointId: text, secret: nullable(text), formerSecretEndsAt: Time, isFormerSecretLost: flag },
});
export type RotatedSecretView = Static<typeof RotatedSecretView>;

/** `replay`: the step that sends what happened while the endpoint was disabled. */
export const EnabledEndpointView = Type.Object({
  ...{ endpointId: text, status: Type.Literal('active'), disabledAt: nullable(Time), disabledReason: nullable(text) },
  ...{ hastened: count, missed: count, isMissedMore: flag, replay: nullable(Said) },
});
export type EnabledEndpointView = Static<typeof EnabledEndpointView>;

export const DisabledEndpointView = Type.Object({
  endpointId: text,
  status: Type.Literal('disabled'),
  disabledReason: text,
});
export type DisabledEndpointView = Static<typeof DisabledEndpointView>;

export const DiagnosisView = Type.Object({
  ...{ code: text, certainty: Type.Enum(['proven', 'likely']), problem: text, fix: Said },
});

const reached = Type.Enum(['ok', 'failed', 'unknown', 'not used']);

export const TestedEndpointView = Type.Object({
  ...{ endpointId: text, eventId: text, isDelivered: flag, ...outcome },
  ...{ dns: reached, tls: reached, answer: nullable(text), diagnosis: Type.Array(DiagnosisView) },
});
export type TestedEndpointView = Static<typeof TestedEndpointView>;
