import type { FieldError } from './problem.ts';

/** The part of JSON Schema that inputs use. */
export type Schema = {
  type?: string;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  items?: Schema;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
};

/** Returns the type errors of an input. Each `message` follows the field name. */
export function typeErrorsOf(schema: Schema, value: unknown, field = ''): FieldError[] {
  const wrong = (message: string): FieldError[] => [{ field: field.slice(0, 60), code: 'INVALID_TYPE', message }];
  if (schema.anyOf !== undefined) {
    const found = schema.anyOf.map((each) => typeErrorsOf(each, value, field));
    return found.find((problems) => problems.length === 0) ?? found[0] ?? [];
  }
  if (schema.enum !== undefined)
    return schema.enum.includes(value) ? [] : wrong(`must be one of ${schema.enum.join(', ')}`);
  if (schema.type === 'array') {
    if (!Array.isArray(value)) return wrong('must be a list');
    return value.flatMap((each, index) => typeErrorsOf(schema.items ?? {}, each, `${field}[${index}]`));
  }
  if (schema.type === 'object') {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return wrong('must be an object');
    return membersOf(schema, value, field === '' ? '' : `${field}.`);
  }
  if (schema.type === 'null') return value === null ? [] : wrong('must be null');
  if (typeof value === schema.type) return [];
  return wrong(schema.type === 'boolean' ? 'must be true or false' : `must be a ${schema.type ?? 'value'}`);
}

function membersOf({ properties = {}, required = [] }: Schema, value: object, before: string): FieldError[] {
  const given = new Map(Object.entries(value));
  const missing = required
    .filter((name) => !given.has(name))
    .map((name) => ({ field: `${before}${name}`, code: 'MISSING_FIELD', message: 'is missing' }));
  const others = [...given].flatMap(([name, member]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema !== undefined) return typeErrorsOf(schema, member, `${before}${name}`);
    const known = Object.keys(properties).join(', ') || 'none';
    return [
      { field: `${before}${name}`.slice(0, 60), code: 'UNKNOWN_FIELD', message: `is not known; use one of: ${known}` },
    ];
  });
  return [...missing, ...others];
}
