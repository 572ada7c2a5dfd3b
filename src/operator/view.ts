import type { Text } from '../domain/message.ts';
import { type TSchema, Type } from '../runtime/type.ts';

/** ISO 8601, UTC, with milliseconds. */
export const Time = Type.String({ format: 'date-time' });

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** A text that may name fields and next steps: a string once a face has written it. */
export const Said = Type.Unsafe<Text>(Type.String());
