import fc from 'fast-check';
import Schema from 'typebox/schema';
import { OPEN_INVOICE } from './shot.ts';

/** The parts of an OpenAPI 3.1 file used for generating requests and judging answers. */
export type OpenApi = { paths: Record<string, Record<string, Operation>> };

export type JsonSchema = {
  type?: string;
  const?: string;
  anyOf?: JsonSchema[];
  items?: JsonSchema;
  format?: string;
  pattern?: string;
  not?: { pattern?: string };
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema;
  propertyNames?: { pattern: string };
  maxProperties?: number;
  required?: string[];
  /** A creation has `amount` or `price`, not both. */
  if?: object;
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

/** The service's existing ids of each kind, for a cursor or a position in a path. */
const HELD: Record<string, string[]> = {
  inv: ['{{pending}}', '{{paid}}', '{{expired}}', '{{foreign}}'],
  trf: ['{{transfer}}', '{{foreignTransfer}}'],
  evt: ['{{event}}'],
  whe: ['{{endpoint}}', '{{foreignEndpoint}}'],
};

/** Allowed values of an endpoint's members that the schema doesn't list. */
const TAKEN: Record<string, string[]> = {
  currency: ['CNY'],
  events: ['invoice.paid', 'ping', 'transfer.unmatched'],
  overlap: ['0', '90m', '30d'],
  secret: [`whsec_${Buffer.alloc(32, 1).toString('base64')}`, `whsec_${Buffer.alloc(24, 2).toString('base64')}`],
  description: ['Grüße ₮', 'till'],
};

/**
 * Generates values that a schema allows, as text. `name` decides what to use for a plain string: one of the service's values, or any text.
 */
export function validText(name: string, schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((each) => validText(name, each)));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.items !== undefined) {
    return fc
      .uniqueArray(validText(name, schema.items), { minLength: 1, maxLength: 3 })
      .map((texts) => texts.join(','));
  }
  // A longer wait looks like a hanging server.
  if (name === 'wait') return fc.constant('1');
  const taken = TAKEN[name];
  if (taken !== undefined) return fc.constantFrom(...taken);
  // Where nothing listens; fewer than a project's limit.
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
  if (schema.pattern !== undefined) {
    const refused = schema.not?.pattern === undefined ? null : new RegExp(schema.not.pattern);
    return fc.stringMatching(new RegExp(schema.pattern)).filter((text) => refused?.test(text) !== true);
  }
  const { minLength = 1, maxLength = 200 } = schema;
  // A character is a code point here, and no database accepts NUL.
  const text = fc.string({ unit: 'binary', minLength, maxLength }).map((any) => any.replaceAll('\0', '0'));
  // On one line, as people read it.
  if (name === 'description') return text.map((any) => any.replaceAll(/[\p{C}\p{Z}]/gu, '.'));
  return name === 'invoice' ? fc.oneof(fc.constant(`{{${OPEN_INVOICE}}}`), text) : text;
}

/** Generates the same as a JSON value. */
export function validJson(name: string, schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.type === 'object' && schema.properties !== undefined) {
    const members = Object.entries(schema.properties).map(([each, part]) =>
      validJson(each, part).map((json) => `${JSON.stringify(each)}:${json}`),
    );
    return fc.tuple(...members).map((pairs) => `{${pairs.join()}}`);
  }
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

/** In a century that the service accepts. */
const dateTime = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2099-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString());

export type Judge = (value: unknown) => string | null;

/** Creates a judge of values by a schema, in which no unnamed member is allowed. It returns what is wrong, or `null`. */
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

/** Returns the schema with `additionalProperties: false` wherever properties are named. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return Object.hasOwn(copy, 'properties') ? { ...copy, additionalProperties: false } : copy;
}
