import type { FastifyInstance } from 'fastify';

/** Links are only for payers. Pages also say `noindex`, for crawlers that follow a link without reading this file. */
const ROBOTS = 'User-agent: *\nDisallow: /\n';

export function serveRobots(app: FastifyInstance): void {
  app.get('/robots.txt', { schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').header('Cache-Control', 'public, max-age=86400').send(ROBOTS),
  );
}
