import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../domain/errors.ts';
import { Type } from '../runtime/type.ts';
import { readJsonObject } from '../web/json-body.ts';
import { type FieldError, Problem } from '../web/problem.ts';
import type { ApiDeps } from './api-deps.ts';
import { guarded } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import { readQuery, wrongValue } from './read-query.ts';

/** What only a sandbox can do, so that tests of a shop need no shell. Each throws an AppError that says what is wrong. */
export type SandboxControls = {
  scenarios: readonly string[];
  /** Pays an invoice (its id, its checkout URL, or an externalId of the demo project) in one of the ways that people pay. */
  pay(invoice: string, scenario: string): Promise<object>;
  /** Brings the deadlines of all invoices that wait forward. */
  advance(seconds: number): Promise<object>;
};

const MAX_SECONDS = 365 * 86_400;

/** `POST /sandbox/pay` and `POST /sandbox/advance`, only where a sandbox runs. */
export function registerSandbox(app: FastifyInstance, deps: ApiDeps, controls: SandboxControls): void {
  app.post('/sandbox/pay', guarded(deps, 'create', paySchema(controls.scenarios)), async (request) => {
    const { fields, errors } = readFields(request, ['invoice', 'scenario']);
    const { invoice, scenario = 'exact' } = fields;
    if (typeof invoice !== 'string') {
      errors.push(wrongValue('invoice', 'must be an invoiceId, a checkoutUrl or an externalId of the demo project'));
    }
    const known = controls.scenarios.find((name) => name === scenario);
    if (known === undefined) errors.push(wrongValue('scenario', `must be one of ${controls.scenarios.join(', ')}`));
    if (typeof invoice !== 'string' || known === undefined || errors.length > 0) throw invalid(errors);
    return controls.pay(invoice, known).catch(refuse);
  });
  app.post('/sandbox/advance', guarded(deps, 'create', ADVANCE_SCHEMA), async (request) => {
    const { fields, errors } = readFields(request, ['seconds']);
    const { seconds } = fields;
    const isRight = typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_SECONDS;
    if (!isRight) {
      errors.push(wrongValue('seconds', `must be a whole number, 1 to ${MAX_SECONDS}, such as 1800`));
    }
    if (!isRight || errors.length > 0) throw invalid(errors);
    return controls.advance(seconds).catch(refuse);
  });
}

function readFields(request: FastifyRequest, known: string[]) {
  readQuery(request, []);
  const read = readJsonObject(request.body instanceof Uint8Array ? request.body : new Uint8Array());
  if (read.kind === 'invalid-json') throw new Problem('INVALID_JSON', read.detail);
  if (read.kind === 'not-an-object') throw invalid([{ field: '', code: 'WRONG_TYPE', message: read.detail }]);
  const errors = [
    ...read.duplicateKeys.map((field) => wrongValue(field.slice(0, 60), 'occurs more than once')),
    ...Object.keys(read.value)
      .filter((field) => !known.includes(field))
      .map((field) => ({
        field: field.slice(0, 60),
        code: 'UNKNOWN_FIELD',
        message: `is not known; use one of: ${known.join(', ')}`,
      })),
  ];
  return { fields: read.value, errors };
}

function refuse(error: unknown): never {
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'NOT_FOUND') throw new Problem('INVOICE_NOT_FOUND', error.message);
  const asked = ['INVALID_ARGUMENT', 'CONFLICT', 'SANDBOX_REFUSED'];
  throw asked.includes(error.code) ? new Problem('INVALID_REQUEST', error.message) : error;
}

function invalid(errors: FieldError[]): Problem {
  const detail = errors.map(({ field, message }) => `${field} ${message}`).join('; ');
  return new Problem('INVALID_REQUEST', `The request is not valid: ${detail.slice(0, 500)}.`, {
    extensions: { errors: errors.slice(0, 50) },
  });
}

const refusals = problemResponses(400, 401, 403, 404, 413, 415, 429, 500, 503);

function paySchema(scenarios: readonly string[]) {
  return {
    operationId: 'sandboxPay',
    tags: ['sandbox'],
    summary: 'Pay an invoice, correctly or with a typical mistake',
    body: Type.Object({
      invoice: Type.String({
        description: 'An invoiceId, a checkoutUrl, or an externalId of the demo project',
        examples: ['order-1001'],
      }),
      scenario: Type.Optional(Type.Union(scenarios.map((name) => Type.Literal(name)))),
    }),
    response: {
      200: Type.Object({
        scenario: Type.String(),
        invoices: Type.Array(Type.String()),
        sent: Type.Array(
          Type.Object({ txId: Type.String(), to: Type.String(), amount: Type.String(), contract: Type.String() }),
        ),
        outcome: Type.String({ description: 'What was sent, and the expected result' }),
      }),
      ...refusals,
    },
  };
}

const ADVANCE_SCHEMA = {
  operationId: 'sandboxAdvance',
  tags: ['sandbox'],
  summary: 'Bring forward the deadlines of all waiting invoices',
  body: Type.Object({ seconds: Type.Integer({ minimum: 1, maximum: MAX_SECONDS, examples: [1800] }) }),
  response: {
    200: Type.Object({ invoices: Type.Integer({ description: 'How many invoices were waiting' }) }),
    ...refusals,
  },
};
