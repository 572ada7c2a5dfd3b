import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../../core/domain/money.ts';
import { Problem } from '../web/problem.ts';
import { readCreateInput } from './read-create-input.ts';

const GOOD = { amount: '25.00', asset: 'USDT', network: 'TRON', externalId: 'order-1' };

const read = (body: unknown) => readText(JSON.stringify(body));
const readText = (text: string) => readCreateInput(Buffer.from(text));

/** Returns the problem that a body is refused with. */
function problemOf(body: unknown, text = JSON.stringify(body)): { code: string; detail: string; errors?: unknown } {
  try {
    readText(text);
  } catch (error) {
    if (error instanceof Problem) return { code: error.code, detail: error.message, ...error.extensions };
    throw error;
  }
  throw new Error('the body was taken');
}

describe('what a body asks for is its meaning, not its spelling', () => {
  const externalId = fc
    .string({ unit: 'binary', minLength: 1, maxLength: 200 })
    .filter((text) => text.isWellFormed() && !text.includes('\0'));
  const fields = fc.shuffledSubarray(['amount', 'asset', 'network', 'externalId'] as const, { minLength: 4 });
  const space = fc.constantFrom('', ' ', '\r\n\t');
  const micro = fc.bigInt(1n, 10n ** 18n - 1n).map(microUsdt);

  test('the order of fields, white space, escapes and zeros at the end do not matter', () => {
    const spelling = fc.record({ micro, zeros: fc.nat(6), externalId, fields, space, isEscaped: fc.boolean() });
    fc.assert(
      fc.property(spelling, ({ micro, zeros, externalId, fields, space, isEscaped }) => {
        const amount = formatAmount(micro).replace(new RegExp(`(?:\\.0{6}|0{0,${zeros}})$`), '');
        const body = { ...GOOD, amount, externalId };
        const spell = (text: string) => (isEscaped ? escaped(text) : JSON.stringify(text));
        const members = fields.map((field) => `${space}${spell(field)}${space}:${space}${spell(body[field])}${space}`);
        expect(readText(`${space}{${members.join(',')}}`)).toEqual({ requestedMicro: micro, externalId, options: {} });
      }),
    );
  });

  test('external ids are kept as they are: neither trimmed nor folded nor normalised', () => {
    for (const externalId of [' order ', 'ORDER', 'e\u0301', '\u00e9', '\u2028', '\ufeff', '🍵'.repeat(200)]) {
      expect(read({ ...GOOD, externalId }).externalId).toBe(externalId);
    }
  });

  /** Writes a text as JSON with every UTF-16 unit escaped. */
  function escaped(text: string): string {
    const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, '0'));
    return `"${units.map((unit) => `\\u${unit}`).join('')}"`;
  }
});

