import { gunzipSync, gzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { sendCompressed } from './send-compressed.ts';

const TEXT = 'Waiting for your payment. '.repeat(50);
/** Other bytes than are made of it for a request. */
const COMPRESSED = gzipSync(TEXT, { level: 1 });

const app = Fastify();
app.get('/', (request, reply) => sendCompressed(request, reply.type('text/html; charset=utf-8'), TEXT));
app.get('/same', (request, reply) => sendCompressed(request, reply.type('text/html'), TEXT, COMPRESSED));

async function get(acceptEncoding?: string, method: 'GET' | 'HEAD' = 'GET') {
  const headers = acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding };
  const { headers: answered, rawPayload } = await app.inject({ method, url: '/', headers });
  return { headers: answered, bytes: rawPayload };
}

test.each([
  'gzip',
  'GZIP',
  'gzip, deflate, br, zstd',
  'deflate, gzip;q=1.0',
  'br;q=1, gzip;q=0.001',
  'br ,  gzip ; q=0.8 , *;q=0',
])('a client that sends "%s" gets it compressed', async (accept) => {
  const { headers, bytes } = await get(accept);
  expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(bytes.length) });
  expect(bytes.length).toBeLessThan(TEXT.length / 5);
  expect(gunzipSync(bytes).toString()).toBe(TEXT);
});

test.each([
  undefined,
  '',
  'identity',
  'br, deflate',
  'gzip;q=0',
  'gzip;q=0.0',
  'gzip; q=0.000, br',
  'x-gzip2',
  'notgzip',
  'gzipped',
  'gzip;',
  'gzip;q=',
])('a client that sends "%s" gets it as it is', async (accept) => {
  const { headers, bytes } = await get(accept);
  expect(headers['content-encoding']).toBeUndefined();
  expect(bytes.toString()).toBe(TEXT);
});

test('caches are told that the answer depends on what the client takes and reads', async () => {
  for (const accept of ['gzip', 'identity']) {
    expect((await get(accept)).headers['vary']).toBe('Accept-Encoding, Accept-Language');
  }
});

test('what is always the same is not compressed for each request', async () => {
  const answer = await app.inject({ url: '/same', headers: { 'accept-encoding': 'gzip' } });
  expect(answer.rawPayload).toEqual(COMPRESSED);
  expect((await app.inject('/same')).body).toBe(TEXT);
});

test('HEAD says how long the compressed answer is', async () => {
  const { headers, bytes } = await get('gzip', 'HEAD');
  const { bytes: got } = await get('gzip');
  expect(bytes.length).toBe(0);
  expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(got.length) });
});
