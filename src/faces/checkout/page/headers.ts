import { randomBytes } from 'node:crypto';

/** A page marks its own scripts and styles with this nonce. Injected content doesn't have it. */
export function newNonce(): string {
  return randomBytes(16).toString('base64');
}

/** The headers of all non-page answers below a link. They are always the same, so they reveal nothing about the answer. */
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
 * The headers of every page below a link. `connectTo`: origins that a wallet's script may connect to when it runs in the page; the page
 * itself connects to none. `frameOn`: origins that may embed the page, separated by spaces, as the operator configured them.
 */
export function pageHeaders(
  nonce: string,
  { connectTo = [], frameOn = null }: Partial<PageOrigins> = {},
): Record<string, string> {
  return {
    ...DATA_HEADERS,
    // `data:` is the empty icon, which keeps browsers from requesting /favicon.ico.
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src ${["'self'", ...connectTo].join(' ')}; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors ${frameOn ?? "'none'"}`,
  };
}
