import { createHash, createHmac } from 'node:crypto';

export const NOW_MS = Date.UTC(2026, 8, 1, 12);
const NOW = NOW_MS / 1000;
const KEY = Buffer.alloc(32, 7);
const SECRET = `whsec_${KEY.toString('base64')}`;
const ID = 'evt_01h455vb4pex5vsknk084sn02q';

/** Contains a replacement character and non-ASCII text, which reveals careless handling of bytes. */
const EVENT = { id: ID, type: 'invoice.paid', data: { externalId: 'order-1 \uFFFD ₮', status: 'PAID' } };
const BODY = Buffer.from(JSON.stringify(EVENT));

type Headers = Record<string, string | string[]>;

/** A request as it reaches a receiver. Members that a case omits are those of the genuine request. */
type Request = { body: unknown; headers: Headers; secret: string };

/**
 * `code` is our refusal; `SECRET` means that the receiver's own secret isn't accepted. `published` is the verdict of the package
 * `standardwebhooks`.
 */
export type Forgery = { name: string; published: 'accepts' | 'refuses'; code: string } & Request;

function sign(content: string | Buffer, key: Buffer | string = KEY, algorithm = 'sha256'): string {
  return `v1,${createHmac(algorithm, key).update(content).digest('base64')}`;
}

/** Signs like a sender that checks nothing. */
function signAll(id: string, timestamp: string, body: Buffer): Headers {
  const signature = sign(Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]));
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
}

const HEADERS = signAll(ID, String(NOW), BODY);
export const GENUINE: Request = { body: BODY, headers: HEADERS, secret: SECRET };
const SIGNATURE = String(HEADERS['webhook-signature']);
const OTHER = sign('something else');

const without = (name: string): Headers => Object.fromEntries(Object.entries(HEADERS).filter(([key]) => key !== name));
const body = (text: string | Buffer) => ({ body: Buffer.from(text) });
const header = (name: string, value: string | string[]) => ({ headers: { ...HEADERS, [name]: value } });
const timestamp = (value: string) => header('webhook-timestamp', value);
const signature = (value: string | string[]) => header('webhook-signature', value);
const signed = (id: string, time: string, text: string | Buffer) => ({
  ...body(text),
  headers: signAll(id, time, Buffer.from(text)),
});

/** A text that a lenient decoder mistakes for the genuine body: the broken byte becomes the replacement character. */
const INVALID_UTF8 = Buffer.concat(splitAt(BODY, Buffer.from('\uFFFD'), Buffer.from([0xff])));

function splitAt(whole: Buffer, part: Buffer, instead: Buffer): Buffer[] {
  const at = whole.indexOf(part);
  return [whole.subarray(0, at), instead, whole.subarray(at + part.length)];
}

type Row = [name: string, published: 'accepts' | 'refuses', code: string, request: Partial<Request>];

