/** What of `/openapi.json` the reference and the collection are written from. */
export type ApiDocument = {
  info: { title: string; description: string };
  servers: readonly [{ url: string }];
  tags: readonly { name: string; description: string }[];
  paths: Readonly<Record<string, Readonly<Record<string, OperationDetails>>>>;
  /** By the type of event. */
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
  /** Empty, or left out: no key is needed. Else the scope that it needs. */
  security?: readonly { apiKey: readonly string[] }[];
  requestBody?: Content;
  /** Of an error the description is the list of its codes. */
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
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  anyOf?: readonly Schema[];
};

export type Operation = { method: string; path: string; details: OperationDetails };

/** The operations of each tag that has some, in the order of the document. */
export function groupOperations({ tags, paths }: ApiDocument) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, details]): Operation => ({ method: method.toUpperCase(), path, details })),
  );
  return tags
    .map((tag) => ({ tag, operations: operations.filter(({ details }) => details.tags.includes(tag.name)) }))
    .filter((group) => group.operations.length > 0);
}

/** The tag of which the operations have a page of their own, below `/docs`. */
export const APART = 'webhook-endpoints';

/** Where an operation stands in the reference. */
export function placeOf({ details }: Operation): string {
  return `/docs${details.tags.includes(APART) ? `/${APART}` : ''}#${details.operationId}`;
}

/** `#/components/schemas/Invoice` is `Invoice`. */
export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** The schema itself where another one stands for it. */
export function resolveSchema({ components }: ApiDocument, schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (components.schemas[nameOf(schema.$ref)] ?? {});
}
