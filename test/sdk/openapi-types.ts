import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { createDocumentedApi } from '../support/documented-api.ts';
import { closeKnown } from '../support/expand-references.ts';

const TYPES_FILE = resolve(import.meta.dirname, '../../packages/sdk/src/openapi.ts');

const HEADING =
  '// Generated from /openapi.json by `npm run sdk:types`. Do not edit: a test compares it with the API.\n\n';

/**
 * Generates the SDK's types from the API's current document, with the values and events that this release knows. Needs neither network nor
 * database.
 */
export async function renderTypes(): Promise<string> {
  const app = await createDocumentedApi({ isSandbox: false });
  const { body } = await app.inject('/openapi.json');
  await app.close();
  return HEADING + astToString(await openapiTypescript(closeKnown(JSON.parse(body)), { alphabetize: true }));
}

/** Reads the types in the SDK. */
export function readTypes(): Promise<string> {
  return readFile(TYPES_FILE, 'utf8');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await writeFile(TYPES_FILE, await renderTypes());
