import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { expectProblem, fieldsOf, get, order, post, rawPost, sendRaw } from './ask.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const LIMIT = 16 * 1024;

/** Returns the header lines of a correct request; `without` omits one. */
function lines({ without = '' } = {}): string[] {
  return [
    `X-Api-Key: ${service.project.apiKey}`,
    `Idempotency-Key: ${randomUUID()}`,
    'Content-Type: application/json',
  ].filter((line) => without === '' || !line.startsWith(without));
}

const length = (body: string | Buffer) => `Content-Length: ${Buffer.byteLength(body)}`;

/** Returns an order as JSON with a given number of bytes. */
function orderOfBytes(bytes: number): string {
  const text = JSON.stringify(order());
  return text + ' '.repeat(bytes - text.length);
}

function chunked(body: string, size: number): string {
  const chunks = body.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
  return `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`;
}

describe('PAYLOAD_TOO_LARGE: over 16 KiB', () => {
  test('16 KiB are taken, one byte more is refused', async () => {
    expect((await post(service, { body: orderOfBytes(LIMIT) })).status).toBe(201);
    expectProblem(await post(service, { body: orderOfBytes(LIMIT + 1) }), 413, 'PAYLOAD_TOO_LARGE');
  });

  test('the same holds for a chunked body, which announces no length', async () => {
    const encoding = 'Transfer-Encoding: chunked';
    const fits = await sendRaw(service.url, rawPost([...lines(), encoding], chunked(orderOfBytes(LIMIT), 1000)));
    expect(fits.status, fits.text).toBe(201);
    const over = await sendRaw(service.url, rawPost([...lines(), encoding], chunked(orderOfBytes(LIMIT + 1), 1000)));
    expectProblem(over, 413, 'PAYLOAD_TOO_LARGE');
  });

  test('a chunked body that never ends is refused as soon as it is too large', async () => {
    const endless = `${(20_000).toString(16)}\r\n${' '.repeat(20_000)}\r\n`;
    const reply = await sendRaw(service.url, rawPost([...lines(), 'Transfer-Encoding: chunked'], endless));
    expectProblem(reply, 413, 'PAYLOAD_TOO_LARGE');
  });
});

