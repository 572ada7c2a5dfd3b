import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../../core/domain/errors.ts';
import { encodeId } from '../../core/domain/ids.ts';
import { type Static, Type } from '../../core/runtime/type.ts';
import { FieldError as InputError } from '../operator/input/problems.ts';
import { singleHeader } from '../web/headers.ts';
import { readJsonObject } from '../web/json-body.ts';
import { type FieldError, Problem, unavailable } from '../web/problem.ts';
import type { ApiDeps } from './api-deps.ts';
import { callerOf, guarded } from './guard.ts';
import { problemResponses } from './problem-responses.ts';
import { invalidQuery, readQuery, unknownField, wrongValue } from './read-query.ts';

/** A request's key, and the key's project (UUID). */
type SandboxCaller = { projectId: string; apiKey: string };

/**
 * Controls that exist only in a sandbox, so that a shop's tests don't need a shell. They act on the caller's own project so that tests
 * which share a sandbox don't affect each other. The controls throw an `AppError` with the reason.
 */
export type SandboxControls = {
  scenarios: readonly string[];
  /** Pays an invoice in the caller's project (given by id, checkout URL or externalId) in one of the ways in which people pay. */
  pay(caller: SandboxCaller, invoice: string, scenario: string): Promise<object>;
  /** Brings the deadlines of the project's waiting invoices closer. */
  advance(caller: SandboxCaller, seconds: number): Promise<object>;
  createProject(wanted: { name: string; webhookUrl: string | null }): Promise<FreshProject>;
  endProject(caller: SandboxCaller): Promise<void>;
};

const MAX_SECONDS = 365 * 86_400;
/** The longest way to refer to an invoice is its checkout URL. */
const MAX_NAME = 2048;

/** Registers `/sandbox/pay`, `/sandbox/advance` and `/sandbox/projects`, only in a sandbox. */
export function registerSandbox(app: FastifyInstance, deps: ApiDeps, controls: SandboxControls): void {
  const { scenarios } = controls;
  app.post('/sandbox/pay', guarded(deps, 'create', paySchema(scenarios)), async (request) => {
    const { fields, errors } = readFields(request, ['invoice', 'scenario']);
    const { invoice, scenario = 'exact' } = fields;
    const isNamed = typeof invoice === 'string' && invoice !== '' && invoice.length <= MAX_NAME;
    if (!isNamed) {
      const bound = `of your project, 1 to ${MAX_NAME} characters, such as "order-1001"`;
      errors.push(wrongValue('invoice', `must be an invoiceId, a checkoutUrl or an externalId ${bound}`));
    }
    const known = scenarios.find((name) => name === scenario);
    if (known === undefined) errors.push(wrongValue('scenario', `must be one of ${scenarios.join(', ')}`));
    if (!isNamed || known === undefined || errors.length > 0) throw invalid(errors);
    return controls.pay(sandboxCaller(request), invoice, known).catch(refuse);
  });
  app.post('/sandbox/advance', guarded(deps, 'create', ADVANCE_SCHEMA), async (request) => {
    const { fields, errors } = readFields(request, ['seconds']);
    const { seconds } = fields;
    const isRight = typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_SECONDS;
    if (!isRight) {
      errors.push(wrongValue('seconds', `must be a whole number, 1 to ${MAX_SECONDS}, such as 1800`));
    }
    if (!isRight || errors.length > 0) throw invalid(errors);
    return controls.advance(sandboxCaller(request), seconds).catch(refuse);
  });
  app.post('/sandbox/projects', guarded(deps, 'create', CREATE_PROJECT_SCHEMA), async (request, reply) => {
    const { fields, errors } = readFields(request, ['name', 'webhookUrl']);
    const { name = 'Test', webhookUrl = null } = fields;
    if (typeof name !== 'string')
      errors.push(wrongValue('name', 'must be text of 1 to 100 characters, such as "Test"'));
    if (webhookUrl !== null && typeof webhookUrl !== 'string') {
      errors.push(wrongValue('webhookUrl', 'must be a URL, such as "http://127.0.0.1:3000/hook"'));
    }
    if (typeof name !== 'string' || (webhookUrl !== null && typeof webhookUrl !== 'string') || errors.length > 0) {
      throw invalid(errors);
    }
    reply.code(201);
    return controls.createProject({ name, webhookUrl }).catch(refuse);
  });
  app.delete('/sandbox/projects', guarded(deps, 'create', END_PROJECT_SCHEMA), async (request) => {
    readQuery(request, []);
    await controls.endProject(sandboxCaller(request)).catch(refuse);
    const { keyId, projectId } = callerOf(request);
    deps.authenticator.forget(keyId);
    return { projectId: encodeId('prj', projectId) };
  });
}

function sandboxCaller(request: FastifyRequest): SandboxCaller {
  return { projectId: callerOf(request).projectId, apiKey: singleHeader(request, 'x-api-key') ?? '' };
}

