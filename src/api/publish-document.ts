import { isDeepStrictEqual } from 'node:util';

/** What a published description of an API holds besides what its routes say of themselves. */

type Parts = Record<string, unknown>;
type Parameter = Parts & { schema: { type?: string } };
type Operation = Parts & { operationId?: string; parameters?: Parameter[]; responses: Record<string, Parts> };
type Paths = Record<string, Record<string, Operation>>;

/**
 * The document as clients are generated from it: each schema with a title once and by its name, each answer with its headers, and a tag
 * for each operation.
 */
export function publishDocument(document: Parts): Parts {
  const schemas: Record<string, unknown> = {};
  const named = nameSchemas({ ...document, paths: describePaths(document['paths'] as Paths) }, schemas) as Parts;
  const components = { ...(named['components'] as Parts), schemas, headers: HEADERS };
  return { ...named, components };
}

/** Puts each schema with a title into `schemas`, and a reference in its place. Throws where two schemas have one title. */
function nameSchemas(part: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(part)) return part.map((each) => nameSchemas(each, schemas));
  if (typeof part !== 'object' || part === null) return part;
  const named = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, nameSchemas(value, schemas)]));
  const title = named['title'];
  if (typeof title !== 'string' || !('type' in named || 'oneOf' in named)) return named;
  if (!isDeepStrictEqual(schemas[title] ?? named, named)) throw new Error(`two schemas are called ${title}`);
  schemas[title] = named;
  return { $ref: `#/components/schemas/${title}` };
}

function describePaths(paths: Paths): Paths {
  return Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(Object.entries(operations).map(([method, operation]) => [method, withHeaders(operation)])),
    ]),
  );
}

function withHeaders(operation: Operation): Operation {
  const responses = Object.entries(operation.responses).map(([status, response]) => [
    status,
    { ...response, headers: headersOf(operation.operationId, status) },
  ]);
  const { parameters } = operation;
  return {
    ...operation,
    ...(parameters && { parameters: parameters.map(withCommas) }),
    responses: Object.fromEntries(responses),
  };
}

/** A list is one parameter, and not one that is repeated. */
function withCommas(parameter: Parameter): Parameter {
  return parameter.schema.type === 'array' ? { ...parameter, explode: false } : parameter;
}

function headersOf(operationId: string | undefined, status: string): Parts {
  const names: (keyof typeof HEADERS)[] = ['X-Request-Id'];
  if (status === '201') names.push('Location');
  if (operationId === 'createInvoice' && status === '201') names.push('Idempotent-Replayed');
  if (status === '429') names.push('RateLimit', 'RateLimit-Policy');
  if (status === '429' || status === '503') names.push('Retry-After');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const text = { type: 'string' } as const;

const HEADERS = {
  'X-Request-Id': { description: 'Names this answer in the log of the service; tell the operator', schema: text },
  Location: { description: 'The path of what was created', schema: text },
  'Idempotent-Replayed': {
    description: 'The invoice was created by an earlier request with this Idempotency-Key',
    schema: { type: 'string', enum: ['true'] },
  },
  'Retry-After': { description: 'Seconds', schema: { type: 'integer', minimum: 1 } },
  RateLimit: { description: 'The limit that was met (draft-ietf-httpapi-ratelimit-headers)', schema: text },
  'RateLimit-Policy': { description: 'That limit', schema: text },
} as const;