describe('UNSUPPORTED_MEDIA_TYPE', () => {
  test('a missing Content-Type is refused', async () => {
    const body = JSON.stringify(order());
    const reply = await sendRaw(service.url, rawPost([...lines({ without: 'Content-Type' }), length(body)], body));
    expectProblem(reply, 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  test.each([
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json5',
    'application/problem+json',
    'application/octet-stream',
    'json',
    '*/*',
    'application/json, text/plain',
    'application/json; charset=utf-16',
    'application/json; charset=iso-8859-1',
    'application/json; charset=utf-8; charset=utf-16',
    'application/json; x="; charset=utf-16',
    'application/json x',
  ])('%s is refused', async (type) => {
    expectProblem(await post(service, { headers: { 'content-type': type } }), 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  test.each(['application/json;', 'application/json; ; charset=utf-8', 'application/json;q=1; profile="a; b"'])(
    '%s is taken: what else is said of JSON means nothing',
    async (type) => {
      expect((await post(service, { headers: { 'content-type': type } })).status).toBe(201);
    },
  );

  test('a body that is compressed for its way is refused, not read as if it were plain', async () => {
    const body = JSON.stringify(order());
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    for (const coding of ['gzip, chunked', 'gzip;q=1, chunked']) {
      const reply = await sendRaw(service.url, rawPost([...lines(), `Transfer-Encoding: ${coding}`], chunks));
      expectProblem(reply, 415, 'UNSUPPORTED_MEDIA_TYPE');
    }
    const plain = await sendRaw(service.url, rawPost([...lines(), 'Transfer-Encoding: Chunked'], chunks));
    expect(plain.status).toBe(201);
  });

  test('a repeated Content-Type is refused: its two readers could differ', async () => {
    const body = JSON.stringify(order());
    const reply = await sendRaw(service.url, rawPost([...lines(), 'Content-Type: text/plain', length(body)], body));
    expectProblem(reply, 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  test('a compressed body is refused, not read as if it were plain', async () => {
    const body = gzipSync(JSON.stringify(order()));
    const reply = await post(service, { headers: { 'content-encoding': 'gzip' }, body });
    expectProblem(reply, 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  test('without a body the media type is still what is missing first', async () => {
    const reply = await sendRaw(service.url, rawPost([...lines({ without: 'Content-Type' }), 'Content-Length: 0'], ''));
    expectProblem(reply, 415, 'UNSUPPORTED_MEDIA_TYPE');
  });
});

describe('INVALID_JSON', () => {
  test.each([
    ['empty', ''],
    ['only whitespace', ' \n '],
    ['cut off', '{"amount":"25'],
    ['followed by more', '{} {}'],
    ['with a trailing comma', '{"amount":"25",}'],
    ['with single quotes', "{'amount':'25'}"],
    ['with a comment', '{/* */}'],
    ['with NaN', '{"amount":NaN}'],
    ['with an unescaped newline in a string', '{"amount":"2\n5"}'],
    ['with a bad escape', '{"amount":"\\x32"}'],
    ['with a leading zero', '{"amount":025}'],
    ['not JSON at all', 'amount=25&asset=USDT'],
    ['NUL', '\0'],
  ])('a body that is %s', async (_what, body) => {
    expectProblem(await post(service, { body }), 400, 'INVALID_JSON');
  });

  test('a body of no bytes', async () => {
    const reply = await sendRaw(service.url, rawPost([...lines(), 'Content-Length: 0'], ''));
    expectProblem(reply, 400, 'INVALID_JSON');
    const absent = await sendRaw(service.url, rawPost(lines(), ''));
    expectProblem(absent, 400, 'INVALID_JSON');
  });

  test.each([
    ['a stray continuation byte', [0x80]],
    ['Latin-1 é', [0xe9]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0xbd]],
    ['a cut-off emoji', [0xf0, 0x9f, 0x98]],
    ['a code point above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
  ])('bytes that are not UTF-8 are refused, never replaced: %s', async (_what, bytes) => {
    const [before, after] = JSON.stringify(order({ externalId: 'a|b' })).split('|');
    const body = Buffer.concat([Buffer.from(before ?? ''), Buffer.from(bytes), Buffer.from(after ?? '')]);
    expectProblem(await post(service, { body }), 400, 'INVALID_JSON');
  });

  test('a byte order mark is not JSON', async () => {
    const body = Buffer.from(`\ufeff${JSON.stringify(order())}`);
    expectProblem(await post(service, { body }), 400, 'INVALID_JSON');
  });

  test('UTF-16 is not JSON', async () => {
    expectProblem(await post(service, { body: Buffer.from(JSON.stringify(order()), 'utf16le') }), 400, 'INVALID_JSON');
  });

  test.each([
    ['arrays', '['.repeat(8000) + ']'.repeat(8000)],
    ['objects', `${'{"a":'.repeat(2700)}1${'}'.repeat(2700)}`],
    ['open arrays', '['.repeat(LIMIT)],
  ])('thousands of nested %s are refused with 400', async (_what, body) => {
    const reply = await post(service, { body });
    expectProblem(reply, 400, reply.body.code);
    const inside = await post(service, { body: JSON.stringify(order()).replace('"25.00"', body.slice(0, 12_000)) });
    expectProblem(inside, 400, inside.body.code);
  });
});

describe('duplicate JSON keys are refused', () => {
  test.each([
    ['the same text', '"amount":"25.00","amount":"25.00"'],
    ['another value', '"amount":"25.00","amount":"1"'],
    ['an escaped spelling', '"amount":"25.00","\\u0061mount":"1"'],
    ['an escaped spelling first', '"am\\u006funt":"1","amount":"25.00"'],
    ['upper-case hex', '"amo\\u0075nt":"1","amo\\u0075nt":"2"'],
    ['space around', '"amount":"25.00", "amount" : "1"'],
  ])('as %s', async (_what, members) => {
    const body = `{${members},"asset":"USDT","network":"TRON","externalId":"dup-${randomUUID()}"}`;
    const reply = await post(service, { body });
    const problem = expectProblem(reply, 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['amount']);
  });

  test('also inside a value that is refused anyway', async () => {
    const body = JSON.stringify(order()).replace('"25.00"', '{"a":1,"a":2}');
    expect((await post(service, { body })).status).toBe(400);
  });

  test('a string that only looks like a duplicate key is none', async () => {
    const externalId = '","amount":"1","x":"';
    expect((await post(service, { body: order({ externalId }) })).status).toBe(201);
    const nested = '{"externalId":"x","externalId":"y"}';
    expect((await post(service, { body: order({ externalId: nested }) })).status).toBe(201);
    const escaped = 'a\\","amount":"1';
    expect((await post(service, { body: order({ externalId: escaped }) })).status).toBe(201);
  });

  test('one escaped spelling alone is the plain key', async () => {
    const body = JSON.stringify(order()).replace('"amount"', '"\\u0061mount"');
    expect((await post(service, { body })).status).toBe(201);
  });
});

describe('unknown fields are refused', () => {
  test.each([
    'memo',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    '',
    'Amount',
    'amount ',
    'status',
    'invoiceId',
  ])('%j', async (field) => {
    const body = JSON.stringify(order()).replace('{', `{${JSON.stringify(field)}:{"amount":"1"},`);
    const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual([field]);
  });

  test('__proto__ cannot supply what is missing', async () => {
    const body = `{"__proto__":${JSON.stringify(order())}}`;
    const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['__proto__', 'amount', 'asset', 'externalId', 'network']);
  });
});

describe('wrong types are refused', () => {
  test.each(['1e999', '-1e999', '1e-999', '9'.repeat(5000), '25', '25.00', '0', '-0', '1E5'])(
    'the number %s is no amount',
    async (number) => {
      const body = JSON.stringify(order()).replace('"25.00"', number);
      const problem = expectProblem(await post(service, { body }), 400, 'INVALID_REQUEST');
      expect(fieldsOf(problem)).toEqual(['amount']);
    },
  );
});

describe('repeated and malformed headers', () => {
  const send = (extra: string[], without = '') => {
    const body = JSON.stringify(order());
    return sendRaw(service.url, rawPost([...lines({ without }), ...extra, length(body)], body));
  };

  test('a repeated Idempotency-Key is IDEMPOTENCY_KEY_INVALID, with one value or two', async () => {
    for (const values of [
      ['a', 'b'],
      ['same', 'same'],
      ['', 'b'],
      ['a', ''],
    ]) {
      const reply = await send(
        values.map((value) => `Idempotency-Key: ${value}`),
        'Idempotency-Key',
      );
      expectProblem(reply, 400, 'IDEMPOTENCY_KEY_INVALID');
    }
  });

  test('a missing Idempotency-Key is IDEMPOTENCY_KEY_REQUIRED; one without a value is malformed', async () => {
    expectProblem(await send([], 'Idempotency-Key'), 400, 'IDEMPOTENCY_KEY_REQUIRED');
    expectProblem(await send(['Idempotency-Key:'], 'Idempotency-Key'), 400, 'IDEMPOTENCY_KEY_INVALID');
    expectProblem(await send(['Idempotency-Key:   '], 'Idempotency-Key'), 400, 'IDEMPOTENCY_KEY_INVALID');
  });

  test('the key is 1–255 visible ASCII characters: others are IDEMPOTENCY_KEY_INVALID', async () => {
    for (const key of ['a b', 'a\tb', 'caf\u00e9', '\u00ff', 'x'.repeat(256), 'x'.repeat(5000)]) {
      expectProblem(await send([`Idempotency-Key: ${key}`], 'Idempotency-Key'), 400, 'IDEMPOTENCY_KEY_INVALID');
    }
  });

  test('keys of 1 and of 255 characters and every visible character are taken', async () => {
    const visible = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join('');
    for (const key of ['x', 'x'.repeat(255), visible, 'a,b', '"quoted"', ',']) {
      const reply = await send([`Idempotency-Key: ${key}`], 'Idempotency-Key');
      expect(reply.status, `${key} ${reply.text}`).toBe(201);
    }
  });

  test('a repeated X-Api-Key is UNAUTHENTICATED', async () => {
    expectProblem(await send([`X-Api-Key: ${service.project.apiKey}`]), 401, 'UNAUTHENTICATED');
    expectProblem(await send(['X-Api-Key: other']), 401, 'UNAUTHENTICATED');
  });

  test('what is no HTTP, or too large a head, is answered with a problem and X-Request-Id too', async () => {
    const requests: [number, string][] = [
      [400, 'NONSENSE\r\n\r\n'],
      [400, 'GET / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n'],
      [400, 'POST /v1/invoices HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
      [400, 'POST /v1/invoices HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
      [431, `GET /v1/invoices HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(100_000)}\r\n\r\n`],
    ];
    for (const [status, bytes] of requests) {
      const reply = await sendRaw(service.url, bytes);
      expect(reply.status, bytes.slice(0, 60)).toBe(status);
      expect(reply.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(reply.headers['x-request-id']).toMatch(/^req_/);
      expect(reply.body).toMatchObject({ status, requestId: reply.headers['x-request-id'] });
    }
  });

  test('a request target that cannot be decoded is answered with a problem', async () => {
    for (const target of ['/%', '/v1/%zz', '/v1/invoices?externalId=%ff', '/v1/invoices?externalId=%', '*']) {
      const head = ['Host: x', 'Connection: close', `X-Api-Key: ${service.project.apiKey}`].join('\r\n');
      const reply = await sendRaw(service.url, `GET ${target} HTTP/1.1\r\n${head}\r\n\r\n`);
      expect([200, 400, 404], target).toContain(reply.status);
      if (reply.status !== 200) expectProblem(reply, reply.status, reply.body?.code);
    }
  });

  test('after every refusal the service goes on', async () => {
    expect((await post(service)).status).toBe(201);
    expect((await get(service, '/healthz')).status).toBe(200);
  });
});
