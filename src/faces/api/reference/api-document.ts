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

/** Turns `#/components/schemas/Invoice` into `Invoice`. */
export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** Follows a `$ref` to its schema. */
export function resolveSchema({ components }: ApiDocument, schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (components.schemas[nameOf(schema.$ref)] ?? {});
}