const BODIES: Row[] = [
  ['one altered byte', 'refuses', 'SIGNATURE_MISMATCH', body(BODY.toString().replace('order-1', 'order-2'))],
  ['JSON written anew with spaces', 'refuses', 'SIGNATURE_MISMATCH', body(JSON.stringify(EVENT, null, 1))],
  [
    'JSON keys in another order',
    'refuses',
    'SIGNATURE_MISMATCH',
    body(JSON.stringify({ data: EVENT.data, type: EVENT.type, id: ID })),
  ],
  ['characters written as escapes', 'refuses', 'SIGNATURE_MISMATCH', body(BODY.toString().replace('₮', '\\u20ae'))],
  ['a byte order mark before the body', 'refuses', 'SIGNATURE_MISMATCH', body(`\uFEFF${BODY}`)],
  ['a newline after the body', 'refuses', 'SIGNATURE_MISMATCH', body(`${BODY}\n`)],
  ['a cut body', 'refuses', 'SIGNATURE_MISMATCH', body(BODY.subarray(0, -1))],
  ['an empty body', 'refuses', 'SIGNATURE_MISMATCH', body('')],
  ['an invalid UTF-8 byte for a replacement character', 'accepts', 'SIGNATURE_MISMATCH', body(INVALID_UTF8)],
  [
    'a text with a lone surrogate for a replacement character',
    'accepts',
    'BODY_NOT_RAW',
    { body: BODY.toString().replace('\uFFFD', '\uD800') },
  ],
  ['a string with a space more', 'refuses', 'SIGNATURE_MISMATCH', { body: `${BODY} ` }],
  ['a string of the base64 of the body', 'refuses', 'SIGNATURE_MISMATCH', { body: BODY.toString('base64') }],
  ['the body as a parsed object', 'refuses', 'BODY_NOT_RAW', { body: EVENT }],
  ['an object that calls itself bytes', 'refuses', 'BODY_NOT_RAW', { body: { type: 'Buffer', data: [...BODY] } }],
  ['no body at all', 'refuses', 'BODY_NOT_RAW', { body: undefined }],
  [
    'a signed body of 65 KiB',
    'accepts',
    'BODY_TOO_LARGE',
    signed(ID, String(NOW), JSON.stringify({ ...EVENT, note: 'x'.repeat(65 * 1024) })),
  ],
  [
    'a signed event with another id than the header',
    'accepts',
    'EVENT_MALFORMED',
    signed('evt_other', String(NOW), BODY),
  ],
  ['a signed body that is no object', 'accepts', 'EVENT_MALFORMED', signed(ID, String(NOW), 'null')],
  ['a signed body that is empty', 'accepts', 'EVENT_MALFORMED', signed(ID, String(NOW), '')],
  ['a signed body that is not UTF-8', 'accepts', 'EVENT_MALFORMED', signedAsText(INVALID_UTF8)],
];

/** Signed over its bytes for our package, and over its text for the published one. */
function signedAsText(bytes: Buffer): Partial<Request> {
  const ours = signAll(ID, String(NOW), bytes);
  const theirs = signAll(ID, String(NOW), Buffer.from(bytes.toString()));
  const both = `${ours['webhook-signature']} ${theirs['webhook-signature']}`;
  return { body: bytes, headers: { ...ours, 'webhook-signature': both } };
}

const IDS: Row[] = [
  ['no id', 'refuses', 'HEADER_MISSING', { headers: without('webhook-id') }],
  ['another id', 'refuses', 'SIGNATURE_MISMATCH', header('webhook-id', 'evt_other')],
  ['an empty id', 'refuses', 'HEADER_MALFORMED', header('webhook-id', '')],
  ['an id of 256 characters', 'accepts', 'HEADER_MALFORMED', signed('e'.repeat(256), String(NOW), BODY)],
  [
    'a time moved from the body into the id',
    'accepts',
    'HEADER_MALFORMED',
    {
      headers: {
        ...signAll('evt_x', String(NOW - 9), Buffer.from(`${NOW}.${BODY}`)),
        'webhook-id': `evt_x.${NOW - 9}`,
        'webhook-timestamp': String(NOW),
      },
    },
  ],
  [
    'a part of the id moved into the time',
    'refuses',
    'EVENT_MALFORMED',
    {
      body: Buffer.from(`${NOW - 9}.${BODY}`),
      headers: {
        ...signAll(`${ID}.${NOW}`, String(NOW - 9), BODY),
        'webhook-id': ID,
        'webhook-timestamp': String(NOW),
      },
    },
  ],
  ['a repeated id', 'refuses', 'HEADER_MALFORMED', header('webhook-id', [ID, ID])],
  ['an id in a list of its own', 'accepts', 'HEADER_MALFORMED', header('webhook-id', [ID])],
  ['a repeated id, joined', 'refuses', 'HEADER_MALFORMED', header('webhook-id', `${ID}, ${ID}`)],
  [
    'a second id in another spelling of the header',
    'accepts',
    'HEADER_MALFORMED',
    { headers: { 'Webhook-Id': 'evt_other', ...HEADERS } },
  ],
];

