import { Type } from '../../runtime/type.ts';

// What operations take, as it is typed: numbers, times and amounts are texts, which the operation reads.

export const Flag = Type.Optional(Type.Boolean());
export const Line = Type.Optional(Type.String());
export const Lines = Type.Optional(Type.Array(Type.String()));
export const ProjectId = Type.Optional(
  Type.String({ description: 'prj_…; may be left out where there is only one that the caller may see' }),
);
/** `from` and `to` of what has a time. */
export const Period = {
  from: Type.Optional(
    Type.String({ description: 'From this day or moment on (2026-09-01, UTC; a time needs its zone)' }),
  ),
  to: Type.Optional(Type.String({ description: 'To the end of this day, or until before this moment' })),
};
