import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import Fastify from 'fastify';
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript';
import type { ApiDeps } from '../../src/api/api-deps.ts';
import { registerEvents } from '../../src/api/events.ts';
import { registerInvoices } from '../../src/api/invoices.ts';
import { registerOpenApi } from '../../src/api/openapi.ts';
import { unixMs } from '../../src/domain/time.ts';
import { readClients } from '../../src/web/client-address.ts';

const TYPES_FILE = resolve(import.meta.dirname, '../../sdk/src/openapi.ts');

const HEADING =
  '// Generated from /openapi.json by `npm run sdk:types`. Do not edit: a test compares it with the API.\n\n';

/** The SDK's types as the API's own document has them now. Needs neither network nor database. */
export async function renderTypes(): Promise<string> {
  const app = Fastify();
  readClients(app, () => false);
  await registerOpenApi(app, { publicUrl: () => 'https://pay.example.com', now: () => unixMs(0) });
  // Routes are registered to be described; none is called, so nothing of this is used.
  const unused = {} as ApiDeps;
  registerInvoices(app, unused);
  registerEvents(app, unused);
  const { body } = await app.inject('/openapi.json');
  await app.close();
  return HEADING + astToString(await openapiTypescript(nameSchemas(JSON.parse(body)), { alphabetize: true }));
}

/** The types as they stand in the SDK. */
export function readTypes(): Promise<string> {
  return readFile(TYPES_FILE, 'utf8');
}

/** The document repeats each schema wherever it is used; those with a title become one named type each. */
function nameSchemas(document: OpenAPI3): OpenAPI3 {
  const schemas: Record<string, object> = {};
  const name = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(name);
    if (typeof part !== 'object' || part === null) return part;
    const named = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, name(value)]));
    const title = named['title'];
    if (typeof title !== 'string' || !('type' in named)) return named;
    schemas[title] = named;
    return { $ref: `#/components/schemas/${title}` };
  };
  const named = name(document) as OpenAPI3;
  return { ...named, components: { ...named.components, schemas: schemas as never } };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await writeFile(TYPES_FILE, await renderTypes());
