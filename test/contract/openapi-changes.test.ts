import { beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../support/service.ts';
import { findBreaks, readDocument, readRecorded } from './openapi-changes.ts';

let recorded: Json;
beforeAll(async () => {
  recorded = await readRecorded();
});

/** For an intended change, describe it in CHANGELOG.md and run `npm run openapi:record`. */
test('nothing in the document breaks clients that were generated from that of the last release', async () => {
  expect(findBreaks(recorded, await readDocument())).toEqual([]);
});

describe('of each change it says whether clients break', () => {
  const change = (edit: (document: Json) => void) => {
    const changed = structuredClone(recorded);
    edit(changed);
    return findBreaks(recorded, changed);
  };

  test.each<[string, (document: Json) => void, RegExp]>([
    ['an operation that is gone', ({ paths }) => delete paths['/v1/transfers'].get, /^get \/v1\/transfers is gone$/],
    [
      'a member that is gone',
      ({ components }) => delete components.schemas.Invoice.properties.checkoutUrl,
      /"checkoutUrl" is gone/,
    ],
    [
      'a member of another type',
      ({ components }) => {
        components.schemas.Invoice.properties.expiresAt = { type: 'integer' };
      },
      /type was "string" and is "integer"/,
    ],
    [
      'a member that may be absent',
      ({ components }) => components.schemas.Invoice.required.pop(),
      /"expiresAt" may now be absent/,
    ],
    [
      'a new required member of a request',
      ({ components: { schemas } }) => {
        schemas.CreateInvoice.properties.colour = { type: 'string' };
        schemas.CreateInvoice.required.push('colour');
      },
      /"colour" is now required/,
    ],
    [
      'a tighter bound of a request',
      ({ components }) => {
        components.schemas.CreateInvoice.properties.externalId.maxLength = 100;
      },
      /maxLength was 200 and is 100/,
    ],
    ['an event that is gone', ({ webhooks }) => delete webhooks['invoice.paid'], /the webhook invoice.paid is gone/],
  ])('%s', (_what, edit, words) => {
    const found = change(edit);
    expect(found.length).toBeGreaterThan(0);
    expect(found[0]).toMatch(words);
  });

  test.each<[string, (document: Json) => void]>([
    [
      'a member of an answer',
      ({ components }) => {
        components.schemas.Invoice.properties.colour = { type: 'string' };
      },
    ],
    [
      'an optional member of a request',
      ({ components }) => {
        components.schemas.CreateInvoice.properties.colour = { type: 'string' };
      },
    ],
    ['a status', ({ components }) => components.schemas.Invoice.properties.status['x-extensible-enum'].push('ON_HOLD')],
    [
      'an event',
      ({ components }) =>
        components.schemas.EventPage.properties.data.items.anyOf.unshift({ type: 'object', title: 'Later' }),
    ],
    [
      'an operation',
      ({ paths }) => {
        paths['/v1/refunds'] = paths['/v1/transfers'];
      },
    ],
  ])('%s that is added breaks none', (_what, edit) => {
    expect(change(edit)).toEqual([]);
  });

  test('a member of an object that is closed breaks clients, so that no object may be closed unseen', () => {
    const closed = structuredClone(recorded);
    delete closed.components.schemas.Invoice.additionalProperties;
    const more = structuredClone(closed);
    more.components.schemas.Invoice.properties.colour = { type: 'string' };
    expect(findBreaks(closed, more)[0]).toMatch(/"colour" is new, and clients of the closed object refuse it/);
  });
});

test('every object that clients receive is open, and every string of known values', async () => {
  const { paths, webhooks, components } = (await readDocument()) as Json;
  const closed: string[] = [];
  const look = (schema: Json, place: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    if (typeof schema.$ref === 'string') look(components.schemas[schema.$ref.split('/').at(-1)], schema.$ref);
    if (schema.properties !== undefined && schema.additionalProperties !== true) closed.push(place);
    if (schema.enum !== undefined) closed.push(place);
    for (const [name, each] of Object.entries(schema.properties ?? {})) look(each, `${place}.${name}`);
    for (const each of [...(schema.anyOf ?? []), schema.items]) look(each, place);
  };
  for (const [path, methods] of Object.entries<Json>(paths)) {
    for (const operation of Object.values<Json>(methods)) {
      for (const { content } of Object.values<Json>(operation.responses)) {
        for (const { schema } of Object.values<Json>(content ?? {})) look(schema, path);
      }
    }
  }
  for (const [type, { post }] of Object.entries<Json>(webhooks)) {
    look(post.requestBody.content['application/json'].schema, type);
  }
  expect([...new Set(closed)]).toEqual([]);
});
