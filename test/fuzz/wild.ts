import fc from 'fast-check';
import type { Ending } from './shot.ts';

/** Precedes bytes that a front server and ours could interpret as another request, which must never be answered. */
export const SMUGGLED = '/smuggled';
const SMUGGLE = `GET ${SMUGGLED} HTTP/1.1\r\nHost: q\r\n\r\n`;

type Wild = Extract<Ending, { kind: 'wild' }>;

/** Ambiguous headers: each request is refused as a whole, and nothing after it is answered. */
const LENGTHS = [
  'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n',
  'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n',
  `Content-Length: 0\r\nContent-Length: ${SMUGGLE.length}\r\n`,
  'Content-Length: 0\r\nContent-Length: 0\r\n',
  'Content-Length: 0, 0\r\n',
  'Content-Length: +0\r\n',
  'Content-Length: -1\r\n',
  'Content-Length: 0x0\r\n',
  'Content-Length: 0 0\r\n',
  'Content-Length: 99999999999999999999999999\r\n',
  'Content-Length:\r\n 0\r\n',
  'Content-Length : 0\r\n',
  'Content-Length\t: 0\r\n',
  '\x0bContent-Length: 0\r\n',
  'Transfer-Encoding: xchunked\r\n',
  'Transfer-Encoding: chunked, identity\r\n',
  'Transfer-Encoding: chunked;q=1\r\n',
  'Transfer-Encoding: "chunked"\r\n',
  'Transfer-Encoding:\x0bchunked\r\n',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n',
  'Transfer-Encoding: identity\r\nContent-Length: 0\r\n',
  'Transfer-Encoding: chunked\x00\r\n',
  'Transfer\r\n-Encoding: chunked\r\n',
  'X: y\r\n\tContent-Length: 0\r\n',
  'X: y\nContent-Length: 0\r\n',
  'X: y\rContent-Length: 0\r\n',
  'X: y\0z\r\n',
  ': nameless\r\n',
  'no colon at all\r\n',
  'X[]: y\r\n',
  '(): y\r\n',
  'X y: z\r\n',
];

/** Chunked bodies with no end, or with two. */
const CHUNKS = [
  'zz\r\n',
  '-1\r\n',
  '0x1\r\na\r\n0\r\n\r\n',
  'fffffffffffffffff\r\n',
  '1\r\nab\r\n0\r\n\r\n',
  '1\na\n0\n\n',
  '1;a=b\nc\r\na\r\n0\r\n\r\n',
  ' 1\r\na\r\n0\r\n\r\n',
  '1 \r\na\r\n0\r\n\r\n',
  '1\r\na0\r\n\r\n',
  '0\r\nbad trailer\r\n\r\n',
  '0\r\nX : y\r\n\r\n',
  '0\r\n\nX: y\r\n\r\n',
];

const START_LINES = [
  'GET  / HTTP/1.1',
  'GET / HTTP/1.1 ',
  'GET\t/\tHTTP/1.1',
  ' GET / HTTP/1.1',
  'GET / http/1.1',
  'GET / HTTP/1.2',
  'GET / HTTP/2.0',
  'GET / HTTP/11',
  'GET / HTTP/1.10',
  'GET / HTCPCP/1.0',
  'BREW / HTTP/1.1',
  'get / HTTP/1.1',
  'GE T / HTTP/1.1',
  'GET /a b HTTP/1.1',
  'GET /\xff HTTP/1.1',
  'GET /\0 HTTP/1.1',
  'GET nothing HTTP/1.1',
  'PRI * HTTP/2.0',
  'CONNECT evil.example:443 HTTP/1.1',
  'GET / HTTP/1.1\r\nHost: q\nX: y',
];

const smuggling = fc.oneof(
  fc.constantFrom(...LENGTHS).map((lines) => wild(`two lengths: ${lines}`, `${head(lines)}0\r\n\r\n${SMUGGLE}`)),
  fc
    .constantFrom(...CHUNKS)
    .map((body) => wild(`chunks: ${body}`, `${head('Transfer-Encoding: chunked\r\n')}${body}${SMUGGLE}`)),
  fc.constantFrom(...START_LINES).map((line) => wild(`start line: ${line}`, `${line}\r\nHost: q\r\n\r\n`)),
);

function head(lines: string): string {
  return `POST /v1/invoices HTTP/1.1\r\nHost: q\r\nX-Api-Key: {{key}}\r\nIdempotency-Key: smuggler\r\nContent-Type: application/json\r\n${lines}\r\n`;
}

function wild(what: string, text: string): Wild {
  return { kind: 'wild', what: what.trim(), text };
}

const OVERLONG = [
  wild('a header of 20 KB', `GET /healthz HTTP/1.1\r\nHost: q\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
  wild('a path of 20 KB', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: q\r\n\r\n`),
  wild('2,500 headers', `GET /healthz HTTP/1.1\r\n${'a:b\r\n'.repeat(2500)}Host: q\r\n\r\n`),
  wild('20 KB of trailers', `${head('Transfer-Encoding: chunked\r\n')}0\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
  wild(
    'an extension of a chunk of 20 KB',
    `${head('Transfer-Encoding: chunked\r\n')}1;${'x'.repeat(20_000)}\r\na\r\n0\r\n\r\n`,
  ),
  wild('20 KB of empty lines', '\r\n'.repeat(10_000)),
  wild('a client hello of TLS', '\x16\x03\x01\x00\xf1\x01\x00\x00\xed\x03\x03'),
  wild('another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'),
];

/** Generates bytes that end a connection: ambiguous, overlong, random, or a correct request with some bytes changed. */
export function wildEndings(right: fc.Arbitrary<string>): fc.Arbitrary<Wild> {
  return fc.oneof(
    { weight: 4, arbitrary: smuggling },
    { weight: 1, arbitrary: fc.constantFrom(...OVERLONG) },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ maxLength: 300 })
        .map((bytes) => wild('random bytes', Buffer.from(bytes).toString('latin1'))),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(right, fc.array(edit, { minLength: 1, maxLength: 4 }))
        .map(([text, edits]) => wild('changed bytes', edits.reduce(apply, text))),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(right, fc.double({ min: 0, max: 1, noNaN: true }))
        .map(([text, part]) => wild('cut off', text.slice(0, Math.floor(text.length * part)))),
    },
  );
}

type Edit = { at: number; remove: number; insert: string };

const edit: fc.Arbitrary<Edit> = fc.record({
  // In thousandths of the length.
  at: fc.nat(1000),
  remove: fc.integer({ min: 0, max: 8 }),
  insert: fc.oneof(
    fc.constantFrom(
      '',
      '\r\n',
      '\n',
      '\r',
      '\0',
      ' ',
      ':',
      '\t',
      '0',
      '\xff',
      '\r\n\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Content-Length: 5\r\n',
    ),
    fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
  ),
});

function apply(text: string, { at, remove, insert }: Edit): string {
  const index = Math.floor((text.length * at) / 1000);
  return text.slice(0, index) + insert + text.slice(index + remove);
}
