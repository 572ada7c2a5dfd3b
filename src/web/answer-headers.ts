/**
 * Headers of every answer, unless it sets stricter ones. Browsers must take its type as stated, load nothing for it, and show it in no
 * frame.
 */
export const ANSWER_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
