import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * The cookie of a session. Over HTTPS no other host of the domain can set or read it (`__Host-`); on this machine alone a console without
 * HTTPS is allowed, where browsers refuse such a name.
 */
const nameAt = (consoleUrl: string) => (isSecure(consoleUrl) ? '__Host-quittance' : 'quittance');
const isSecure = (consoleUrl: string) => consoleUrl.startsWith('https:');

/** The token that a request brings. Two different ones are none: a browser has one, and the other was put there by somebody. */
export function readSessionToken({ headers }: Pick<FastifyRequest, 'headers'>, consoleUrl: string): string | null {
  const name = `${nameAt(consoleUrl)}=`;
  const found = (headers.cookie ?? '').split(';').flatMap((part) => {
    const text = part.trim();
    return text.startsWith(name) ? [text.slice(name.length)] : [];
  });
  return new Set(found).size === 1 ? (found[0] ?? null) : null;
}

/** Gives a browser the token of a session that has just begun; `null` takes it away. */
export function writeSessionToken(reply: FastifyReply, consoleUrl: string, token: string | null): void {
  const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure(consoleUrl) ? '; Secure' : ''}`;
  const value = token === null ? '; Max-Age=0' : token;
  reply.header('Set-Cookie', `${nameAt(consoleUrl)}=${value}; ${attributes}`.replace('=; Max-Age', '=; Max-Age'));
}
