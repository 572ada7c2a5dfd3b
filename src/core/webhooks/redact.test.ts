import { randomBytes } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quotePage, redactAnswer, refusePage } from './redact.ts';

const redactText = (text: string) => redactAnswer(Buffer.from(text));

describe('secrets are masked', () => {
  test.each([
    ['{"password":"hunter2","a":1}', '{"password":[redacted],"a":1}'],
    ['{"log":"{\\"token\\":\\"hunter2\\",\\"b\\":1}"}', '{"log":"{\\"token\\":[redacted],\\"b\\":1}"}'],
    ["{'client_secret': 'it\\'s hunter2', 'k': 1}", "{'client_secret': [redacted], 'k': 1}"],
    ['{"apiKeys": ["hunter2", "hunter3"], "k": 1}', '{"apiKeys": [redacted], "k": 1}'],
    ['{"message":"password: hunter2"}', '{"message":"password: [redacted]"}'],
    ['GET /x?api_key=hunter2&b=2', 'GET /x?api_key=[redacted]&b=2'],
    ['password=true-hunter2', 'password=[redacted]'],
    ['[DB_PASSWORD] => hunter2', '[DB_PASSWORD] => [redacted]'],
    ['<secret>hunter2</secret>', '<secret>[redacted]</secret>'],
    ['at postgres://shop:hunter2@db.internal:5432/shop', 'at postgres://[redacted]@db.internal:5432/shop'],
    ['"redis:\\/\\/:hunter@2@cache\\/0"', '"redis:\\/\\/[redacted]@cache\\/0"'],
    ['https://hunter2@shop.example/', 'https://[redacted]@shop.example/'],
    ['DB_PASS=hunter2 DB_PWD: hunter2', 'DB_PASS=[redacted] DB_PWD: [redacted]'],
    ['{"smtp_pass":"hunter2"}', '{"smtp_pass":[redacted]}'],
    ['PHPSESSID=hunter2; connect.sid=hunter2', 'PHPSESSID=[redacted]; connect.sid=[redacted]'],
    ['define( "DB_PASSWORD", "hunter2" );', 'define( "DB_PASSWORD", [redacted] );'],
    [
      '<td class="e">DB_PASSWORD </td>\n<td class="v">hunter2 </td>',
      '<td class="e">DB_PASSWORD </td>\n<td class="v">[redacted] </td>',
    ],
    ['Cookie: sid=hunter2; theme=dark\nHost: a', 'Cookie: [redacted]\nHost: a'],
    ['sent Bearer hunter2.', 'sent Bearer [redacted]'],
    ['curl -H "Basic aHVudGVyMg=="', 'curl -H "Basic [redacted]"'],
    ['key whsec_MfKQ9r8\\/GKY= here', 'key whsec_[redacted] here'],
    ['key qt_live_3fK9 and qt_test_x1', 'key qt_live_[redacted] and qt_test_[redacted]'],
    ['jwt eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln', 'jwt [redacted]'],
    ['-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY----- x', '[redacted] x'],
    ['-----BEGIN PRIVATE KEY-----\nMIIE, cut off', '[redacted]'],
    ['id 3f786850e387550fdab836ed7e6dc881', 'id [redacted]'],
    ['totp JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', 'totp [redacted]'],
  ])('%s', (text, masked) => {
    expect(redactText(text)).toBe(masked);
  });

  test('random keys of 24 bytes and more, in hex and in both alphabets of base64, wherever they stand', () => {
    const key = fc.tuple(
      fc.noBias(fc.uint8Array({ minLength: 24, maxLength: 64 })).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('hex' as const, 'base64' as const, 'base64url' as const),
    );
    const around = fc.constantFrom(' ', '\n', '"', "'", ':', ',', '(', ')', '<', '>', 'ключ', '\\n');
    fc.assert(
      fc.property(key, around, around, ([bytes, encoding], before, after) => {
        const text = bytes.toString(encoding);
        expect(redactText(`answer${before}${text}${after}end`)).not.toContain(text.slice(2, 14));
      }),
    );
  });

  test('a key that the end of 8 KiB cuts off', () => {
    const key = randomBytes(30).toString('base64');
    const seen = redactAnswer(Buffer.from(`${'. '.repeat(4086)}${key}`));
    expect(seen).not.toContain(key.slice(0, 12));
    expect(seen.endsWith('[redacted]')).toBe(true);
  });

  test('a key that invisible characters divide', () => {
    expect(redactText('whsec_\u200bMfKQ\u0000MfKQ')).toBe('whsec_[redacted]');
  });
});

describe('what helps to find the fault is kept', () => {
  test.each([
    'Bearer token required',
    'www-authenticate: Basic realm="shop"',
    '{"missing":["token","amount"],"see":"https://shop.example:8443/hooks?mail=a@b"}',
    '{"token":null,"tokenValid":false,"error":"expired"}',
    'at handleWebhook (/usr/src/app/node_modules/express4/lib/router/handleRequest.js:12:7)',
    '<title>502 Bad Gateway</title>\n================================================',
    '{"code":"SIGNATURE_MISMATCH","invoice":"inv_01h455vb4pex5vsknk084sn02q"}',
  ])('%s', (text) => {
    expect(redactText(text)).toBe(text);
  });

  const diagnostic = {
    error: 'webhook_verification_failed',
    code: 'SIGNATURE_MISMATCH',
    message: 'no signature matches',
    diagnosis: { receivedAt: 1, bodySha256: 'ab'.repeat(32), bodyBytes: 120, secretCheck: '0123abcd,89abcdef' },
  };

  test("the SDK's diagnostic answer", () => {
    for (const diagnosis of [diagnostic.diagnosis, { receivedAt: 1, bodySha256: null, secretCheck: null }]) {
      const text = JSON.stringify({ ...diagnostic, diagnosis });
      expect(redactText(text)).toBe(text);
    }
  });

  test.each([
    { ...diagnostic, message: 'secret=hunter2' },
    { ...diagnostic, extra: 'secret=hunter2' },
    { ...diagnostic, code: 'secret=hunter2' },
    { ...diagnostic, diagnosis: { ...diagnostic.diagnosis, secretCheck: 'hunter2' } },
    { ...diagnostic, diagnosis: { constructor: 1, secret: 'hunter2' } },
    { ...diagnostic, diagnosis: 'secret=hunter2' },
  ])('which is no way around the masks: %j', (answer) => {
    expect(redactText(JSON.stringify(answer))).not.toContain('hunter2');
  });
});

