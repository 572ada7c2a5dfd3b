import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createDocumentedApi } from '../support/documented-api.ts';

const RECORDED = resolve(import.meta.dirname, 'openapi-of-the-last-release.json');

type Schema = Record<string, unknown>;
type Side = 'sent' | 'received';

/** Returns the current document, without anything that differs between installations. */
export async function readDocument(): Promise<Schema> {
  const app = await createDocumentedApi({ isSandbox: false });
  const { body } = await app.inject('/openapi.json');
  await app.close();
  return JSON.parse(body);
}

/** Returns the last release's document. */
export async function readRecorded(): Promise<Schema> {
  return JSON.parse(await readFile(RECORDED, 'utf8'));
}

/** Returns the changes that break a client generated from `before`, even one that rejects everything it doesn't know. */
export function findBreaks(before: Schema, after: Schema): string[] {
  const breaks: string[] = [];
  const operations = (document: Schema) =>
    Object.entries(part(document, 'paths')).flatMap(([path, methods]) =>
      Object.entries(methods as Schema).map(
        ([method, operation]) => [`${method} ${path}`, operation as Schema] as const,
      ),
    );
  const now = new Map(operations(after));
  for (const [name, was] of operations(before)) {
    const is = now.get(name);
    if (is === undefined) breaks.push(`${name} is gone`);
    else compareOperation(name, was, is);
  }
  const webhooks = part(after, 'webhooks');
  for (const [type, was] of Object.entries(part(before, 'webhooks'))) {
    const is = webhooks[type] as Schema | undefined;
    if (is === undefined) breaks.push(`the webhook ${type} is gone`);
    else compare(type, bodyOf(part(was as Schema, 'post')), bodyOf(part(is, 'post')), 'received');
  }
  return breaks;

  function compareOperation(name: string, was: Schema, is: Schema): void {
    const parameters = ({ parameters: all = [] }: Schema) =>
      new Map((all as Schema[]).map((each) => [`${each['in']} ${each['name']}`, each]));
    const [old, young] = [parameters(was), parameters(is)];
    for (const [key, parameter] of old) {
      const same = young.get(key);
      if (same === undefined) breaks.push(`${name}: the parameter "${key}" is gone`);
      else compare(`${name}, ${key}`, part(parameter, 'schema'), part(same, 'schema'), 'sent');
    }
    for (const [key, parameter] of young) {
      if (!old.has(key) && parameter['required'] === true)
        breaks.push(`${name}: the parameter "${key}" is now required`);
    }
    compare(`${name}, body`, bodyOf(was), bodyOf(is), 'sent');
    for (const [status, response] of Object.entries(part(was, 'responses'))) {
      const same = part(is, 'responses')[status] as Schema | undefined;
      if (same !== undefined) compare(`${name}, ${status}`, contentOf(response as Schema), contentOf(same), 'received');
      else if (status.startsWith('2')) breaks.push(`${name}: the answer ${status} is gone`);
    }
  }

  function compare(place: string, given: Schema, found: Schema, side: Side): void {
    const [was, is] = [resolveIn(before, given), resolveIn(after, found)];
    for (const key of ['type', 'const', 'format', 'pattern']) {
      const isOptional = key === 'format' || key === 'pattern';
      if (was[key] === is[key] || (side === 'received' && isOptional) || (isOptional && is[key] === undefined))
        continue;
      breaks.push(`${place}: ${key} was ${JSON.stringify(was[key])} and is ${JSON.stringify(is[key])}`);
    }
    if (side === 'sent') compareBounds(place, was, is);
    const [old, young] = [part(was, 'properties'), part(is, 'properties')];
    const [needed, needs] = [namesIn(was), namesIn(is)];
    for (const [name, schema] of Object.entries(old)) {
      const same = young[name] as Schema | undefined;
      if (same === undefined) breaks.push(`${place}: the member "${name}" is gone`);
      else compare(`${place}.${name}`, schema as Schema, same, side);
      if (side === 'received' && needed.has(name) && same !== undefined && !needs.has(name)) {
        breaks.push(`${place}: the member "${name}" may now be absent`);
      }
    }
    for (const name of Object.keys(young)) {
      if (name in old) continue;
      if (side === 'sent' && needs.has(name)) breaks.push(`${place}: the member "${name}" is now required`);
      if (side === 'received' && Object.keys(old).length > 0 && was['additionalProperties'] !== true) {
        breaks.push(`${place}: the member "${name}" is new, and clients of the closed object refuse it`);
      }
    }
    const [values, valuesNow] = [enumOf(was), enumOf(is)];
    const [few, many] = side === 'sent' ? [valuesNow, values] : [values, valuesNow];
    if (few !== null) {
      const lost = (many ?? []).filter((value) => !few.includes(value));
      const what = side === 'sent' ? 'is no longer taken' : 'is new, and clients of the closed enum refuse it';
      for (const value of lost) breaks.push(`${place}: the value ${JSON.stringify(value)} ${what}`);
    }
    if (was['items'] !== undefined) compare(`${place}[]`, part(was, 'items'), part(is, 'items'), side);
    compareAlternatives(place, was, is, side);
  }

  function compareAlternatives(place: string, was: Schema, is: Schema, side: Side): void {
    const name = (schema: Schema) => String(schema['$ref'] ?? schema['const'] ?? schema['type']).replace(/.*\//, '');
    const listOf = ({ anyOf = [] }: Schema) => new Map((anyOf as Schema[]).map((each) => [name(each), each]));
    const [old, young] = [listOf(was), listOf(is)];
    const isOpen = old.has('OtherEvent');
    for (const [key, schema] of old) {
      const same = young.get(key);
      if (same !== undefined) compare(`${place} (${key})`, schema, same, side);
      else breaks.push(`${place}: ${key} is gone`);
    }
    if (side === 'sent' || isOpen || old.size === 0) return;
    for (const key of young.keys()) if (!old.has(key)) breaks.push(`${place}: ${key} is new in a closed union`);
  }

  function compareBounds(place: string, was: Schema, is: Schema): void {
    for (const [key, isTighter] of [
      ['maxLength', (a: number, b: number) => b < a],
      ['maximum', (a: number, b: number) => b < a],
      ['minLength', (a: number, b: number) => b > a],
      ['minimum', (a: number, b: number) => b > a],
    ] as const) {
      const [a, b] = [was[key], is[key]];
      if (typeof b === 'number' && (typeof a !== 'number' || isTighter(a, b))) {
        breaks.push(`${place}: ${key} was ${a ?? 'not set'} and is ${b}`);
      }
    }
  }
}

function part(schema: Schema, name: string): Schema {
  return (schema[name] ?? {}) as Schema;
}

/** Returns the schema of a request body; `{}` without one. */
function bodyOf(operation: Schema): Schema {
  return contentOf(part(operation, 'requestBody'));
}

function contentOf(holder: Schema): Schema {
  const [content] = Object.values(part(holder, 'content')) as Schema[];
  return part(content ?? {}, 'schema');
}

function resolveIn(document: Schema, schema: Schema): Schema {
  const { $ref } = schema;
  if (typeof $ref !== 'string') return schema;
  return part(part(part(document, 'components'), 'schemas'), $ref.slice($ref.lastIndexOf('/') + 1));
}

function namesIn({ required = [] }: Schema): Set<string> {
  return new Set(required as string[]);
}

/** Returns the values of a closed enum; `null` means any. */
function enumOf({ enum: values }: Schema): unknown[] | null {
  return Array.isArray(values) ? values : null;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await writeFile(RECORDED, `${JSON.stringify(await readDocument(), null, 1)}\n`);
}
