type Schema = Readonly<Record<string, unknown>>;

/**
 * Returns the schema of data that clients receive, so that clients generated today can read what later releases add: objects may have
 * further members, and enums are strings whose known values are in `x-extensible-enum`. Data that clients send keeps its strict schemas.
 */
export function openSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(openSchema);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf, enum: values, ...rest } = schema as Schema;
  const known = constantsOf(anyOf) ?? (Array.isArray(values) ? values : null);
  if (known !== null && known.length > 0) return { ...rest, type: 'string', 'x-extensible-enum': known };
  const opened = Object.fromEntries(
    Object.entries(schema).map(([key, part]) => [
      key,
      key === 'properties' ? mapValues(part as Schema, openSchema) : PARTS.has(key) ? openSchema(part) : part,
    ]),
  );
  const isObject = 'properties' in schema && (rest['additionalProperties'] ?? false) === false;
  return isObject ? { ...opened, additionalProperties: true } : opened;
}

/** The members of a schema that contain other schemas. */
const PARTS = new Set(['anyOf', 'allOf', 'oneOf', 'items']);

/** Returns the strings in a union of constants, such as the statuses of an invoice. */
function constantsOf(anyOf: unknown): string[] | null {
  if (!Array.isArray(anyOf)) return null;
  const constants = anyOf.flatMap(({ const: value }: { const?: unknown }) =>
    typeof value === 'string' ? [value] : [],
  );
  return constants.length === anyOf.length ? constants : null;
}

function mapValues(object: Schema, map: (value: unknown) => unknown): Schema {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));
}
