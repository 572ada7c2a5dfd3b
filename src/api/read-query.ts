import type { FastifyRequest } from 'fastify';
import { type FieldError, Problem } from '../web/problem.ts';

type Query = Record<string, string | undefined>;

/** The query parameters, each at most once; unknown ones are refused, so that a typo is not silently ignored. */
export function readQuery(request: FastifyRequest, known: string[]): Query {
  const { query, errors } = inspectQuery(request, known);
  if (errors.length > 0) throw invalidQuery(errors);
  return query;
}

/** The same for a caller that reports wrong values together with wrong names. */
export function inspectQuery(request: FastifyRequest, known: string[]): { query: Query; errors: FieldError[] } {
  const given = request.query as Record<string, string | string[] | undefined>;
  const errors = Object.entries(given).flatMap(([field, value]) => {
    if (!known.includes(field)) {
      return [
        {
          field: field.slice(0, 60),
          code: 'UNKNOWN_FIELD',
          message: `is not known; known is: ${known.join(', ') || 'nothing'}`,
        },
      ];
    }
    return Array.isArray(value) ? [{ field, code: 'DUPLICATE_FIELD', message: 'occurs more than once' }] : [];
  });
  const query = Object.fromEntries(
    known.map((field) => [field, typeof given[field] === 'string' ? given[field] : undefined]),
  );
  return { query, errors };
}

/** The answer to query parameters that cannot be used; each `message` goes on after the name of its field. */
export function invalidQuery(errors: FieldError[]): Problem {
  const reported = errors.map(({ field, message }) => `${field} ${message}`).join('; ');
  return new Problem('INVALID_REQUEST', `The query is not valid: ${reported.slice(0, MAX_DETAIL)}.`, {
    extensions: { errors: errors.slice(0, MAX_ERRORS) },
  });
}

/** A query of 16 KiB can hold thousands of parameters. */
const MAX_ERRORS = 50;
const MAX_DETAIL = 500;
