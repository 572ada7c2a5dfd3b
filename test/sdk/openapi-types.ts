import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import Fastify from 'fastify';
import openapiTypescript, { astToString } from 'openapi-typescript';
import type { ApiDeps } from '../../src/api/api-deps.ts';
import { registerEvents } from '../../src/api/events.ts';
import { registerInvoices } from '../../src/api/invoices.ts';
import { registerOpenApi } from '../../src/api/openapi.ts';
import { registerTransfers } from '../../src/api/transfers.ts';
import { unixMs } from '../../src/domain/time.ts';
import { readClients } from '../../src/web/client-address.ts';

const TYPES_FILE = resolve(import.meta.dirname, '../../sdk/src/openapi.ts');

const HEADING =
  '// Generated from /openapi.json by `npm run sdk:types`. Do not edit: a test compares it with the API.\n\n';

/** The SDK's types as the API's own document has them now. Needs neither network nor database. */
export async function renderTypes(): Promise<string> {
  const app = Fastify();
  readClients(app, () => false);
  await registerOpenApi(app, { publicUrl: () => 'https://pay.example.com', now: () => unixMs(0), isSandbox: false });
  // Routes are registered to be described; none is called, so nothing of this is used.
  const unused = {} as ApiDeps;
  registerInvoices(app, unused);
  registerEvents(app, unused);
  registerTransfers(app, unused);
  const { body } = await app.inject('/openapi.json');
  await app.close();
  return HEADING + astToString(await openapiTypescript(JSON.parse(body), { alphabetize: true }));
}

/** The types as they stand in the SDK. */
export function readTypes(): Promise<string> {
  return readFile(TYPES_FILE, 'utf8');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await writeFile(TYPES_FILE, await renderTypes());
