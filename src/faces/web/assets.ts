import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { PACKAGE_ROOT } from '../../core/runtime/package-root.ts';
import { constantText, sendCompressed } from './send-compressed.ts';

const PUBLIC = new URL('public/', PACKAGE_ROOT);

const TYPES = { css: 'text/css', js: 'text/javascript' } as const;

/** A file that pages load. `url` changes with the content. */
type Asset = { text: string; version: string; path: string; url: string; type: string };

/**
 * Reads an asset at the start, because the files are small and a missing one should be noticed then. Every style sheet begins with
 * `tokens.css`. Comments and spare whitespace are removed.
 */
export function readAsset(name: `${string}.${keyof typeof TYPES}`): Asset {
  const read = (file: string) => readFileSync(new URL(file, PUBLIC), 'utf8');
  const text = name.endsWith('.css') ? shrinkStyle(read('tokens.css') + read(name)) : shrinkScript(read(name));
  const version = createHash('sha256').update(text).digest('hex').slice(0, 12);
  const path = `/assets/${name}`;
  const type = `${name.endsWith('.js') ? TYPES.js : TYPES.css}; charset=utf-8`;
  return { text, version, path, url: `${path}?v=${version}`, type };
}

/** Serves an asset such as `GET /assets/checkout.js`. `loadedBy` says whose pages may load it. */
export function serveAsset(
  app: FastifyInstance,
  { path, version, text, type }: Asset,
  loadedBy: 'same-origin' | 'cross-origin' = 'same-origin',
): void {
  const content = constantText(text);
  app.get(path, { schema: { hide: true } }, async (request, reply) => {
    // Only the requested version may be cached for long. While a new release starts, another process may answer with its own version.
    const isAsked = (request.query as { v?: unknown }).v === version;
    reply.type(type).headers({
      'Cache-Control': isAsked ? 'public, max-age=31536000, immutable' : 'no-cache',
      'Cross-Origin-Resource-Policy': loadedBy,
    });
    return sendCompressed(request, reply, content);
  });
}

/**
 * Removes comments and spare whitespace from one of our style sheets. Its strings must not contain comments, or `{};,>:` next to spaces.
 */
export function shrinkStyle(text: string): string {
  return text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([{};,>]) ?/g, '$1')
    .replaceAll(/: /g, ':')
    .replaceAll(';}', '}')
    .trim();
}

/**
 * Removes full-line comments, indentation and empty lines from one of our scripts. Other line breaks are kept, because they end statements.
 * No string may span lines.
 */
export function shrinkScript(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//'))
    .join('\n');
}
