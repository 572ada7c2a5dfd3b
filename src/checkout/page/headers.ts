import { randomBytes } from 'node:crypto';

/** A page marks its own scripts and styles with this; anything that others put into it has no mark. */
export function newNonce(): string {
  return randomBytes(16).toString('base64');
}

/** The headers of everything below a link that is no page. They are the same for every answer, so that they tell none from another. */
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
 * The headers of every page below a link. `connectTo`: other origins that the script of a wallet, which runs in the page that it shows,
 * may speak to; the page itself speaks to none. `frameOn`: those that may show it in a frame, with spaces between, as its operator named them.
 */
export function pageHeaders(
  nonce: string,
  { connectTo = [], frameOn = null }: Partial<PageOrigins> = {},
): Record<string, string> {
  return {
    ...DATA_HEADERS,
    // `data:` is the empty icon, which keeps browsers from asking for /favicon.ico.
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src ${["'self'", ...connectTo].join(' ')}; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors ${frameOn ?? "'none'"}`,
  };
}
