import { type Static, Type } from '../../runtime/type.ts';
import { ROLES } from '../actor.ts';
import { nullable, Time } from '../view.ts';

const person = {
  personId: Type.String(),
  login: Type.String(),
  name: Type.String(),
  role: Type.Enum([...ROLES]),
  projects: nullable(Type.Array(Type.String())),
};

/** `projects`: those that it may see, `null` for all. `invitedUntil`: the end of a link that was not taken up yet. */
export const PersonView = Type.Object({
  ...person,
  createdAt: Time,
  passkeys: Type.Integer(),
  hasPassword: Type.Boolean(),
  recoveryCodes: Type.Integer(),
  seenAt: nullable(Time),
  invitedUntil: nullable(Time),
});
export type PersonView = Static<typeof PersonView>;

export const PersonListView = Type.Object({ data: Type.Array(PersonView) });
export type PersonListView = Static<typeof PersonListView>;

/** The link is shown this one time. */
export const InvitedView = Type.Object({ ...person, link: Type.String(), expiresAt: Time });
export type InvitedView = Static<typeof InvitedView>;

/** `endedSessions`: of that person, which begins anew with the new role. */
export const ChangedPersonView = Type.Object({ ...person, endedSessions: Type.Integer() });
export type ChangedPersonView = Static<typeof ChangedPersonView>;

export const RemovedPersonView = Type.Object({
  personId: Type.String(),
  login: Type.String(),
  status: Type.Literal('removed'),
});
export type RemovedPersonView = Static<typeof RemovedPersonView>;

/** `proof`: what it was started by. `endsAt`: if it is not used meanwhile. */
export const SessionView = Type.Object({
  sessionId: Type.String(),
  personId: Type.String(),
  login: Type.String(),
  role: Type.Enum([...ROLES]),
  proof: Type.Enum(['passkey', 'totp', 'recovery-code']),
  createdAt: Time,
  seenAt: Time,
  endsAt: Time,
  steppedUpUntil: nullable(Time),
  origin: Type.String(),
  userAgent: nullable(Type.String()),
});
export type SessionView = Static<typeof SessionView>;

export const SessionListView = Type.Object({ data: Type.Array(SessionView) });
export type SessionListView = Static<typeof SessionListView>;

export const EndedSessionView = Type.Object({ sessionId: Type.String(), status: Type.Literal('ended') });
export type EndedSessionView = Static<typeof EndedSessionView>;

export const EndedSessionsView = Type.Object({ endedSessions: Type.Integer() });
export type EndedSessionsView = Static<typeof EndedSessionsView>;

export const PasskeyView = Type.Object({
  passkeyId: Type.String(),
  name: Type.String(),
  createdAt: Time,
  lastUsedAt: nullable(Time),
});
export type PasskeyView = Static<typeof PasskeyView>;

export const PasskeyListView = Type.Object({ data: Type.Array(PasskeyView) });
export type PasskeyListView = Static<typeof PasskeyListView>;