describe('any answer becomes text that a database keeps and a terminal shows', () => {
  test('with no control characters but line feed and tab, and no marks of direction', () => {
    expect(redactText('a\u0000b\u001b[31mc\u202ed\r\n\te\u0085')).toBe('ab[31mcd\n\te');
    const diagnostic =
      '{"error":"webhook_verification_failed","code":"X","message":"a\\u009b\\u202eb\\n","diagnosis":{}}';
    expect(JSON.parse(redactText(diagnostic)).message).toBe('ab\n');
    expect(redactAnswer(Uint8Array.of(0xff, 0x41, 0xc3))).toBe('\ufffdA\ufffd');
  });

  /** The patterns of the masks, whole and in part. */
  const fragment = fc.oneof(
    fc.constantFrom(
      'eyJ',
      'eyJ-',
      '.',
      'token',
      'token="',
      'token:\\"',
      '"token":',
      'secret-',
      'cookie:',
      'x=',
      '{',
      '[',
    ),
    fc.constantFrom('-----BEGIN A', '-----BEGIN A-----', '-----END ', 'Bearer ', 'Basic  ', 'whsec_', 'qt_live_'),
    fc.constantFrom(
      '\\',
      '\\/',
      '"',
      "'",
      '\\"',
      ' ',
      '\n',
      '=',
      ':',
      '>',
      '(',
      'a',
      'A1',
      '-',
      '\u0000',
      '\u202e',
      '₮',
    ),
    fc.string({ unit: 'binary', maxLength: 20 }),
  );
  /** 8 KiB of a few repeated fragments: a mask with quadratic backtracking would take minutes. */
  const hostile = fc
    .tuple(
      fc.array(fragment, { minLength: 1, maxLength: 4 }),
      fc.array(fragment, { maxLength: 3 }),
      fc.integer({ max: 8192, min: 1 }),
    )
    .map(([first, second, cut]) => {
      const text =
        first.join('').padEnd(1, ' ').repeat(cut).slice(0, cut) + second.join('').padEnd(1, ' ').repeat(8192);
      return Buffer.from(text.slice(0, 9000));
    });

  test('however hostile: at most 8 KiB, well-formed, visible', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.uint8Array({ maxLength: 9000 })), (bytes) => {
        const text = redactAnswer(bytes);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8192);
        expect(text).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}]/u);
      }),
      { numRuns: 500 },
    );
  });
});

test.each([
  ['<!doctype html><html><head><title>Log in – Shop</title></head><body>…', 'Log in – Shop'],
  [
    '\n\n<!-- a cache --><!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN"><html><title>\n Just a\nmoment </title>',
    'Just a moment',
  ],
  ['<?xml version="1.0"?><!DOCTYPE html PUBLIC "x"><html><body><h1>Wartung</h1></body>', 'Wartung'],
  ['<script>location="/challenge"</script>', 'a page without text'],
  ['<br />\n<b>Fatal error</b>: Uncaught Error', 'Fatal error : Uncaught Error'],
  [`<html>${'<p>word</p>'.repeat(500)}`, expect.stringMatching(/^word word .{0,70}…$/)],
])('%j is a web page', (answer, words) => {
  expect(quotePage(answer)).toEqual(words);
  expect(refusePage(Buffer.from(answer))).toMatch(/^web_page: /);
});

test.each([
  ...['ok', '', 'OK <html>', '{"html":"<html>"}', '<Response/>', '<?xml version="1.0"?><ok/>', '<htmlish>', '\u0000<!'],
])('%j is what a receiver may answer', (answer) => {
  expect(quotePage(answer)).toBeNull();
  expect(refusePage(Buffer.from(answer))).toBeNull();
});

// A pattern that backtracks too much would take hours here, and the event loop would do nothing else. Only a context of its own can be
// stopped while a pattern is being matched.
test.each([
  ...[
    '<!---->',
    '<!-- -->\n',
    '<?xml?>',
    '<?xml ',
    '<script',
    '<title',
    '<head>',
    '<',
    '"',
    '\\"',
    "'\\",
    '[',
    '{',
    'token=',
    'a: ',
  ],
  ...[
    '<td>token</td>',
    'define("token"',
    'eyJ.',
    '://a@',
    'Bearer ',
    'qt_live_',
    '-----BEGIN A-----',
    '\\/',
    'Aa0',
    ' ',
    '\n',
  ],
])('8 KiB of %j, and then something else, is judged at once', (piece) => {
  for (const end of ['', 'ok', '<', '"', '-->', '<html>']) {
    const answer = Buffer.from(piece.repeat(8192 / piece.length) + end);
    runInNewContext('judge()', { judge: () => refusePage(answer) }, { timeout: 10_000 });
  }
});
