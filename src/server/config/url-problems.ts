import { isIP } from 'node:net';
import { isLoopbackLink } from '../../core/domain/loopback.ts';
import { parseUrl } from '../../core/domain/url.ts';

/** Each function returns the problem with a value and what to do, or `null`. None of them repeats a secret. */
type UrlProblem = string | null;

/** Shows a value in an error message: quoted, shortened, and without the parts of URLs before `@` and after `?` and `#`. */
export function showValue(text: string): string {
  const masked = maskCredentials(text).replace(/[?#].*$/, (rest) => (text.includes('://') ? `${rest[0]}…` : rest));
  return JSON.stringify(masked.length > 80 ? `${masked.slice(0, 80)}…` : masked);
}

function maskCredentials(text: string): string {
  // An "@" after "?" or "#" may end a password or be part of a key, so neither side is shown.
  if (/^[a-z+]+:\/\/[^?#]*[?#].*@/i.test(text)) return text.replace(/:\/\/.*$/, '://…');
  return text.replace(/^([a-z+]+:\/\/)?.*@/i, '$1…@');
}

/** The origin that payers see, such as `https://pay.example.com`. */
export function publicUrlProblem(text: string): UrlProblem {
  const url = httpUrl(text);
  if (url === null) return 'is not an http:// or https:// URL; use a URL such as https://pay.example.com';
  if (hasCredentials(url)) return 'contains a user name or password: remove it';
  if (url.pathname !== '/' || /[?#]/.test(text)) return `must contain nothing after the host: write ${url.origin}`;
  return null;
}

/** The console's origin. Browsers keep its cookie and offer passkeys only over https or on localhost. */
export function consoleUrlProblem(text: string): UrlProblem {
  const problem = publicUrlProblem(text);
  if (problem !== null) return problem.replace('https://pay.', 'https://console.');
  const url = new URL(text);
  if (url.protocol === 'https:' || isLoopbackLink(url.hostname)) return null;
  return `must be https://, because http:// is allowed only for this machine itself: write https://${url.host}`;
}

/** Never show the value: a malformed URL may contain its password anywhere. */
export function databaseUrlProblem(text: string): UrlProblem {
  const form = 'write postgres://user:password@host:5432/database';
  const scheme = /^([a-z][a-z0-9+.-]{0,20}):\/\//i.exec(text)?.[1];
  if (scheme === undefined) return `does not start with postgres://; ${form}`;
  if (!/^postgres(ql)?$/.test(scheme)) return `starts with ${scheme}://, but only PostgreSQL is supported; ${form}`;
  const url = parseUrl(text);
  if (url === null || text.includes('#')) {
    return `is not a well-formed URL: percent-encode special characters in the password ("/" is %2F, "#" is %23, "@" is %40); ${form}`;
  }
  if (url.pathname.replace(/^\//, '') === '') return `contains no database name: add it at the end; ${form}`;
  return null;
}

/** A server can listen on an IP address or a host name, without a scheme, brackets or port. */
export function listenHostProblem(text: string): UrlProblem {
  if (isIP(text) !== 0) return null;
  if (/^\[.*\]$/.test(text)) return `is in brackets: write ${text.slice(1, -1)}`;
  if (/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(text)) return null;
  return 'is not an IP address or host name: use a value such as 127.0.0.1, or 0.0.0.0 for all interfaces, without a scheme or port';
}

/** A single host, as in a URL but without brackets. */
export function plaintextHostProblem(text: string): UrlProblem {
  if (isIP(text) !== 0 || /^[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_])?$/i.test(text)) return null;
  return 'an entry is not a host name or IP address: use a value such as 10.0.0.5 or db.internal, without a scheme, port or network prefix';
}

/** Parses a complete http(s) URL, or returns `null`. WHATWG parsing alone would accept `http:/host` and `https:host`. */
export function httpUrl(text: string): URL | null {
  return /^https?:\/\/[^/\\\s]/i.test(text) && !/\s/.test(text) ? parseUrl(text) : null;
}

function hasCredentials(url: URL): boolean {
  return url.username !== '' || url.password !== '';
}
