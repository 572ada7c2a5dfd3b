import { TIMELINE_KINDS } from '../../domain/timeline.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { Said, Time } from '../view.ts';

const Facts = Type.Record(Type.String(), Type.Unknown());

/** All that is known of an invoice, a transaction or an address; `subject` and the entries have more members, by what they are. */
export const ExplanationView = Type.Object({
  subject: Facts,
  verdict: Said,
  timeline: Type.Array(
    Type.Intersect([Type.Object({ at: Time, kind: Type.Enum(TIMELINE_KINDS), text: Type.String() }), Facts]),
  ),
  notShown: Type.Optional(
    Type.Array(Type.Object({ what: Type.String(), shown: Type.Integer(), total: Type.Integer() })),
  ),
  next: Type.Optional(Type.Array(Said)),
});
export type ExplanationView = Static<typeof ExplanationView>;
