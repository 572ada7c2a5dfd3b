import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { constantText, sendCompressed } from './assets.ts';

const TEXT = 'Waiting for your payment. '.repeat(50);
/** The digits of some roots: long enough to distinguish the qualities of Brotli. */
const SAME = constantText(Array.from({ length: 2000 }, (_, index) => `${Math.sqrt(index)}`.slice(0, 8)).join(' '));

const app = Fastify();
app.get('/', (request, reply) => sendCompressed(request, reply.type('text/html; charset=utf-8'), TEXT));
app.get('/same', (request, reply) => sendCompressed(request, reply.type('text/html'), SAME));
app.get('/each', (request, reply) => sendCompressed(request, reply.type('text/html'), SAME.text));

const DECODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = { br: brotliDecompressSync, gzip: gunzipSync };

async function get(
  acceptEncoding?: string,
  { method = 'GET', url = '/' }: { method?: 'GET' | 'HEAD'; url?: string } = {},
) {
  const headers = acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding };
  const { headers: answered, rawPayload } = await app.inject({ method, url, headers });
  return { headers: answered, bytes: rawPayload, coding: answered['content-encoding'] };
}

test.each([
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['deflate, gzip;q=1.0', 'gzip'],
  ['br;q=0, gzip;q=0.001', 'gzip'],
  ['br;q=0.5,gzip;q=0.6', 'gzip'],
  ['gzip, *;q=0', 'gzip'],
  ['*, br;q=0', 'gzip'],
  ['gzip;q=0.5, identity;q=0.5', 'gzip'],
  ['br;q=1.5, gzip', 'gzip'],
  ['gzip, identity;q=0', 'gzip'],
  ['br', 'br'],
  ['BR;Q=0.1', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['br ,  gzip ; q=0.8 , *;q=0', 'br'],
  ['gzip;q=0.9, br;q=0.9', 'br'],
  ['*', 'br'],
  ['*;q=0.1, gzip;q=0', 'br'],
  ['identity;q=0, *', 'br'],
])('a client that sends "%s" gets it by %s', async (accept, coding) => {
  const { headers, bytes } = await get(accept);
  expect(headers).toMatchObject({ 'content-encoding': coding, 'content-length': String(bytes.length) });
  expect(bytes.length).toBeLessThan(TEXT.length / 5);
  expect(DECODERS[coding]?.(bytes).toString()).toBe(TEXT);
});

test.each([
  undefined,
  '',
  'identity',
  'deflate, zstd',
  'gzip;q=0',
  'gzip;q=0.0',
  'gzip; q=0.000, br;q=0',
  'x-gzip2',
  'notgzip',
  'gzipped',
  'brotli',
  'gzip;',
  'gzip;q=',
  'gzip;q=2',
  'gzip;q=-1',
  'gzip;q=0.0001',
  '*;q=0',
  // It refuses the plain text as well, but there is no alternative.
  'identity;q=0',
  'gzip;q=0.5, identity',
  `${'x,'.repeat(10_000)}gzip`,
])('a client that sends "%s" gets it as it is', async (accept) => {
  const { coding, bytes } = await get(accept);
  expect(coding).toBeUndefined();
  expect(bytes.toString()).toBe(TEXT);
});

test('caches are told that the answer depends on what the client accepts and reads', async () => {
  for (const accept of ['gzip', 'br', 'identity']) {
    expect((await get(accept)).headers['vary']).toBe('Accept-Encoding, Accept-Language');
  }
});

describe('what is always the same', () => {
  test.each(['br', 'gzip'] as const)('is compressed once by %s', async (coding) => {
    const [first, second] = [await SAME.compressed(coding), await SAME.compressed(coding)];
    expect(second).toBe(first);
    const { bytes } = await get(coding, { url: '/same' });
    expect(bytes).toEqual(first);
    expect(DECODERS[coding]?.(bytes).toString()).toBe(SAME.text);
  });

  test('is compressed better than what is made for each request', async () => {
    const [same, each] = [await get('br', { url: '/same' }), await get('br', { url: '/each' })];
    expect(same.bytes.length).toBeLessThan(each.bytes.length * 0.97);
  });

  test('is sent as it is to who accepts nothing else', async () => {
    expect((await get(undefined, { url: '/same' })).bytes.toString()).toBe(SAME.text);
  });
});

test.each(['br', 'gzip'])('HEAD says how long the answer by %s is', async (coding) => {
  const { headers, bytes } = await get(coding, { method: 'HEAD' });
  const { bytes: got } = await get(coding);
  expect(bytes.length).toBe(0);
  expect(headers).toMatchObject({ 'content-encoding': coding, 'content-length': String(got.length) });
});
