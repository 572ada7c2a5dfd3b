import fc from 'fast-check';
import Schema from 'typebox/schema';
import { beforeAll, describe, expect, test } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { formatSecret } from '../../src/core/webhooks/sign.ts';
import { disableEndpoint, rotateSecret } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { addEndpoint, updateEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import type { Json } from '../support/service.ts';
import { readDocument } from './openapi-changes.ts';

let document: Json;
beforeAll(async () => {
  document = await readDocument();
});

const ENDPOINT = { endpointId: 'whe_01k2m9t0b3e8zr6v5x4c7d1f2g' };

/** Whether the code accepts a body, according to the reader of the operation's input. */
const READERS: Record<string, (body: never) => unknown> = {
  CreateWebhookEndpoint: (body: Json) => addEndpoint.read(body as never, 0 as never),
  UpdateWebhookEndpoint: (body: Json) => updateEndpoint.read({ ...ENDPOINT, ...body } as never, 0 as never),
  RotateWebhookSecret: (body: Json) => rotateSecret.read({ ...ENDPOINT, ...body } as never, 0 as never),
  DisableWebhookEndpoint: (body: Json) => disableEndpoint.read({ ...ENDPOINT, ...body } as never, 0 as never),
};

function isTaken(name: string, body: object): boolean {
  try {
    READERS[name]?.(body as never);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

const isDescribed = (name: string, body: object) => Schema.Check(document.components.schemas[name], body);
const url = 'https://shop.example.com/hook';

describe('the document describes what the code takes, and nothing else', () => {
  test.each<[string, object, boolean]>([
    ['CreateWebhookEndpoint', { url }, true],
    ['CreateWebhookEndpoint', { url, events: ['all'] }, true],
    ['CreateWebhookEndpoint', { url, events: ['ping', 'invoice.paid'] }, true],
    ['CreateWebhookEndpoint', { url, events: [] }, false],
    ['CreateWebhookEndpoint', { url, events: [''] }, false],
    ['CreateWebhookEndpoint', { url, events: ['all', 'ping'] }, false],
    ['CreateWebhookEndpoint', { url, events: ['ping', 'all'] }, false],
    ['CreateWebhookEndpoint', { url, events: ['invoice.gone'] }, false],
    ['CreateWebhookEndpoint', { url, description: '' }, true],
    ['CreateWebhookEndpoint', { url, description: 'x'.repeat(200) }, true],
    ['CreateWebhookEndpoint', { url, description: 'x'.repeat(201) }, false],
    ['CreateWebhookEndpoint', { url, description: 'two\nlines' }, false],
    ['CreateWebhookEndpoint', { url, secret: '' }, false],
    ['UpdateWebhookEndpoint', { description: '' }, true],
    ['UpdateWebhookEndpoint', {}, false],
    ['UpdateWebhookEndpoint', { events: ['all', 'ping'] }, false],
    ['DisableWebhookEndpoint', {}, true],
    ['DisableWebhookEndpoint', { reason: '' }, true],
    ['DisableWebhookEndpoint', { reason: 'moves house ₮' }, true],
    ['DisableWebhookEndpoint', { reason: 'x'.repeat(201) }, false],
    ['DisableWebhookEndpoint', { reason: 'a\u0000b' }, false],
    ['DisableWebhookEndpoint', { reason: 'a\u0085b' }, false],
    ['RotateWebhookSecret', {}, true],
  ])('%s %j', (name, body, expected) => {
    expect([isDescribed(name, body), isTaken(name, body)]).toEqual([expected, expected]);
  });

  test('of durations, all around the bounds', () => {
    const numbers = [
      0, 1, 9, 10, 29, 30, 31, 99, 100, 699, 719, 720, 721, 4320, 42_999, 43_199, 43_200, 43_201, 99_999,
    ];
    for (const unit of ['m', 'h', 'd', '', 's', ' d']) {
      for (const number of [...numbers, 1e6]) {
        for (const overlap of [`${number}${unit}`, `0${number}${unit}`]) {
          const body = { overlap };
          expect([overlap, isDescribed('RotateWebhookSecret', body)]).toEqual([
            overlap,
            isTaken('RotateWebhookSecret', body),
          ]);
        }
      }
    }
  });

  test('of secrets, every length, and every one that was bent', () => {
    const sizes = fc.uint8Array({ minLength: 20, maxLength: 70 });
    const property = fc.property(
      sizes,
      fc.nat(100),
      fc.constantFrom('', '=', 'A', '_', ' ', '\n'),
      (bytes, at, more) => {
        const whole = `whsec_${Buffer.from(bytes).toString('base64')}`;
        for (const secret of [whole, whole.slice(0, at) + more + whole.slice(at + 1), whole + more]) {
          const body = { secret };
          expect([secret, isDescribed('RotateWebhookSecret', body)]).toEqual([
            secret,
            isTaken('RotateWebhookSecret', body),
          ]);
        }
      },
    );
    fc.assert(property, { numRuns: 500 });
    expect(isTaken('RotateWebhookSecret', { secret: formatSecret(Buffer.alloc(64)) })).toBe(true);
  });
});

test('generated clients of every language can read the patterns', () => {
  const patterns = new Set<string>();
  JSON.stringify(document, (name, value) => {
    if (name === 'pattern' && typeof value === 'string') patterns.add(value);
    // Generators ignore `not`.
    return name === 'not' ? undefined : value;
  });
  expect(patterns.size).toBeGreaterThan(5);
  // Go has no lookahead, Python has no \p, PHP has no \u, and Ruby and PHP read \x80 and above as bytes of UTF-8.
  expect([...patterns].filter((pattern) => /\(\?|\\[pPu]|\\x[89a-f]/i.test(pattern))).toEqual([]);
});

test('a body that may be left out is not described as required', () => {
  const required = Object.fromEntries(
    Object.values<Json>(document.paths).flatMap((methods) =>
      Object.values<Json>(methods).flatMap(({ operationId, requestBody }) =>
        requestBody === undefined ? [] : [[operationId, requestBody.required]],
      ),
    ),
  );
  expect(required).toEqual({
    createInvoice: true,
    createWebhookEndpoint: true,
    updateWebhookEndpoint: true,
    rotateWebhookSecret: false,
    disableWebhookEndpoint: false,
  });
});

test('the document says where the service is, who runs it, and where it is explained', () => {
  const { servers, info, externalDocs } = document;
  expect(servers).toEqual([{ url: 'https://pay.example.com', description: 'This service' }]);
  expect(info.contact.url).toBe('https://pay.example.com');
  expect(externalDocs.url).toBe('https://pay.example.com/docs');
});
