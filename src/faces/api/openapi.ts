import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { UnixMs } from '../../core/domain/time.ts';
import { limitNetworks, type RateLimit } from '../web/rate-limit.ts';
import { EVENT_SCHEMAS } from './event-schemas.ts';
import type { ApiDocument } from './reference/api-document.ts';
import { registerReference } from './reference/register-reference.ts';

/** A limit per client network for the document and the reference pages. A program reads them once, a person a few times. */
const LIMIT: RateLimit = { perSecond: 5, burst: 50 };

type OpenApiDeps = { publicUrl(): string; now(): UnixMs; isSandbox: boolean };

/** Publishes `/openapi.json` (3.1, with `webhooks`) and the reference pages. Call it before registering the routes to describe. */
export async function registerOpenApi(app: FastifyInstance, { publicUrl, now, isSandbox }: OpenApiDeps): Promise<void> {
  await app.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Quittance',
        version: '1',
        description:
          'Invoices for USDT on TRON. Fulfil an order only after reading status PAID and your own externalId.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      components: {
        securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' } },
      },
      tags: [
        { name: 'invoices', description: 'Create and read invoices' },
        { name: 'events', description: 'Read events, in order' },
        { name: 'transfers', description: 'List unmatched transfers' },
        { name: 'webhook-endpoints', description: 'Manage webhook endpoints' },
        { name: 'webhooks', description: 'Webhooks that your server receives' },
        ...(isSandbox ? [{ name: 'sandbox', description: 'Pay and expire invoices without a shell' }] : []),
      ],
      webhooks: describeWebhooks(),
    },
  });
  const limit = limitNetworks(LIMIT, now);
  // The public URL is known only once the server listens.
  let built: Built | null = null;
  const current = () => {
    if (built?.url !== publicUrl()) built = build(app, publicUrl());
    return built;
  };
  app.get('/openapi.json', { schema: { hide: true } }, async (request, reply) => {
    limit(request);
    const { text, tag } = current();
    reply.headers({ ETag: tag, 'Cache-Control': 'no-cache' });
    if (isNamed(tag, request.headers['if-none-match'])) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(text);
  });
  registerReference(app, { read: () => current().document, limit: limitNetworks(LIMIT, now) });
}

type Built = { url: string; document: ApiDocument; text: string; tag: string };

function build(app: FastifyInstance, url: string): Built {
  const { info, ...described } = app.swagger();
  const document = publishDocument({
    ...{ ...described, info: { ...info, contact: { name: 'The operator of this service', url } } },
    externalDocs: { description: 'The reference, with an example for each operation', url: `${url}/docs` },
    servers: [{ url, description: 'This service' }],
  }) as ApiDocument;
  const text = JSON.stringify(document);
  return { url, document, text, tag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}

/** Whether a tag matches `If-None-Match: W/"abc", "def"`, or `*` (RFC 9110, 13.1.2). Proxies that compress make a tag weak. */
function isNamed(tag: string, header: string | undefined): boolean {
  const named = (header ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''));
  return named.includes(tag) || named.includes('*');
}

function describeWebhooks(): Record<string, object> {
  return mapValues(EVENT_SCHEMAS as Record<string, object>, (schema, type) => {
    const { title, description } = schema as { title?: string; description?: string };
    const operation = {
      // This operation has a separate name, so that generators don't turn it into a client method.
      operationId: `on${title}`,
      tags: ['webhooks'],
      security: [],
      summary: type,
      description,
      parameters: WEBHOOK_HEADERS,
      requestBody: { required: true, content: { 'application/json': { schema: openSchema(schema) } } },
      responses: {
        '2XX': {
          description: 'Received. Quittance retries after any other status, or if no response arrives within 15 s.',
        },
      },
    };
    return { post: operation };
  });
}

const WEBHOOK_HEADERS = [
  webhookHeader('webhook-id', "The event's id, the same on every attempt; deduplicate by it", {
    type: 'string',
  }),
  webhookHeader(
    'webhook-timestamp',
    'The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock',
    { type: 'string', pattern: '^[0-9]{1,12}$' },
  ),
  webhookHeader(
    'webhook-signature',
    '"v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough',
    { type: 'string' },
  ),
  webhookHeader('webhook-protocol', 'The version of this protocol', { type: 'string', const: 'v2' }),
];

function webhookHeader(name: string, description: string, schema: object): object {
  return { name, in: 'header', required: true, description, schema };
}

/** The parts of the published document that aren't in the route descriptions. */
type Parts = Record<string, unknown>;
type Parameter = Parts & { schema: { type?: string } };
type RequestBody = {
  required?: boolean;
  content: Record<string, { schema: { required?: readonly string[]; minProperties?: number } }>;
};
type Operation = Parts & {
  operationId?: string;
  parameters?: Parameter[];
  requestBody?: RequestBody;
  responses: Record<string, Parts>;
};
type Paths = Record<string, Record<string, Operation>>;