describe('everything that is wrong is told at once', () => {
  test('with what was seen and what is wanted', () => {
    expect(problemOf({ amount: '0', asset: 1, more: 1 })).toEqual({
      code: 'INVALID_REQUEST',
      detail:
        '5 fields are not valid: more is not known; the fields are amount, asset, network, externalId, returnUrl, expiresInSeconds, description, metadata, price; asset must be a string, not number; network is missing; externalId is missing; amount must be greater than 0, not "0".',
      errors: [
        { field: 'more', code: 'UNKNOWN_FIELD', message: expect.stringContaining('is not known') },
        { field: 'asset', code: 'WRONG_TYPE', message: 'must be a string, not number' },
        { field: 'network', code: 'REQUIRED', message: 'is missing' },
        { field: 'externalId', code: 'REQUIRED', message: 'is missing' },
        { field: 'amount', code: 'NOT_POSITIVE', message: 'must be greater than 0, not "0"' },
      ],
    });
  });

  test.each([
    ['null', null],
    ['an array', []],
    ['object', {}],
    ['boolean', true],
    ['number', 25],
  ])('in place of text: %s', (type, amount) => {
    const message = `must be a string, not ${type}`;
    expect(problemOf({ ...GOOD, amount })).toEqual({
      code: 'INVALID_REQUEST',
      detail: `One field is not valid: amount ${message}.`,
      errors: [{ field: 'amount', code: 'WRONG_TYPE', message }],
    });
  });

  test('a field that is sent twice, whatever it holds', () => {
    const text = JSON.stringify(GOOD).replace('{', '{"amount":"25.00",');
    expect(problemOf(null, text)).toEqual({
      code: 'INVALID_REQUEST',
      detail: 'One field is not valid: amount occurs more than once; send it once.',
      errors: [{ field: 'amount', code: 'DUPLICATE_FIELD', message: 'occurs more than once; send it once' }],
    });
  });

  test.each([
    ['', 0],
    ['x'.repeat(201), 201],
    ['🍵'.repeat(201), 201],
  ])('an external id of a length that is not kept (%#)', (externalId, length) => {
    const message = `must have 1 to 200 characters, not ${length}`;
    expect(problemOf({ ...GOOD, externalId }).errors).toEqual([{ field: 'externalId', code: 'WRONG_LENGTH', message }]);
  });

  test.each(['a\0b', '\ud83d', 'a\udc00'])('an external id with a character that is not kept: %j', (externalId) => {
    const message = 'must not contain U+0000 or an unpaired surrogate';
    expect(problemOf({ ...GOOD, externalId }).errors).toEqual([
      { field: 'externalId', code: 'WRONG_CHARACTER', message },
    ]);
  });

  test('what is told is bounded: 50 errors of fields named by 60 characters, five of them in the sentence', () => {
    const names = Array.from({ length: 60 }, (_, index) => `${index}`.padStart(60, 'x'));
    const { detail, errors } = problemOf({ ...GOOD, ...Object.fromEntries(names.map((name) => [name, 1])) });
    expect(errors).toHaveLength(50);
    expect(errors).toMatchObject(names.slice(0, 50).map((field) => ({ field, code: 'UNKNOWN_FIELD' })));
    expect(detail).toMatch(/^60 fields are not valid: /);
    expect(detail.match(/is not known/g)).toHaveLength(5);
    const long = problemOf({ ...GOOD, ['y'.repeat(61)]: 1 });
    expect(long.errors).toMatchObject([{ field: `${'y'.repeat(60)}…` }]);
  });
});

describe('an asset or a network that is not supported', () => {
  test('is told when all else is right, with what is supported', () => {
    expect(problemOf({ ...GOOD, asset: 'USDC' })).toEqual({
      code: 'UNSUPPORTED_ASSET',
      detail: 'The asset "USDC" is not supported; use USDT.',
      supported: ['USDT'],
      errors: [{ field: 'asset', code: 'UNSUPPORTED_ASSET', message: 'must be one of: USDT' }],
    });
    expect(problemOf({ ...GOOD, network: 'nile' })).toEqual({
      code: 'UNSUPPORTED_NETWORK',
      detail: 'The network "nile" is not supported; use TRON.',
      supported: ['TRON'],
      errors: [{ field: 'network', code: 'UNSUPPORTED_NETWORK', message: 'must be one of: TRON' }],
    });
  });

  test('is told with what else is wrong, of which the code is', () => {
    expect(problemOf({ ...GOOD, asset: 'USDC', amount: '-1' })).toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [
        { field: 'amount', code: expect.any(String) },
        { field: 'asset', code: 'UNSUPPORTED_ASSET', message: 'must be one of: USDT' },
      ],
    });
  });

  test('both are told together, the asset first', () => {
    expect(problemOf({ ...GOOD, asset: '', network: 'x'.repeat(61) })).toEqual({
      code: 'UNSUPPORTED_ASSET',
      detail: `The asset "" is not supported; use USDT. The network "${'x'.repeat(60)}…" is not supported; use TRON.`,
      supported: ['USDT'],
      errors: [
        { field: 'asset', code: 'UNSUPPORTED_ASSET', message: 'must be one of: USDT' },
        { field: 'network', code: 'UNSUPPORTED_NETWORK', message: 'must be one of: TRON' },
      ],
    });
  });
});

test('a body that is no JSON object is refused as a whole', () => {
  expect(problemOf(null, '{')).toMatchObject({ code: 'INVALID_JSON', detail: expect.stringMatching(/not JSON/) });
  expect(problemOf([])).toEqual({
    code: 'INVALID_REQUEST',
    detail: 'The body is an array; send one JSON object.',
    errors: [{ field: '', code: 'WRONG_TYPE', message: 'The body is an array; send one JSON object.' }],
  });
});
