import fc from 'fast-check';
import Schema from 'typebox/schema';

/** The parts of an OpenAPI 3.1 file that requests are made from and answers are judged by. */
export type OpenApi = { paths: Record<string, Record<string, Operation>> };

export type JsonSchema = {
  type?: string;
  const?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, JsonSchema>;
  required?: string[];
};

export type Parameter = { in: 'header' | 'query' | 'path'; name: string; required?: boolean; schema: JsonSchema };

export type Operation = {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, { description: string; content: Record<string, { schema: JsonSchema }> }>;
};

/** Values that a schema allows. `name` says what may stand for a plain string: what the service holds, or any text. */
export function validText(name: string, schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.type === 'integer') {
    return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1000 }).map(String);
  }
  if (name === 'invoiceId') return fc.constantFrom('{{pending}}', '{{paid}}', '{{expired}}', '{{foreign}}');
  if (name === 'after') return fc.constantFrom('{{event}}', '{{foreignEvent}}', `evt_${'0'.repeat(26)}`);
  if (name === 'amount')
    return fc.stringMatching(new RegExp(schema.pattern ?? '')).filter((text) => /[1-9]/.test(text));
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
  const { minLength = 1, maxLength = 200 } = schema;
  // A character is a code point here, and NUL is none that any database takes.
  return fc.string({ unit: 'binary', minLength, maxLength }).map((text) => text.replaceAll('\0', '0'));
}

export type Judge = (value: unknown) => string | null;

/** A judge of values by a schema in which nothing but what it names is allowed: what is wrong, or `null`. */
export function closedJudge(schema: JsonSchema): Judge {
  const compiled = Schema.Compile(closed(schema) as object);
  return (value) => {
    if (compiled.Check(value)) return null;
    const [, errors] = compiled.Errors(value);
    return (
      errors.map(({ instancePath, message }) => `${instancePath} ${message}`).join('; ') || 'does not fit the schema'
    );
  };
}

/** The schema with `additionalProperties: false` wherever properties are named. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return Object.hasOwn(copy, 'properties') ? { ...copy, additionalProperties: false } : copy;
}
