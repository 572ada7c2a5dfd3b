import { type TSchema, Type } from '../runtime/type.ts';

/** ISO 8601, UTC, with milliseconds. */
export const Time = Type.String({ format: 'date-time' });

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