/**
 * Prepares the document for client generators: each schema with a title appears once under its name, each response has its headers, and
 * each operation has a tag.
 */
function publishDocument(document: Parts): Parts {
  const schemas: Record<string, unknown> = {};
  const paths = mapValues(document['paths'] as Paths, (operations) => mapValues(operations, withHeaders));
  const named = nameSchemas({ ...document, paths }, schemas) as Parts;
  const components = { ...(named['components'] as Parts), schemas, headers: HEADERS };
  return { ...named, components };
}

/** Moves each schema with a title into `schemas` and leaves a reference. Throws if two different schemas have the same title. */
function nameSchemas(part: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(part)) return part.map((each) => nameSchemas(each, schemas));
  if (typeof part !== 'object' || part === null) return part;
  const named: Parts = mapValues(part as Parts, (value) => nameSchemas(value, schemas));
  const title = named['title'];
  if (typeof title !== 'string' || !('type' in named || 'oneOf' in named)) return named;
  if (!isDeepStrictEqual(schemas[title] ?? named, named)) throw new Error(`two schemas are called ${title}`);
  schemas[title] = named;
  return { $ref: `#/components/schemas/${title}` };
}

function withHeaders(operation: Operation): Operation {
  const { parameters, requestBody } = operation;
  return {
    ...operation,
    ...(requestBody && { requestBody: { ...requestBody, required: needsBody(requestBody) } }),
    ...(parameters && { parameters: parameters.map(withCommas) }),
    responses: mapValues(operation.responses, (response, status) => {
      return { ...open(response), headers: headersOf(operation.operationId, status) };
    }),
  };
}

function open({ content, ...response }: Parts): Parts {
  if (content === undefined) return response;
  const opened = mapValues(content as Record<string, Parts>, (body) => ({
    ...body,
    schema: openSchema(body['schema']),
  }));
  return { ...response, content: opened };
}

/** Whether a body is required; it isn't if it has no required members. */
function needsBody({ content }: RequestBody): boolean {
  return Object.values(content).some(
    ({ schema: { required = [], minProperties = 0 } }) => required.length + minProperties > 0,
  );
}

/** A list is sent as one comma-separated parameter, not as a repeated one. */
function withCommas(parameter: Parameter): Parameter {
  return parameter.schema.type === 'array' ? { ...parameter, explode: false } : parameter;
}

function headersOf(operationId: string | undefined, status: string): Parts {
  const names: (keyof typeof HEADERS)[] = ['X-Request-Id'];
  if (status === '401') names.push('WWW-Authenticate');
  if (status === '201') names.push('Location');
  if (operationId === 'createInvoice' && status === '201') names.push('Idempotent-Replayed');
  if (status === '429') names.push('RateLimit', 'RateLimit-Policy');
  if (status === '429' || status === '503') names.push('Retry-After');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const text = { type: 'string' } as const;

const HEADERS = {
  'X-Request-Id': {
    description: "Identifies this response in the service's log; give it to the operator",
    schema: text,
  },
  'WWW-Authenticate': { description: 'The header that must carry the key', schema: text },
  Location: { description: 'The path of the created resource', schema: text },
  'Idempotent-Replayed': {
    description: 'The invoice was created by an earlier request with this Idempotency-Key',
    schema: { type: 'string', enum: ['true'] },
  },
  'Retry-After': { description: 'Seconds', schema: { type: 'integer', minimum: 1 } },
  RateLimit: { description: 'The rate limit that was reached (draft-ietf-httpapi-ratelimit-headers)', schema: text },
  'RateLimit-Policy': { description: 'That limit', schema: text },
} as const;

/**
 * Returns the schema of data that clients receive, so that clients generated today can read what later releases add: objects may have
 * further members, and enums are strings whose known values are in `x-extensible-enum`. Data that clients send keeps its strict schemas.
 */
function openSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(openSchema);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf, enum: values, ...rest } = schema as Parts;
  const known = constantsOf(anyOf) ?? (Array.isArray(values) ? values : null);
  if (known !== null && known.length > 0) return { ...rest, type: 'string', 'x-extensible-enum': known };
  const opened = mapValues(schema as Parts, (part, key) =>
    key === 'properties' ? mapValues(part as Parts, openSchema) : PARTS.has(key) ? openSchema(part) : part,
  );
  const isObject = 'properties' in schema && (rest['additionalProperties'] ?? false) === false;
  return isObject ? { ...opened, additionalProperties: true } : opened;
}

/** The members of a schema that contain other schemas. */
const PARTS = new Set(['anyOf', 'allOf', 'oneOf', 'items']);

/** Returns the strings in a union of constants, such as the statuses of an invoice. */
function constantsOf(anyOf: unknown): string[] | null {
  if (!Array.isArray(anyOf)) return null;
  const constants = anyOf.flatMap(({ const: value }: { const?: unknown }) =>
    typeof value === 'string' ? [value] : [],
  );
  return constants.length === anyOf.length ? constants : null;
}

function mapValues<Value, Mapped>(
  object: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}
