/** The parts of `/openapi.json` that the reference and the Postman collection use. */
export type ApiDocument = {
  info: { title: string; description: string };
  servers: readonly [{ url: string }];
  tags: readonly { name: string; description: string }[];
  paths: Readonly<Record<string, Readonly<Record<string, OperationDetails>>>>;
  /** The keys are event types. */
  webhooks: Readonly<Record<string, { post: { requestBody: Content } }>>;
  components: { schemas: Readonly<Record<string, Schema>> };
};

type Content = { content: { 'application/json': { schema: Schema } } };

type OperationDetails = {
  operationId: string;
  summary: string;
  description?: string;
  tags: readonly string[];
  parameters?: readonly Parameter[];
  /** The required scope. This list is empty or absent if no key is needed. */
  security?: readonly { apiKey: readonly string[] }[];
  requestBody?: Content;
  /** An error's description is the list of its codes. */
  responses: Readonly<Record<string, { description: string } & Partial<Content>>>;
};

export type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
};

export type Schema = {
  $ref?: string;
  type?: string;
  description?: string | undefined;
  const?: string;
  format?: string;
  examples?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  default?: unknown;
  required?: readonly string[] | undefined;
  /** The members that are required unless a different member is used instead. */
  else?: { required: readonly string[] };
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  anyOf?: readonly Schema[];
  /** The possible values of a string that are known so far. */
  'x-extensible-enum'?: readonly string[];
};

export type Operation = { method: string; path: string; details: OperationDetails };

/** Groups the operations by tag, in document order, without tags that have no operations. */
export function groupOperations({ tags, paths }: ApiDocument) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, details]): Operation => ({ method: method.toUpperCase(), path, details })),
  );
  return tags
    .map((tag) => ({ tag, operations: operations.filter(({ details }) => details.tags.includes(tag.name)) }))
    .filter((group) => group.operations.length > 0);
}

/** Operations with this tag are on a separate page below `/docs`. */
export const APART = 'webhook-endpoints';

/** Returns the link to an operation in the reference. */
export function placeOf({ details }: Operation): string {
  return `/docs${details.tags.includes(APART) ? `/${APART}` : ''}#${details.operationId}`;
}

/** Turns `#/components/schemas/Invoice` into `Invoice`. */
export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** Follows a `$ref` to its schema. */
export function resolveSchema({ components }: ApiDocument, schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (components.schemas[nameOf(schema.$ref)] ?? {});
}
