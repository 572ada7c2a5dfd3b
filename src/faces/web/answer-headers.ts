/**
 * The headers of every response, unless it sets stricter ones. Browsers must not guess its type, load anything for it, or show it in a
 * frame.
 */
export const ANSWER_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