function readFields(request: FastifyRequest, known: string[]) {
  readQuery(request, []);
  const { body } = request;
  // If there's no body, the field errors say what is missing.
  const read = readJsonObject(body instanceof Uint8Array && body.length > 0 ? body : Buffer.from('{}'));
  if (read.kind === 'invalid-json') throw new Problem('INVALID_JSON', read.detail);
  if (read.kind === 'not-an-object') throw invalid([{ field: '', code: 'WRONG_TYPE', message: read.detail }]);
  const errors = [
    ...read.duplicateKeys.map((field) => wrongValue(field.slice(0, 60), 'occurs more than once')),
    ...Object.keys(read.value)
      .filter((field) => !known.includes(field))
      .map((field) => unknownField(field, known)),
  ];
  return { fields: read.value, errors };
}

function refuse(error: unknown): never {
  if (!(error instanceof AppError)) throw error;
  if (error instanceof InputError) throw invalid([wrongValue(error.field, String(error.reason))]);
  if (error.code === 'SANDBOX_NOT_RUNNING') throw unavailable('the sandbox is still starting');
  if (error.code === 'NOT_FOUND') throw new Problem('INVOICE_NOT_FOUND', error.message);
  const asked = ['INVALID_ARGUMENT', 'CONFLICT', 'SANDBOX_REFUSED'];
  throw asked.includes(error.code) ? new Problem('INVALID_REQUEST', error.message) : error;
}

const invalid = (errors: FieldError[]) => invalidQuery(errors, 'request');

/** For request bodies, because `readFields` refuses unknown members. */
const STRICT = { additionalProperties: false };

const refusals = problemResponses(400, 401, 403, 404, 413, 415, 429, 500, 503);

function paySchema(scenarios: readonly string[]) {
  return {
    operationId: 'sandboxPay',
    tags: ['sandbox'],
    summary: 'Pay an invoice, correctly or with a typical mistake',
    body: Type.Object(
      {
        invoice: Type.String({
          description: "An invoiceId, a checkoutUrl or an externalId from the key's project",
          minLength: 1,
          maxLength: MAX_NAME,
          examples: ['order-1001'],
        }),
        scenario: Type.Optional(Type.Union(scenarios.map((name) => Type.Literal(name)))),
      },
      STRICT,
    ),
    response: {
      200: Type.Object({
        scenario: Type.String(),
        invoices: Type.Array(Type.String()),
        sent: Type.Array(
          Type.Object({ txId: Type.String(), to: Type.String(), amount: Type.String(), contract: Type.String() }),
        ),
        outcome: Type.String({ description: 'The transfers that were sent, and the expected result' }),
      }),
      ...refusals,
    },
  };
}

const ADVANCE_SCHEMA = {
  operationId: 'sandboxAdvance',
  tags: ['sandbox'],
  summary: "Bring forward the deadlines of your project's pending invoices",
  body: Type.Object({ seconds: Type.Integer({ minimum: 1, maximum: MAX_SECONDS, examples: [1800] }) }, STRICT),
  response: {
    200: Type.Object({ invoices: Type.Integer({ description: 'Number of invoices that were waiting' }) }),
    ...refusals,
  },
};

const FreshProjectSchema = Type.Object(
  {
    projectId: Type.String(),
    name: Type.String(),
    apiKey: Type.String({ description: 'A key with every scope. It is shown only once' }),
    endpoint: Type.Union([
      Type.Object({
        endpointId: Type.String(),
        url: Type.String(),
        secret: Type.String({ description: 'Verifies the webhooks. It is shown only once' }),
      }),
      Type.Null(),
    ]),
  },
  { title: 'SandboxProject' },
);
type FreshProject = Static<typeof FreshProjectSchema>;

const CREATE_PROJECT_SCHEMA = {
  operationId: 'createSandboxProject',
  tags: ['sandbox'],
  summary: 'Create a fresh project with its own key for one test',
  body: Type.Object(
    {
      name: Type.Optional(Type.String({ minLength: 1, maxLength: 100, default: 'Test', examples: ['checkout test'] })),
      webhookUrl: Type.Optional(
        Type.Union([Type.String({ minLength: 1, maxLength: MAX_NAME }), Type.Null()], {
          examples: ['http://127.0.0.1:3000/hook'],
          description: 'The URL for webhooks. Without a URL, the project has no endpoint.',
        }),
      ),
    },
    STRICT,
  ),
  response: { 201: FreshProjectSchema, ...refusals },
};

const END_PROJECT_SCHEMA = {
  operationId: 'endSandboxProject',
  tags: ['sandbox'],
  summary: "End the key's project, and revoke its keys",
  response: {
    200: Type.Object({ projectId: Type.String({ description: 'The project that was ended' }) }),
    ...problemResponses(400, 401, 403, 413, 415, 429, 500, 503),
  },
};
