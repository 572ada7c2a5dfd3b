import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { PACKAGE_ROOT } from '../../runtime/package-root.ts';
import { sendCompressed } from '../../web/send-compressed.ts';

const PUBLIC = new URL('public/', PACKAGE_ROOT);

type Asset = { text: string; version: string; path: string };

/** Read once at start: the files are small, and a missing file should be noticed then. The style stands in each page. */
export const ASSETS = { css: readAsset('checkout.css'), js: readAsset('checkout.js') };

/** `GET /assets/checkout.js`. */
export function serveAssets(app: FastifyInstance): void {
  const { path, version, text } = ASSETS.js;
  let compressed: Buffer | undefined;
  app.get(path, { schema: { hide: true } }, async (request, reply) => {
    // Only the version that was asked for is kept for long: while a new release starts, another process may answer with its own.
    const isAsked = (request.query as { v?: unknown }).v === version;
    reply.type('text/javascript; charset=utf-8').headers({
      'Cache-Control': isAsked ? 'public, max-age=31536000, immutable' : 'no-cache',
      'Cross-Origin-Resource-Policy': 'same-origin',
    });
    // By the first who asks, for a start has other things to do.
    compressed ??= gzipSync(text);
    return sendCompressed(request, reply, text, compressed);
  });
}

/** The URL under which a page names an asset; it changes with the content. */
export function assetUrl({ path, version }: Asset): string {
  return `${path}?v=${version}`;
}

function readAsset(name: string): Asset {
  const text = readFileSync(new URL(name, PUBLIC), 'utf8');
  const version = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return { text, version, path: `/assets/${name}` };
}
