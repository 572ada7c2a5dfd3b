import fc from 'fast-check';
import Schema from 'typebox/schema';
import { OPEN_INVOICE } from './shot.ts';

/** The parts of an OpenAPI 3.1 file that requests are made from and answers are judged by. */
export type OpenApi = { paths: Record<string, Record<string, Operation>> };

export type JsonSchema = {
  type?: string;
  const?: string;
  anyOf?: JsonSchema[];
  items?: JsonSchema;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema;
  propertyNames?: { pattern: string };
  maxProperties?: number;
  required?: string[];
};

export type Parameter = {
  in: 'header' | 'query' | 'path';
  name: string;
  required?: boolean;
  description?: string;
  schema: JsonSchema;
};

export type Operation = {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, { description: string; content: Record<string, { schema: JsonSchema }> }>;
};

/** What the service holds of each kind of id, as a cursor or a place in a path. */
const HELD: Record<string, string[]> = {
  inv: ['{{pending}}', '{{paid}}', '{{expired}}', '{{foreign}}'],
  trf: ['{{transfer}}', '{{foreignTransfer}}'],
  evt: ['{{event}}'],
  whe: ['{{endpoint}}', '{{foreignEndpoint}}'],
};

/** Of what an endpoint is to be, which the schema does not say. */
const TAKEN: Record<string, string[]> = {
  events: ['invoice.paid', 'ping', 'transfer.unmatched'],
  overlap: ['0', '90m', '30d'],
  secret: [`whsec_${Buffer.alloc(32, 1).toString('base64')}`, `whsec_${Buffer.alloc(24, 2).toString('base64')}`],
  description: ['Grüße ₮', 'till'],
};

/** Values that a schema allows, as text. `name` says what may stand for a plain string: what the service holds, or any text. */
export function validText(name: string, schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((each) => validText(name, each)));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.items !== undefined) {
    return fc
      .uniqueArray(validText(name, schema.items), { minLength: 1, maxLength: 3 })
      .map((texts) => texts.join(','));
  }
  // A longer one looks like a server that hangs.
  if (name === 'wait') return fc.constant('1');
  const taken = TAKEN[name];
  if (taken !== undefined) return fc.constantFrom(...taken);
  // Where nobody listens; fewer than a project may have.
  if (name === 'url') return fc.nat(50).map((n) => `http://127.0.0.1:9/${n}`);
  if (schema.type === 'integer') {
    return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1000 }).map(String);
  }
  if (schema.format === 'date-time') return dateTime;
  if (schema.format === 'uri-template')
    return fc.constantFrom('http://localhost:3000/{invoiceId}', 'http://127.0.0.1/');
  const held = HELD[name === 'invoiceId' ? 'inv' : (/^\^([a-z]{3})_/.exec(schema.pattern ?? '')?.[1] ?? '')];
  if (held !== undefined) return fc.constantFrom(...held);
  if (name === 'amount')
    return fc.stringMatching(new RegExp(schema.pattern ?? '')).filter((text) => /[1-9]/.test(text));
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
  const { minLength = 1, maxLength = 200 } = schema;
  // A character is a code point here, and NUL is none that any database takes.
  const text = fc.string({ unit: 'binary', minLength, maxLength }).map((any) => any.replaceAll('\0', '0'));
  // In one line, as people read it.
  if (name === 'description') return text.map((any) => any.replaceAll(/[\p{C}\p{Z}]/gu, '.'));
  return name === 'invoice' ? fc.oneof(fc.constant(`{{${OPEN_INVOICE}}}`), text) : text;
}

/** The same as a value of JSON. */
export function validJson(name: string, schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.type === 'object') {
    const key = fc.stringMatching(new RegExp(schema.propertyNames?.pattern ?? ''));
    const value = fc.string({ unit: 'binary', maxLength: 20 }).map((any) => any.replaceAll('\0', '0'));
    const { maxProperties = 20 } = schema;
    return fc.dictionary(key, value, { maxKeys: maxProperties }).map((pairs) => JSON.stringify(pairs));
  }
  const { items } = schema;
  if (items !== undefined) return fc.array(validJson(name, items), { maxLength: 3 }).map((each) => `[${each.join()}]`);
  return validText(name, schema).map((text) => (schema.type === 'integer' ? text : JSON.stringify(text)));
}

/** In a century that the service takes. */
const dateTime = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2099-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString());

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
