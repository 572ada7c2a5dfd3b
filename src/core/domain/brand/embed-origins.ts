import { isLoopbackLink } from '../loopback.ts';
import { parseUrl } from '../url.ts';
import type { ReadLink } from './brand.ts';

/** The database schema's limits. */
const MAX_ORIGINS = 5;
const MAX_CHARS = 1000;
const EXAMPLE = 'https://shop.example.com';

/** The origins as a header contains them, separated by spaces. */
type ReadOrigins = { kind: 'ok'; origins: string } | Extract<ReadLink, { kind: 'refused' }>;

/**
 * Reads the sites that may embed the payer's page: 1 to 5 origins such as `https://shop.example.com`, separated by spaces or commas. http
 * is allowed only for this machine. The reason never quotes them.
 */
export function readEmbedOrigins(text: string): ReadOrigins {
  const refuse = (reason: string) => ({ kind: 'refused', reason }) as const;
  const given = text.split(/[\s,]+/).filter((part) => part !== '');
  if (given.length === 0 || given.length > MAX_ORIGINS)
    return refuse(`has ${given.length} sites: use 1 to ${MAX_ORIGINS}, such as ${EXAMPLE}`);
  const origins = given.map(readOrigin);
  if (origins.includes(null))
    return refuse(
      `accepts only the scheme, host and port of a site, without "*", a user name or an IPv6 address: use a value such as ${EXAMPLE}`,
    );
  const joined = [...new Set(origins)].join(' ');
  if (joined.length > MAX_CHARS) return refuse(`has ${joined.length} characters: use at most ${MAX_CHARS}`);
  const open = origins.find((origin) => origin?.startsWith('http:') && !isLoopbackLink(new URL(origin).hostname));
  if (open !== undefined) return refuse('has a site with http://, so others can change its traffic: use https://');
  return { kind: 'ok', origins: joined };
}

/** Allows only characters that have no special meaning in a header. */
const ORIGIN = /^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$/;

function readOrigin(text: string): string | null {
  const url = /\\/.test(text) ? null : parseUrl(text);
  return url?.href === `${url?.origin}/` && ORIGIN.test(url.origin) ? url.origin : null;
}

/** Returns a shop's origins, taken from its project's settings. */
export function shopOrigins(returnUrl: string | null, embedOrigins: string | null): string[] {
  // Someone may have written any text directly to the database, so invalid text must not break anything.
  const own = returnUrl === null ? null : parseUrl(returnUrl);
  return [...new Set([...(own === null ? [] : [own.origin]), ...(embedOrigins?.split(' ') ?? [])])];
}