const TIMES: Row[] = [
  ['no time', 'refuses', 'HEADER_MISSING', { headers: without('webhook-timestamp') }],
  ['another time', 'refuses', 'SIGNATURE_MISMATCH', timestamp(String(NOW + 1))],
  ['a time 301 s ago', 'refuses', 'TIMESTAMP_TOO_OLD', signed(ID, String(NOW - 301), BODY)],
  ['a time in 301 s', 'refuses', 'TIMESTAMP_TOO_NEW', signed(ID, String(NOW + 301), BODY)],
  ['a time in milliseconds', 'refuses', 'HEADER_MALFORMED', signed(ID, String(NOW_MS), BODY)],
  ['the year 33658', 'refuses', 'TIMESTAMP_TOO_NEW', signed(ID, '999999999999', BODY)],
  ['a negative time', 'refuses', 'HEADER_MALFORMED', signed(ID, `-${NOW}`, BODY)],
  ['a time with an exponent', 'refuses', 'HEADER_MALFORMED', timestamp('1e9')],
  ['a space before the time', 'accepts', 'HEADER_MALFORMED', timestamp(` ${NOW}`)],
  ['a space after the time', 'accepts', 'HEADER_MALFORMED', timestamp(`${NOW} `)],
  ['a plus before the time', 'accepts', 'HEADER_MALFORMED', timestamp(`+${NOW}`)],
  ['a zero before the time', 'accepts', 'HEADER_MALFORMED', timestamp(`0${NOW}`)],
  ['a time with a fraction', 'accepts', 'HEADER_MALFORMED', timestamp(`${NOW}.0`)],
  ['letters after the time', 'accepts', 'HEADER_MALFORMED', timestamp(`${NOW}abc`)],
  ['a time in hexadecimal', 'refuses', 'HEADER_MALFORMED', timestamp(`0x${NOW.toString(16)}`)],
  [
    'a time in full-width digits',
    'refuses',
    'HEADER_MALFORMED',
    timestamp(String(NOW).replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)))),
  ],
  ['a time that is not a number', 'refuses', 'HEADER_MALFORMED', timestamp('NaN')],
  ['a time in a list of its own', 'accepts', 'HEADER_MALFORMED', header('webhook-timestamp', [String(NOW)])],
  ['a repeated time, joined', 'accepts', 'HEADER_MALFORMED', timestamp(`${NOW}, ${NOW}`)],
];

