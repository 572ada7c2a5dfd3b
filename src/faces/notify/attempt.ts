/** The result of one attempt. `error` consists of a class, a colon, and a description of the failure in plain words, without secrets. */
export type Attempt =
  | { kind: 'sent' }
  | { kind: 'failed'; error: string; retryAfterMs: number | null }
  /** Quittance stopped the attempt, so the result says nothing about the channel. */
  | { kind: 'aborted' };
