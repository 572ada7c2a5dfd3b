import { randomBytes } from 'node:crypto';

/** What a page allows itself is marked with this, and what anybody puts into it is not. */
export function newNonce(): string {
  return randomBytes(16).toString('base64');
}

/** Of everything below a link that is no page. The same for every answer, so that none can be told from another by them. */
export const DATA_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/**
 * Of every page below a link. `connectTo`: other origins that the script of a wallet, which runs in the page that it shows, may
 * speak to; the page itself speaks to none.
 */
export function pageHeaders(nonce: string, connectTo: readonly string[] = []): Record<string, string> {
  return {
    ...DATA_HEADERS,
    // `data:` is the empty icon, which keeps browsers from asking for /favicon.ico.
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src ${["'self'", ...connectTo].join(' ')}; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  };
}
