import { PROBLEMS, type ProblemCode } from '../web/problem.ts';
import { ProblemSchema } from './schemas.ts';

/** On every route its status also belongs to another code. */
const OF_CREATION: ProblemCode = 'TOO_MANY_UNPAID';

/** The error answers of a route for its schema, each with the codes it can carry. */
export function problemResponses(...statuses: number[]): Record<number, object> {
  return describe(statuses, (code) => code !== OF_CREATION);
}

/** The error answers of the route that creates invoices. */
export function creationResponses(...statuses: number[]): Record<number, object> {
  return describe(statuses, () => true);
}

function describe(statuses: number[], canCarry: (code: string) => boolean): Record<number, object> {
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = Object.entries(PROBLEMS).flatMap(([code, problem]) =>
        problem.status === status && canCarry(code) ? [code] : [],
      );
      return [
        status,
        { description: codes.join(', '), content: { 'application/problem+json': { schema: ProblemSchema } } },
      ];
    }),
  );
}