const LISTS: Row[] = [
  ['no signature', 'refuses', 'HEADER_MISSING', { headers: without('webhook-signature') }],
  ['an empty signature', 'refuses', 'HEADER_MALFORMED', signature('')],
  ['a signature of version v1a', 'refuses', 'HEADER_MALFORMED', signature(SIGNATURE.replace('v1,', 'v1a,'))],
  ['a signature of version v2', 'refuses', 'HEADER_MALFORMED', signature(SIGNATURE.replace('v1,', 'v2,'))],
  ['a signature of version V1', 'refuses', 'HEADER_MALFORMED', signature(SIGNATURE.replace('v1,', 'V1,'))],
  ['a signature without a version', 'refuses', 'HEADER_MALFORMED', signature(SIGNATURE.slice(3))],
  ['a version without a signature', 'refuses', 'HEADER_MALFORMED', signature('v1,')],
  ['a cut signature', 'refuses', 'HEADER_MALFORMED', signature(SIGNATURE.slice(0, -2))],
  ['a signature without its padding', 'refuses', 'HEADER_MALFORMED', signature(SIGNATURE.slice(0, -1))],
  ['a longer signature', 'refuses', 'HEADER_MALFORMED', signature(`${SIGNATURE}AAAA`)],
  ['a signature with more behind a comma', 'accepts', 'HEADER_MALFORMED', signature(`${SIGNATURE},more`)],
  [
    'a signature whose unused bits are set',
    'refuses',
    'HEADER_MALFORMED',
    signature(SIGNATURE.replace(/.=$/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}=`)),
  ],
  ['a signature in the alphabet of base64url', 'refuses', 'HEADER_MALFORMED', signature(`v1,-_${SIGNATURE.slice(5)}`)],
  [
    'a signature in hexadecimal',
    'refuses',
    'HEADER_MALFORMED',
    signature(`v1,${Buffer.from(SIGNATURE.slice(3), 'base64').toString('hex')}`),
  ],
  ['a space after the signature', 'accepts', 'HEADER_MALFORMED', signature(`${SIGNATURE} `)],
  ['two spaces between signatures', 'accepts', 'HEADER_MALFORMED', signature(`${OTHER}  ${SIGNATURE}`)],
  ['a tab between signatures', 'refuses', 'HEADER_MALFORMED', signature(`${OTHER}\t${SIGNATURE}`)],
  ['a newline between signatures', 'refuses', 'HEADER_MALFORMED', signature(`${OTHER}\n${SIGNATURE}`)],
  ['a comma between signatures', 'refuses', 'HEADER_MALFORMED', signature(`${OTHER},${SIGNATURE}`)],
  ['a repeated signature header, joined', 'accepts', 'HEADER_MALFORMED', signature(`${OTHER}, ${SIGNATURE}`)],
  ['a repeated signature header', 'refuses', 'HEADER_MALFORMED', signature([OTHER, SIGNATURE])],
  [
    'the right signature behind 16 others',
    'accepts',
    'HEADER_MALFORMED',
    signature(`${`${OTHER} `.repeat(16)}${SIGNATURE}`),
  ],
];

const SIGNATURES: Row[] = [
  ['a signature over the body only', 'refuses', 'SIGNATURE_MISMATCH', signature(sign(BODY))],
  ['a signature over time and body', 'refuses', 'SIGNATURE_MISMATCH', signature(sign(`${NOW}.${BODY}`))],
  ['a signature over id and body', 'refuses', 'SIGNATURE_MISMATCH', signature(sign(`${ID}.${BODY}`))],
  [
    'a plain SHA-256 without a key',
    'refuses',
    'SIGNATURE_MISMATCH',
    signature(`v1,${createHash('sha256').update(`${ID}.${NOW}.${BODY}`).digest('base64')}`),
  ],
  ['a signature with MD5', 'refuses', 'HEADER_MALFORMED', signature(sign(`${ID}.${NOW}.${BODY}`, KEY, 'md5'))],
  ['a signature with SHA-1', 'refuses', 'HEADER_MALFORMED', signature(sign(`${ID}.${NOW}.${BODY}`, KEY, 'sha1'))],
  ['a signature with SHA-512', 'refuses', 'HEADER_MALFORMED', signature(sign(`${ID}.${NOW}.${BODY}`, KEY, 'sha512'))],
  [
    'a signature with the text of the secret as its key',
    'refuses',
    'SIGNATURE_MISMATCH',
    signature(sign(`${ID}.${NOW}.${BODY}`, SECRET)),
  ],
  [
    'a signature with the base64 of the secret as its key',
    'refuses',
    'SIGNATURE_MISMATCH',
    signature(sign(`${ID}.${NOW}.${BODY}`, SECRET.slice(6))),
  ],
  ['a signature with an empty key', 'refuses', 'SIGNATURE_MISMATCH', signature(sign(`${ID}.${NOW}.${BODY}`, ''))],
  [
    'a signature with another secret',
    'refuses',
    'SIGNATURE_MISMATCH',
    signature(sign(`${ID}.${NOW}.${BODY}`, Buffer.alloc(32, 8))),
  ],
  [
    'a diagnostic check in place of a signature',
    'refuses',
    'SIGNATURE_MISMATCH',
    signature(sign(`quittance diagnostic v1\n${ID}`)),
  ],
];

const SECRETS: Row[] = [
  ['an empty secret', 'refuses', 'SECRET', { secret: '' }],
  ['a secret of its prefix alone', 'refuses', 'SECRET', { secret: 'whsec_' }],
  ['a secret without its prefix', 'accepts', 'SECRET', { secret: SECRET.slice(6) }],
  ['a secret of 8 bytes', 'accepts', 'SECRET', weakSecret(8)],
];

/** Signed with a key short enough to guess. */
function weakSecret(bytes: number): Partial<Request> {
  const key = Buffer.alloc(bytes, 7);
  const headers = { ...HEADERS, 'webhook-signature': sign(`${ID}.${NOW}.${BODY}`, key) };
  return { secret: `whsec_${key.toString('base64')}`, headers };
}

/** Requests that no receiver may act on. */
export const FORGERIES: Forgery[] = [...BODIES, ...IDS, ...TIMES, ...LISTS, ...SIGNATURES, ...SECRETS].map(
  ([name, published, code, request]) => ({ name, published, code, ...GENUINE, ...request }),
);
