import type { FastifyRequest } from 'fastify';
import { decodeId, encodeId, NIL_UUID } from '../../core/domain/ids.ts';
import { Type } from '../../core/runtime/type.ts';
import { type FieldError, Problem } from '../web/problem.ts';

type Query = Record<string, string | undefined>;

/**
 * Returns the query parameters, each of which may occur only once. Unknown parameters are refused so that a typo isn't silently ignored.
 */
export function readQuery(request: FastifyRequest, known: string[]): Query {
  const { query, errors } = inspectQuery(request, known);
  if (errors.length > 0) throw invalidQuery(errors);
  return query;
}

/** Like `readQuery`, for callers that report wrong values together with unknown names. */
export function inspectQuery(request: FastifyRequest, known: string[]): { query: Query; errors: FieldError[] } {
  const given = request.query as Record<string, string | string[] | undefined>;
  const errors = Object.entries(given).flatMap(([field, value]) => {
    if (!known.includes(field)) return [unknownField(field, known)];
    return Array.isArray(value) ? [{ field, code: 'DUPLICATE_FIELD', message: 'occurs more than once' }] : [];
  });
  const query = Object.fromEntries(
    known.map((field) => [field, typeof given[field] === 'string' ? given[field] : undefined]),
  );
  return { query, errors };
}

export function unknownField(field: string, known: readonly string[]): FieldError {
  const message = `is not a known field; use one of: ${known.join(', ') || 'nothing'}`;
  return { field: field.slice(0, 60), code: 'UNKNOWN_FIELD', message };
}

/** Page sizes. An event has less than 20 KB, so a response has less than 2 MB. */
export const [DEFAULT_LIMIT, MAX_LIMIT] = [50, 100];

/** Describes the parameter for the page size. */
export const pageLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, examples: [MAX_LIMIT] }),
);

/** Describes the parameter for the id after which a page starts. */
export function pageAfter(prefix: 'inv' | 'evt' | 'trf', description = 'The `next` value from the previous page') {
  return Type.Optional(Type.String({ pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`, description }));
}

const LIMIT = /^([1-9][0-9]?|100)$/;

/** Reads the page size: 1 to 100, default 50. Adds problems to `errors`. */
export function readLimit(limit: string | undefined, errors: FieldError[]): number {
  if (limit === undefined) return DEFAULT_LIMIT;
  if (LIMIT.test(limit)) return Number(limit);
  errors.push(wrongValue('limit', `must be a whole number, 1 to ${MAX_LIMIT}, such as ${DEFAULT_LIMIT}`));
  return DEFAULT_LIMIT;
}

/** Reads the UUID after which a page starts. Adds problems to `errors`. */
export function readAfter(after: string | undefined, prefix: 'inv' | 'trf', errors: FieldError[]): string {
  if (after === undefined) return NIL_UUID;
  const id = decodeId(prefix, after);
  if (id !== null) return id;
  const example = encodeId(prefix, EXAMPLE);
  errors.push(wrongValue('after', `must be the "next" value from the previous page, such as ${example}`));
  return NIL_UUID;
}

export function wrongValue(field: string, message: string): FieldError {
  return { field, code: 'INVALID_VALUE', message };
}

/** Returns the problem for invalid query parameters or members of a body. In the text, each `message` follows the field's name. */
export function invalidQuery(errors: FieldError[], what: 'query' | 'request' = 'query'): Problem {
  const reported = errors.map(({ field, message }) => `${field} ${message}`).join('; ');
  return new Problem('INVALID_REQUEST', `The ${what} is not valid: ${reported.slice(0, MAX_DETAIL)}.`, {
    extensions: { errors: errors.slice(0, MAX_ERRORS) },
  });
}

const EXAMPLE = '019c2c9a-7403-4d3f-b0f6-c7d5f4c7d0d1';
/** A query of 16 KiB can hold thousands of parameters. */
const MAX_ERRORS = 50;
const MAX_DETAIL = 500;
