import { encodeId, type IdPrefix } from '../../core/domain/ids.ts';
import { convertedPriceOf } from '../../core/domain/invoice-options.ts';
import type { Text } from '../../core/domain/message.ts';
import { formatAmount, microUsdt } from '../../core/domain/money.ts';
import type { ConvertedPrice } from '../../core/domain/price.ts';
import { toIso, type UnixMs } from '../../core/domain/time.ts';
import { type TSchema, Type } from '../../core/runtime/type.ts';

/** ISO 8601 in UTC, with milliseconds. */
export const Time = Type.String({ format: 'date-time' });

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** A text that may contain fields and next steps. The interface that shows it turns it into a string. */
export const Said = Type.Unsafe<Text>(Type.String());

/**
 * A member in a view. `schema` is its public type. `show` computes the member from the column `of` (by default, the column with the same
 * name), or from the whole row if `of` is `*`.
 */
export type Field<Inner = never, Outer = unknown> = { of?: string; schema: TSchema; show(value: Inner): Outer };
type Fields = Readonly<Record<string, Field>>;
/** A row's public view. */
export type Shown<Of extends Fields> = {
  [Name in keyof Of]: Of[Name] extends Field<never, infer Outer> ? Outer : never;
};

const as = <Outer>(schema: TSchema): Field<Outer, Outer> => ({ schema, show: (value) => value });
export const text = as<string>(Type.String());
export const texts = as<string[]>(Type.Array(Type.String()));
export const whole = as<number>(Type.Integer());
export const number = as<number>(Type.Number());
export const yes = as<boolean>(Type.Boolean());
export const anything = as<unknown>(Type.Unknown());
export const said = as<Text>(Said);
export const literal = <const Value extends string>(value: Value) => as<Value>(Type.Literal(value));
export const choice = <const Choice extends string>(choices: readonly Choice[]) => as<Choice>(Type.Enum([...choices]));
export const time: Field<UnixMs, string> = { schema: Type.String({ format: 'date-time' }), show: toIso };
/** An amount as a decimal string. */
export const usdt: Field<bigint, string> = { schema: Type.String(), show: (micro) => formatAmount(microUsdt(micro)) };
/** The price that an invoice was created for, with its rate, from its options. */
export const price: Field<string | null, ConvertedPrice | null> = {
  of: 'options',
  schema: nullable(
    Type.Object({
      ...{ amount: Type.String(), currency: Type.String(), rate: Type.String() },
      ...{ rateAt: nullable(Type.String({ format: 'date-time' })), rateSource: Type.String() },
    }),
  ),
  show: convertedPriceOf,
};
export const id = (prefix: IdPrefix): Field<string, string> => ({
  schema: Type.String(),
  show: (uuid) => encodeId(prefix, uuid),
});
export const list = <Inner, Outer>({ schema, show }: Field<Inner, Outer>): Field<readonly Inner[], Outer[]> => ({
  schema: Type.Array(schema),
  show: (values) => values.map(show),
});
export const maybe = <Inner, Outer>({
  schema,
  show,
  ...of
}: Field<Inner, Outer>): Field<Inner | null, Outer | null> => ({
  ...of,
  schema: Type.Union([schema, Type.Null()]),
  show: (value) => (value === null ? null : show(value)),
});
/** Shows a column under another name. */
export const of = <Inner, Outer>(column: string, field: Field<Inner, Outer>) => ({ ...field, of: column });
/** Nests one view in another. */
export const part = <const Of extends Fields>(fields: Of): Field<object, Shown<Of>> => ({
  schema: schemaOf(fields),
  show: (row) => show(fields, row),
});

export function schemaOf(fields: Fields, more: Record<string, TSchema> = {}): TSchema {
  const own = Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema]));
  return Type.Object({ ...own, ...more });
}

export const listOf = <const Of extends Fields>(fields: Of, more: Record<string, TSchema> = {}) =>
  Type.Object({ data: Type.Array(schemaOf(fields)), ...more });

/** Returns a row's public view, without its other columns. */
export function show<const Of extends Fields>(fields: Of, row: object): Shown<Of> {
  const shown = Object.entries(fields).map(([name, { of: column = name, show: make }]) => [
    name,
    make((column === '*' ? row : (row as Record<string, unknown>)[column]) as never),
  ]);
  return Object.fromEntries(shown) as Shown<Of>;
}
