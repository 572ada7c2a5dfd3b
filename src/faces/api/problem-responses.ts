import { PROBLEMS, type ProblemCode } from '../web/problem.ts';
import { ProblemSchema } from './schemas.ts';

/** These codes are listed only for their own routes, because their status means a different code on all other routes. */
const OF_CREATION: readonly ProblemCode[] = ['TOO_MANY_UNPAID', 'RATE_UNAVAILABLE'];
const OF_ENDPOINTS: readonly ProblemCode[] = ['ENDPOINT_NOT_FOUND', 'ENDPOINT_CONFLICT'];

const CODES = Object.keys(PROBLEMS) as ProblemCode[];

/** Returns the error responses for a route's schema, each with its possible codes. */
export function problemResponses(...statuses: number[]): Record<number, object> {
  return describe(statuses, (code) => ![...OF_CREATION, ...OF_ENDPOINTS].includes(code));
}

/** Returns the error responses for the route that creates invoices. */
export function creationResponses(...statuses: number[]): Record<number, object> {
  return describe(statuses, (code) => !OF_ENDPOINTS.includes(code));
}

/** Returns the error responses for a route that manages webhook endpoints, including those that all such routes have. */
export function endpointResponses(...statuses: number[]): Record<number, object> {
  const all = [400, 401, 403, 429, 500, 503, ...statuses];
  return describe(
    all,
    (code) =>
      !OF_CREATION.includes(code) &&
      (!/^(404|409)$/.test(String(PROBLEMS[code].status)) || OF_ENDPOINTS.includes(code)),
  );
}

function describe(statuses: number[], canCarry: (code: ProblemCode) => boolean): Record<number, object> {
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = CODES.filter((code) => PROBLEMS[code].status === status && canCarry(code));
      return [
        status,
        { description: codes.join(', '), content: { 'application/problem+json': { schema: ProblemSchema } } },
      ];
    }),
  );
}
