import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PACKAGE_ROOT } from '../../core/runtime/package.ts';

const PUBLIC = new URL('public/', PACKAGE_ROOT);

const TYPES = { css: 'text/css', js: 'text/javascript' } as const;

/** A file that pages load. `url` changes with the content. */
type Asset = { text: string; version: string; path: string; url: string; type: string };

/**
 * Reads an asset at startup, because the files are small, and so that a missing file is noticed at once. Every style sheet begins with
 * `tokens.css`. Comments and unnecessary whitespace are removed.
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
 * Removes comments and unnecessary whitespace from one of our style sheets. Its strings must not contain comments, or `{};,>:` next to
 * spaces.
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

/** If several are preferred equally, the first one is used. */
const CODINGS = ['br', 'gzip'] as const;

type Coding = (typeof CODINGS)[number];

const compressors = { br: promisify(brotliCompress), gzip: promisify(gzip) };

/** Brotli's best quality takes 40 times as long as the quality used for pages, so it's used only for constant texts. */
function compress(text: string, coding: Coding, isConstant: boolean): Promise<Buffer> {
  if (coding === 'gzip') return compressors.gzip(text);
  const params = {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_QUALITY]: isConstant ? constants.BROTLI_MAX_QUALITY : 5,
    // A window of 64 KiB covers a whole page and needs less memory than the default.
    [constants.BROTLI_PARAM_LGWIN]: isConstant ? constants.BROTLI_DEFAULT_WINDOW : 16,
  };
  return compressors.br(text, { params });
}

/** A text that never changes. For each coding, it's compressed at the first request that accepts the coding, and only once. */
export type Constant = { text: string; compressed(coding: Coding): Promise<Buffer> };

export function constantText(text: string): Constant {
  const made = new Map<Coding, Promise<Buffer>>();
  const make = (coding: Coding) => {
    const making = compress(text, coding, true);
    made.set(coding, making);
    // If compression fails, the requests waiting for it fail, but later requests try again.
    making.catch(() => made.delete(coding));
    return making;
  };
  return { text, compressed: (coding) => made.get(coding) ?? make(coding) };
}

/** Sends a text, compressed if the client accepts that, because most pages are read on phones. The response's type must already be set. */
export async function sendCompressed(
  request: FastifyRequest,
  reply: FastifyReply,
  content: string | Constant,
): Promise<FastifyReply> {
  reply.header('Vary', 'Accept-Encoding, Accept-Language');
  const text = typeof content === 'string' ? content : content.text;
  const coding = codingFor(String(request.headers['accept-encoding'] ?? ''));
  if (coding === null) return reply.send(text);
  const compressed = await (typeof content === 'string' ? compress(text, coding, false) : content.compressed(coding));
  return reply.header('Content-Encoding', coding).send(compressed);
}

/** `gzip`, ` br;q=0.5`, `*;q=0`. A coding with a malformed weight isn't accepted. */
const ACCEPTED = /^\s*([^\s;]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/i;
/** This is more than any client sends. */
const MAX_CODINGS = 20;

/**
 * Chooses a coding by `Accept-Encoding` (RFC 9110, 12.5.3). `null` means uncompressed, which is also sent to a client that refuses
 * everything, because there's no alternative.
 */
function codingFor(header: string): Coding | null {
  const weights = new Map<string, number>();
  for (const part of header.split(',', MAX_CODINGS)) {
    const [, coding = '', weight = '1'] = ACCEPTED.exec(part) ?? [];
    weights.set(coding.toLowerCase(), Number(weight));
  }
  // Only a client that names `identity` prefers the uncompressed text.
  const [none, others] = [weights.get('identity') ?? 0, weights.get('*') ?? 0];
  const weightOf = (coding: Coding) => weights.get(coding) ?? others;
  const [best] = [...CODINGS].sort((one, other) => weightOf(other) - weightOf(one));
  return best !== undefined && weightOf(best) > 0 && weightOf(best) >= none ? best : null;
}
