import type { FastifyRequest } from 'fastify';
import { readJsonObject } from './json-body.ts';
import { type FieldError, Problem } from './problem.ts';

/** This is enough for the largest list of addresses that one call accepts. */
export const MAX_INPUT_BYTES = 2 * 1024 * 1024;
/** The placeholder in a path for a member that is left out. */
const LEFT_OUT = '-';

type Given = Pick<FastifyRequest, 'params' | 'query' | 'body'>;

/**
 * Reads an operation's input: the members in its path, and the ones in the query or the body. Each has the type that the schema declares;
 * the operation itself parses the values. Throws the problem.
 */
export function readInput(operation: { method: string; input: object }, request: Given): object {
  const schema = operation.input as Schema;
  const inPath = request.params as Record<string, string>;
  const named = Object.entries(inPath).filter(([name, text]) => text !== LEFT_OUT || isNeeded(schema, name));
  const given = operation.method === 'GET' ? readQuery(schema, request) : readBody(request);
  const twice = Object.keys(given).find((name) => name in inPath);
  if (twice !== undefined)
    throw refuse([{ field: twice, code: 'DUPLICATE_FIELD', message: 'is already in the path: remove it here' }]);
  const input = { ...given, ...Object.fromEntries(named) };
  const problems = typeErrorsOf(schema, input);
  if (problems.length > 0) throw refuse(problems);
  return input;
}

function isNeeded({ required = [] }: Schema, name: string): boolean {
  return required.includes(name);
}

/** Query parameters are texts: a list is a repeated parameter, and a flag is `true` or `false`. */
function readQuery({ properties = {} }: Schema, request: Given): Record<string, unknown> {
  const query = Object.entries(request.query as Record<string, string | string[]>);
  return Object.fromEntries(
    query.map(([name, value]) => {
      const type = properties[name]?.type;
      if (type === 'array') return [name, [value].flat()];
      return [name, type === 'boolean' && (value === 'true' || value === 'false') ? value === 'true' : value];
    }),
  );
}

function readBody({ body }: Given): Record<string, unknown> {
  const read = readJsonObject(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
  if (read.kind === 'invalid-json') throw new Problem('INVALID_JSON', read.detail);
  if (read.kind !== 'ok') throw new Problem('INVALID_REQUEST', read.detail);
  if (read.duplicateKeys.length === 0) return read.value;
  throw refuse(
    read.duplicateKeys.map((field) => ({ field, code: 'DUPLICATE_FIELD', message: 'occurs more than once' })),
  );
}

const MAX_ERRORS = 50;

function refuse(errors: readonly FieldError[]): Problem {
  const shown = errors.slice(0, MAX_ERRORS);
  const detail = shown.map(({ field, message }) => `${field} ${message}`).join('; ');
  return new Problem('INVALID_REQUEST', `The input is not valid: ${detail.slice(0, 500)}.`, {
    extensions: { errors: shown },
  });
}

/** The part of JSON Schema that inputs use. */
export type Schema = {
  type?: string;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  items?: Schema;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
};

/** Returns the type errors in an input. Each `message` follows the field name. */
function typeErrorsOf(schema: Schema, value: unknown, field = ''): FieldError[] {
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
      {
        field: `${before}${name}`.slice(0, 60),
        code: 'UNKNOWN_FIELD',
        message: `is not a known field; use one of: ${known}`,
      },
    ];
  });
  return [...missing, ...others];
}
