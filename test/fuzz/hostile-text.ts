import fc from 'fast-check';

/** A tag that no page may ever contain: all input must be escaped. */
export const PLANTED_TAG = '<q7x';

/** Texts that have broken programs. */
const NASTY = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfff',
  '\u202eabc\u202c',
  'e\u0301\u0323'.repeat(20),
  '😀'.repeat(100),
  '😀'.repeat(201),
  'a'.repeat(200),
  'a'.repeat(201),
  'a'.repeat(256),
  '\u2028\u2029\ufeff',
  '１２.３４',
  '١٢٣',
  '__proto__',
  'constructor',
  'toString',
  "' or 1=1; --",
  '{{key',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a text that looks like one of several template languages.
  '${7*7}',
  `"'>${PLANTED_TAG} onload=1>`,
  `</style></script>${PLANTED_TAG}>`,
  '%00%0d%0a',
  '../../../../etc/passwd',
  '\r\nX-Injected: 1\r\n\r\n',
  '1e999',
  '-0',
  'NaN',
  '9'.repeat(400),
  '0x10',
  'null',
] as const;

/** Text of every kind: ordinary, all of Unicode, halves of surrogate pairs, and texts that have broken programs. */
export const hostileText = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...NASTY) },
  { weight: 2, arbitrary: fc.string({ maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 1, arbitrary: fc.array(fc.nat(0xffff), { maxLength: 20 }).map((units) => String.fromCharCode(...units)) },
);

/** The possible values of a header: all bytes except control characters. */
export const headerText = fc
  .oneof(
    { weight: 3, arbitrary: hostileText.map((text) => Buffer.from(text).toString('latin1')) },
    {
      weight: 1,
      arbitrary: fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((c) => String.fromCharCode(c)) }),
    },
  )
  .map((text) => text.replaceAll(/\p{Cc}/gu, (control) => (control < '\x80' ? '?' : control)).slice(0, 3000));

/** A JSON value as text: of any type, deep, huge, or not even JSON. */
export const jsonText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: hostileText.map((text) => JSON.stringify(text)) },
  { weight: 2, arbitrary: fc.constantFrom('null', 'true', '0', '-0', '25.00', '1e999', '-1E-999', '{}', '[]', '""') },
  { weight: 1, arbitrary: fc.bigInt().map(String) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 4000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 2500 }).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
  },
  { weight: 1, arbitrary: fc.json({ depthSize: 'medium' }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"\\ud800"',
      '"\\u0000"',
      '"\\u00e9\\ud83d\\ude00"',
      "'a'",
      'undefined',
      '01',
      '.5',
      '"\u0001"',
      '"a',
      '\u00e9',
    ),
  },
);

/** A path segment, or a query's name or value: percent-encoded correctly, incorrectly, or from bytes that aren't UTF-8. */
export const pathText = fc.oneof(
  { weight: 5, arbitrary: hostileText.map((text) => percentEncode(Buffer.from(text))) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 12 }).map((bytes) => percentEncode(Buffer.from(bytes))) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '%',
      '%zz',
      '%u0041',
      '%c0%af',
      '%ed%a0%80',
      '%00',
      '%2e%2e',
      '%2F',
      '%25',
      'a%',
      '%2525',
      ';x=1',
    ),
  },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 5000 }).map((length) => 'a'.repeat(length)) },
);

function percentEncode(bytes: Buffer): string {
  return [...bytes]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9_~-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');
}
