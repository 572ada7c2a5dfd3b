import type { FastifyInstance } from 'fastify';

/** Links are for payers only. Pages also say `noindex`, to crawlers that come by a link without asking this file. */
const ROBOTS = 'User-agent: *\nDisallow: /\n';

/** `GET /robots.txt`. */
export function serveRobots(app: FastifyInstance): void {
  app.get('/robots.txt', { schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').header('Cache-Control', 'public, max-age=86400').send(ROBOTS),
  );
}
