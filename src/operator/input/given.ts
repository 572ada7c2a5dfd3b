import { Type } from '../../runtime/type.ts';

// What operations take, as it is typed: numbers, times and amounts are texts, which the operation reads.

export const Flag = Type.Optional(Type.Boolean());
export const Line = Type.Optional(Type.String());
export const Lines = Type.Optional(Type.Array(Type.String()));
export const ProjectId = Type.Optional(
  Type.String({ description: 'prj_…; optional if the caller can see only one project' }),
);
/** `from` and `to` of what has a time. */
export const Period = {
  from: Type.Optional(
    Type.String({ description: 'Start of the period: a day (2026-09-01, UTC) or a time with its zone' }),
  ),
  to: Type.Optional(Type.String({ description: 'End of the period: a day (included) or a time (excluded)' })),
};
