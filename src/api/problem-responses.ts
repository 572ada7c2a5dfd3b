import { PROBLEMS } from '../web/problem.ts';
import { ProblemSchema } from './schemas.ts';

/** The error answers of a route for its schema, each with the codes it can carry. */
export function problemResponses(...statuses: number[]): Record<number, object> {
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = Object.entries(PROBLEMS).flatMap(([code, problem]) => (problem.status === status ? [code] : []));
      return [
        status,
        { description: codes.join(', '), content: { 'application/problem+json': { schema: ProblemSchema } } },
      ];
    }),
  );
}
