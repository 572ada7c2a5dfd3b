import { randomBytes } from 'node:crypto';

/** Returns the nonce that a page marks its own scripts and styles with. Injected content doesn't have it. */
export function newNonce(): string {
  return randomBytes(16).toString('base64');
}

/**
 * The headers for all responses below a link except pages. These headers are always the same, so they reveal nothing about the response.
 */
export const DATA_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

export type PageOrigins = { connectTo: readonly string[]; frameOn: string | null };

/**
 * Returns the headers for a page below a link. `connectTo` contains the origins that a wallet's script may connect to when it runs in the
 * page; the page itself connects to none. `frameOn` contains the origins that may embed the page, separated by spaces, as the operator
 * configured them.
 */
export function pageHeaders(
  nonce: string,
  { connectTo = [], frameOn = null }: Partial<PageOrigins> = {},
): Record<string, string> {
  return {
    ...DATA_HEADERS,
    // `data:` allows the empty icon, which keeps browsers from requesting /favicon.ico.
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src ${["'self'", ...connectTo].join(' ')}; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors ${frameOn ?? "'none'"}`,
  };
}
