import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Problem } from '../web/problem.ts';
import { describeBody, describeRefusal } from './request-log.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

test.each<[string, string]>([
  ['{"amount":25,"externalId":"order-1"}', '{amount: number, externalId: string}'],
  [
    '{"metadata":{"cart":"c-17"},"returnUrl":null,"ok":true}',
    '{metadata: {cart: string}, returnUrl: null, ok: boolean}',
  ],
  ['{"events":["all","ping"]}', '{events: [string, string]}'],
  ['{}', '{}'],
  ['[]', '[]'],
  ['"a secret"', 'string'],
  ['null', 'null'],
  ['{"amount": "1",}', 'not JSON, 16 bytes'],
  ['\uFEFF{}', 'not JSON, 5 bytes'],
  ['{"a":{"b":{"c":{"d":{"e":1}}}}}', '{a: {b: {c: {d: {…}}}}}'],
  ['{"__proto__":{"amount":1}}', '{__proto__: {amount: number}}'],
  ['{"order id":1,"ключ":2,"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA":3}', '{…: number, …: number, …: number}'],
])('the shape of %s is %s', (body, shape) => {
  expect(describeBody(bytes(body))).toBe(shape);
});

describe('whatever was sent', () => {
  test('the shape is short, and holds neither a value nor a long name', () => {
    const property = fc.property(fc.json({ maxDepth: 8 }), (json) => {
      const shape = describeBody(bytes(json));
      expect(shape.length).toBeLessThan(1500);
      expect(shape).toMatch(/^[\w\-{}[\]:, …]*$/);
    });
    fc.assert(property);
  });

  test.each([
    ['deep lists', '['.repeat(8000) + ']'.repeat(8000)],
    ['deep objects', `${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`],
    ['many members', `{${Array.from({ length: 1500 }, (_, n) => `"m${n}":{"x":[1,2]}`)}}`],
    ['a long list', `[${'{"aaaaaaaaaaaaaaaaaaaaaaaa":null},'.repeat(400)}0]`],
    ['many errors', `{${Array.from({ length: 1500 }, (_, n) => `"m${n}":1`)}}`],
  ])('%s take at most 2 KB', (_name, body) => {
    const errors = Array.from({ length: 50 }, () => ({ field: 'x'.repeat(24), code: 'UNKNOWN_FIELD', message: '' }));
    const problem = new Problem('INVALID_REQUEST', 'wrong', { extensions: { errors } });
    const refusal = describeRefusal(problem, bytes(body));
    expect(refusal.errors).toHaveLength(10);
    expect(refusal.body).toContain('…');
    expect(JSON.stringify(refusal).length).toBeLessThan(2048);
  });
});

test.each<[string, Record<string, unknown>, object[] | undefined]>([
  [
    'fields of the body',
    { errors: [{ field: 'amount', code: 'TOO_PRECISE', message: 'has 7 decimals, not "1.0000001"' }] },
    [{ field: 'amount', code: 'TOO_PRECISE' }],
  ],
  [
    'members of members',
    {
      errors: [
        { field: 'metadata.cart', code: 'DUPLICATE_FIELD', message: '' },
        { field: 'events[12]', code: 'INVALID_TYPE', message: '' },
        { field: '', code: 'WRONG_TYPE', message: '' },
      ],
    },
    [
      { field: 'metadata.cart', code: 'DUPLICATE_FIELD' },
      { field: 'events[12]', code: 'INVALID_TYPE' },
      { field: '', code: 'WRONG_TYPE' },
    ],
  ],
  [
    'names that may hold a secret',
    { errors: [{ field: `qt_live_${'a'.repeat(52)}…`, code: 'UNKNOWN_FIELD', message: '' }] },
    [{ field: '…', code: 'UNKNOWN_FIELD' }],
  ],
  [
    'a conflict',
    { conflict: 'externalId', fields: ['amount'], invoiceId: 'inv_1' },
    [
      { field: 'externalId', code: 'USED_BEFORE' },
      { field: 'amount', code: 'DIFFERS' },
    ],
  ],
  ['nothing', {}, undefined],
])('of a refusal it names %s', (_name, extensions, errors) => {
  expect(describeRefusal(new Problem('INVALID_REQUEST', 'wrong', { extensions }), undefined)).toEqual(
    errors === undefined ? {} : { errors },
  );
});
