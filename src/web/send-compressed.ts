import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** `gzip`, `gzip;q=1`, `deflate, gzip, br`, but not `gzip;q=0`. */
const TAKES_GZIP = /(?:^|[\s,])gzip\s*(?:;\s*q=(?!0(?:\.0{0,3})?\s*(?:,|$))[\d.]+\s*)?(?:,|$)/i;

const compress = promisify(gzip);

/**
 * Sends a text as it is, or compressed where the client takes that: most pages are read on phones. The type must be set. A constant text
 * comes with its compressed form.
 */
export async function sendCompressed(
  request: FastifyRequest,
  reply: FastifyReply,
  text: string,
  compressed?: Buffer,
): Promise<FastifyReply> {
  reply.header('Vary', 'Accept-Encoding, Accept-Language');
  if (!TAKES_GZIP.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(text);
  return reply.header('Content-Encoding', 'gzip').send(compressed ?? (await compress(text)));
}
