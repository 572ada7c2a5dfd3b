/** The result of one attempt. `error`: a class, a colon, and the failure in plain words, without anything secret. */
export type Attempt =
  | { kind: 'sent' }
  | { kind: 'failed'; error: string; retryAfterMs: number | null }
  /** We stopped it, which says nothing about the channel. */
  | { kind: 'aborted' };
