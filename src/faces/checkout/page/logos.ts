import type { FastifyInstance } from 'fastify';
import type { Sql } from '../../../core/store/db/database.ts';
import { findLogo, type Logo } from '../../../core/store/ledger/logos.ts';
import { Problem } from '../../web/problem.ts';

/** A logo's bytes never change. The headers keep browsers from running anything in it, and allow only our own pages to show it. */
const LOGO_HEADERS = {
  'Cache-Control': 'public, max-age=31536000, immutable',
  'Content-Security-Policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** `GET /logos/:id` returns a merchant's logo. Recently used logos are cached so that pages don't cost a query each. */
export function registerLogos(app: FastifyInstance, { db }: { db: Sql }): void {
  const find = cacheLogos((id) => findLogo(db, id));
  app.get('/logos/:id', { schema: { hide: true } }, async (request, reply) => {
    const { id } = request.params as { id: string };
    const logo = LOGO_ID.test(id) ? await find(id) : null;
    if (logo === null) throw new Problem('ROUTE_NOT_FOUND', `There is no logo at ${request.url.slice(0, 200)}.`);
    return reply.type(logo.type).headers(LOGO_HEADERS).send(logo.content);
  });
}

const LOGO_ID = /^[0-9a-f]{32}$/;

/** At 32 KiB each, they take 3.2 MB. */
const MAX_CACHED = 100;

/**
 * Caches logos and drops the least recently used one. Missing logos aren't cached, because requests for random ids would displace all
 * others.
 */
function cacheLogos(find: (id: string) => Promise<Logo | null>): (id: string) => Promise<Logo | null> {
  // A Map keeps its insertion order.
  const cached = new Map<string, Logo>();
  return async (id) => {
    const logo = cached.get(id) ?? (await find(id));
    if (logo === null) return null;
    cached.delete(id);
    cached.set(id, logo);
    if (cached.size > MAX_CACHED) cached.delete(cached.keys().next().value ?? id);
    return logo;
  };
}
