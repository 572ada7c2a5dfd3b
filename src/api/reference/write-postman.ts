import { type ApiDocument, groupOperations, type Operation } from './api-document.ts';
import { API_KEY, exampleRequest } from './example-request.ts';

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** A collection (v2.1) of every operation, ready to send once its variable `QUITTANCE_API_KEY` is set. */
export function writePostman(document: ApiDocument): string {
  const { info, servers } = document;
  const folders = groupOperations(document).map(({ tag, operations }) => ({
    name: tag.name,
    description: tag.description,
    item: operations.map((operation) => writeItem(document, operation)),
  }));
  return JSON.stringify({
    info: { name: `${info.title} API`, description: info.description, schema: SCHEMA },
    variable: [
      { key: 'QUITTANCE_URL', value: servers[0].url, type: 'string' },
      { key: API_KEY.variable, value: '', type: 'string' },
    ],
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: 'X-Api-Key', type: 'string' },
        { key: 'value', value: `{{${API_KEY.variable}}}`, type: 'string' },
        { key: 'in', value: 'header', type: 'string' },
      ],
    },
    item: folders,
  });
}

function writeItem(document: ApiDocument, operation: Operation) {
  const { summary, description = summary, parameters = [] } = operation.details;
  const { method, url, headers, body } = exampleRequest(document, operation);
  const of = (place: string) =>
    parameters
      .filter((parameter) => parameter.in === place)
      // Postman would send what has no value empty.
      .map(({ name, example, description: meaning }) =>
        example === undefined
          ? { key: name, value: '', description: meaning, disabled: true }
          : { key: name, value: String(example), description: meaning },
      );
  // Postman writes `:invoiceId` for `{invoiceId}`.
  const path = operation.path
    .slice(1)
    .replaceAll(/\{(\w+)\}/g, ':$1')
    .split('/');
  return {
    name: summary,
    request: {
      method,
      description,
      // The key is the business of `auth`.
      header: headers.flatMap(([key, value]) => (typeof value === 'string' ? [{ key, value }] : [])),
      url: {
        raw: `{{QUITTANCE_URL}}/${path.join('/')}${new URL(url).search}`,
        ...{ host: ['{{QUITTANCE_URL}}'], path, query: of('query'), variable: of('path') },
      },
      ...(body === null ? {} : { body: { mode: 'raw', raw: body, options: { raw: { language: 'json' } } } }),
    },
    response: [],
  };
}
