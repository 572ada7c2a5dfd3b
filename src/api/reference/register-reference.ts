import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Constant, constantText, sendCompressed } from '../../web/send-compressed.ts';
import { APART, type ApiDocument } from './api-document.ts';
import { POLICY, renderErrors } from './render-document.ts';
import { renderApart, renderReference } from './render-reference.ts';
import { writeLlms } from './write-llms.ts';
import { writePostman } from './write-postman.ts';

/** `read`: what `/openapi.json` says; another object once that has changed. `limit` throws for a client that asks too often. */
export type ReferenceDeps = { read(): ApiDocument; limit(request: FastifyRequest): void };

/** `GET /docs`, `/docs/webhook-endpoints`, `/docs/errors`, `/docs/postman.json` and `/llms.txt`, each written from the document of the API. */
export function registerReference(app: FastifyInstance, { read, limit }: ReferenceDeps): void {
  const serve = (path: string, type: string, write: (document: ApiDocument) => string) => {
    let written: { of: ApiDocument; content: Constant } | null = null;
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      limit(request);
      const document = read();
      if (written?.of !== document) written = { of: document, content: constantText(write(document)) };
      reply.type(`${type}; charset=utf-8`).header('Cache-Control', 'no-cache');
      if (type === 'text/html') reply.header('Content-Security-Policy', POLICY);
      return sendCompressed(request, reply, written.content);
    });
  };
  serve('/docs', 'text/html', renderReference);
  serve(`/docs/${APART}`, 'text/html', renderApart);
  serve('/docs/errors', 'text/html', renderErrors);
  serve('/docs/postman.json', 'application/json', writePostman);
  serve('/llms.txt', 'text/plain', writeLlms);
}
