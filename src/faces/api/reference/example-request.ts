import { type ApiDocument, type Operation, resolveSchema, type Schema } from './api-document.ts';

/** The integrator's secret, which examples read from an environment variable. */
export type Secret = { variable: string };

/** A request that is ready to send. `body` is JSON. */
export type ExampleRequest = {
  method: string;
  url: string;
  headers: readonly (readonly [name: string, value: string | Secret])[];
  body: string | null;
};

export const API_KEY: Secret = { variable: 'QUITTANCE_API_KEY' };

/** Returns an operation's request with its required parameters, and with those that have an example in the document. */
export function exampleRequest(document: ApiDocument, { method, path, details }: Operation): ExampleRequest {
  const { parameters = [], security = [], requestBody } = details;
  const given = parameters.flatMap(({ name, in: place, required, example }) => {
    if (required === true && example === undefined) throw new Error(`${details.operationId}: ${name} has no example`);
    return example === undefined ? [] : [{ name, place, value: String(example) }];
  });
  const of = (place: string) => given.filter((each) => each.place === place);
  const filled = of('path').reduce((url, { name, value }) => url.replace(`{${name}}`, encodeURIComponent(value)), path);
  const query = of('query').map(({ name, value }) => `${name}=${encodeURIComponent(value)}`);
  const schema = requestBody?.content['application/json'].schema;
  return {
    method,
    url: `${document.servers[0].url}${filled}${query.length === 0 ? '' : `?${query.join('&')}`}`,
    headers: [
      ...(security.length > 0 ? [['X-Api-Key', API_KEY] as const] : []),
      ...of('header').map(({ name, value }) => [name, value] as const),
      ...(schema === undefined ? [] : [['Content-Type', 'application/json'] as const]),
    ],
    body: schema === undefined ? null : JSON.stringify(exampleOf(document, schema)),
  };
}

/**
 * Returns an example value. For an object, it contains the required members or, if none are required, the members that have an example.
 * Throws if the document has no example.
 */
function exampleOf(document: ApiDocument, schema: Schema): unknown {
  const { type, const: only, examples, required = [], properties = {}, else: usual } = resolveSchema(document, schema);
  const example = examples?.[0] ?? only;
  if (example !== undefined) return example;
  if (type !== 'object') throw new Error(`there is no example of ${JSON.stringify(schema).slice(0, 200)}`);
  const wanted = [...(usual?.required ?? []), ...required];
  const given = wanted.length > 0 ? wanted : Object.keys(properties).filter((name) => properties[name]?.examples);
  return Object.fromEntries(given.map((name) => [name, exampleOf(document, properties[name] ?? {})]));
}
