/** What every answer says to browsers, unless it says something stricter: it is what its type says, loads nothing, and stands in no frame. */
export const ANSWER_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
