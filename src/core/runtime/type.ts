import type * as TypeBox from 'typebox';

export type { Static, TSchema } from 'typebox';

type Schema = Record<string, unknown>;
type Options = Readonly<Schema>;

/** This marker isn't enumerable, so it doesn't appear in the JSON schema. */
const OPTIONAL = '~optional';

/** Creates a factory for schemas whose first argument becomes the value of `keyword`, such as the members of a union. */
const holding = (keyword: string) => (value: unknown, options?: Options) => ({ [keyword]: value, ...options });
const simple = (type: string) => (options?: Options) => ({ type, ...options });

function object(properties: Record<string, Schema>, options?: Options): Schema {
  const required = Object.keys(properties).filter((key) => !(OPTIONAL in (properties[key] ?? {})));
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
}

/** Combines all parts' properties. A duplicate property is a mistake. */
function interfaceOf(heritage: readonly { properties: Record<string, Schema> }[], own: Record<string, Schema>): Schema {
  const entries = [...heritage.map(({ properties }) => properties), own].flatMap(Object.entries);
  const properties = Object.fromEntries(entries);
  if (Object.keys(properties).length < entries.length) throw new Error('a property of an interface is declared twice');
  return object(properties);
}

const makers = {
  Object: object,
  Interface: interfaceOf,
  Array: (items: Schema, options?: Options) => ({ type: 'array', items, ...options }),
  Record: (_key: Schema, value: Schema) => ({ type: 'object', patternProperties: { '^.*$': value } }),
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Unsafe: (schema: Schema) => schema,
  Union: holding('anyOf'),
  Intersect: holding('allOf'),
  Enum: holding('enum'),
  Literal: (value: unknown, options?: Options) => ({ type: typeof value, const: value, ...options }),
  String: simple('string'),
  Integer: simple('integer'),
  Number: simple('number'),
  Boolean: simple('boolean'),
  Null: simple('null'),
  Unknown: (options?: Options) => ({ ...options }),
};

/**
 * Makes JSON schemas with TypeBox's types. Loading the package itself would load 373 modules and use a quarter of the start-up time. This
 * module's schemas have the same JSON text as TypeBox's. A record's keys can be any strings.
 */
export const Type = makers as unknown as Pick<typeof TypeBox, keyof typeof makers>;
