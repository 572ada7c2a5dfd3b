import { gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import type { UnixMs } from '../../domain/time.ts';
import { clientOf } from '../../web/client-address.ts';
import { type RateLimit, refuseLimited } from '../../web/refuse-limited.ts';
import { sendCompressed } from '../../web/send-compressed.ts';
import { createTokenBuckets } from '../../web/token-bucket.ts';
import type { ApiDocument } from './api-document.ts';
import { POLICY, renderErrors } from './render-document.ts';
import { renderReference } from './render-reference.ts';
import { writeLlms } from './write-llms.ts';
import { writePostman } from './write-postman.ts';

/** Of one client network, for all of it together. A person opens the page a few times, a program reads a file once. */
const LIMIT: RateLimit = { perSecond: 5, burst: 50 };
const MAX_BUCKETS = 10_000;

/** `read`: what `/openapi.json` says; another object once that has changed. */
export type ReferenceDeps = { read(): ApiDocument; now(): UnixMs };

/** `GET /docs`, `/docs/errors`, `/docs/postman.json` and `/llms.txt`, each written from the document of the API. */
export function registerReference(app: FastifyInstance, { read, now }: ReferenceDeps): void {
  const buckets = createTokenBuckets(LIMIT.perSecond, LIMIT.burst, MAX_BUCKETS);
  const serve = (path: string, type: string, write: (document: ApiDocument) => string) => {
    let written: { of: ApiDocument; text: string; compressed: Buffer } | null = null;
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      refuseLimited(buckets.take(clientOf(request).network, now()), LIMIT);
      const document = read();
      if (written?.of !== document) {
        const text = write(document);
        written = { of: document, text, compressed: gzipSync(text) };
      }
      reply.type(`${type}; charset=utf-8`).header('Cache-Control', 'no-cache');
      if (type === 'text/html') reply.header('Content-Security-Policy', POLICY);
      return sendCompressed(request, reply, written.text, written.compressed);
    });
  };
  serve('/docs', 'text/html', renderReference);
  serve('/docs/errors', 'text/html', renderErrors);
  serve('/docs/postman.json', 'application/json', writePostman);
  serve('/llms.txt', 'text/plain', writeLlms);
}
