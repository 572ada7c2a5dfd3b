import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';

const PUBLIC = new URL('../../public/', import.meta.url);

type Asset = { content: Buffer; version: string; path: string; type: string };

/** Read once at start: the files are small, and a missing one should be noticed then. */
export const ASSETS = {
  css: readAsset('checkout.css', 'text/css; charset=utf-8'),
  js: readAsset('checkout.js', 'text/javascript; charset=utf-8'),
};

/** `GET /assets/checkout.css` and `.js`. */
export function serveAssets(app: FastifyInstance): void {
  for (const asset of Object.values(ASSETS)) {
    app.get(asset.path, { schema: { hide: true } }, async (request, reply) => {
      // Only the version that was asked for is kept for long: while a new release starts, another process may answer with its own.
      const isAsked = (request.query as { v?: unknown }).v === asset.version;
      return reply
        .type(asset.type)
        .headers({
          'Cache-Control': isAsked ? 'public, max-age=31536000, immutable' : 'no-cache',
          'X-Content-Type-Options': 'nosniff',
          'Cross-Origin-Resource-Policy': 'same-origin',
        })
        .send(asset.content);
    });
  }
}

/** The URL under which a page names an asset; it changes with the content. */
export function assetUrl({ path, version }: Asset): string {
  return `${path}?v=${version}`;
}

function readAsset(name: string, type: string): Asset {
  const content = readFileSync(new URL(name, PUBLIC));
  const version = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return { content, version, path: `/assets/${name}`, type };
}
