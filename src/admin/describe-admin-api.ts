import { ACTIONS, type Rule } from '../operator/actions.ts';
import type { Operation } from '../operator/operation.ts';
import type { Schema } from '../web/check-input.ts';
import { REFUSAL_STATUSES } from './refusals.ts';

const PROBLEM = { $ref: '#/components/schemas/Problem' };
/** What only a request can be refused for: its key, its length, its content type, its number. */
const REQUEST_STATUSES = [401, 413, 415, 429, 500];

/** The OpenAPI document (3.1) of the admin API, made of what its routes are made of. */
export function describeAdminApi(operations: readonly Operation[], url: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    const path = `/admin/v1${operation.path.replace(/:(\w+)/g, '{$1}')}`;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describeOperation(operation) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Quittance, admin API',
      version: '1',
      description: 'What operators do. What it can do, "quittance --server" can do with the same keys.',
    },
    servers: [{ url }],
    paths,
    components: {
      securitySchemes: { adminKey: { type: 'http', scheme: 'bearer', bearerFormat: 'qa_…' } },
      schemas: { Problem: PROBLEM_SCHEMA },
    },
  };
}

function describeOperation({ action, summary, method, path, input, output }: Operation): object {
  const { properties = {}, required = [] } = input as unknown as Schema;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const others = Object.keys(properties).filter((name) => !inPath.includes(name));
  const { role, wide }: Rule = ACTIONS[action];
  const scope = wide === true ? ' for all projects' : '';
  const content = {
    ...{ type: 'object', required: required.filter((name) => others.includes(name)) },
    properties: Object.fromEntries(others.map((name) => [name, properties[name]])),
    additionalProperties: false,
  };
  return {
    ...{ operationId: action, summary, description: `Takes the role ${role}${scope}.`, security: [{ adminKey: [] }] },
    parameters: [
      ...inPath.map((name) => ({
        name,
        in: 'path',
        required: true,
        ...describeInPath(properties[name], required, name),
      })),
      ...(method === 'GET'
        ? others.map((name) => ({ name, in: 'query', required: required.includes(name), schema: properties[name] }))
        : []),
    ],
    ...(method === 'GET'
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: content } } } }),
    responses: {
      200: { description: 'Done', content: { 'application/json': { schema: output } } },
      ...Object.fromEntries(
        [...REFUSAL_STATUSES, ...REQUEST_STATUSES].map((status) => [
          status,
          { description: DESCRIPTIONS[status], content: { 'application/problem+json': { schema: PROBLEM } } },
        ]),
      ),
    },
  };
}

function describeInPath(schema: Schema | undefined, required: readonly string[], name: string): object {
  return required.includes(name) ? { schema } : { schema, description: '"-" where it is left out' };
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Something is wrong with the input',
  401: 'The key is not accepted',
  403: 'The role of the key, or the projects that it may see, are not enough',
  404: 'There is no such thing, or not for this key',
  409: 'It cannot be done as things stand',
  413: 'The body is too large',
  415: 'The body is no JSON',
  429: 'Too many requests',
  500: 'Something is wrong on our side',
  503: 'The database, or nodes, do not answer; or more requests came than can be served',
};

const PROBLEM_SCHEMA = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    ...{ type: { type: 'string' }, title: { type: 'string' }, status: { type: 'integer' }, code: { type: 'string' } },
    ...{ detail: { type: 'string' }, requestId: { type: 'string' } },
    errors: { type: 'array', items: { type: 'object' } },
  },
};
