import { AppError } from '../../domain/errors.ts';
import { reasonOf } from '../../runtime/reason-of.ts';

/** Maximum length of a refusal in messages. */
const SHOWN_CHARACTERS = 200;
/** Maximum pause that a node can request. A wrong header must not silence the node for a day. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

type Headers = Record<string, string | string[] | undefined>;

/**
 * `isLimit`: the node refuses the caller or the request rate, whatever the question is. `wasHungUp`: it closed the connection without an
 * answer.
 */
export type Refusal = {
  reason: string;
  retryAfterMs: number | null;
  wasReached: boolean;
  isLimit: boolean;
  wasHungUp?: boolean;
};

/** A refusal by the node, or by something in front of it. */
export class TransportRefusal extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

/** An error with the code `NODE_REFUSED` for an answer that exceeds the caller's limit. */
export class AnswerTooLarge extends AppError {
  constructor(message: string) {
    super('NODE_REFUSED', message, { retryable: true });
  }
}

/** Wraps an error that occurred after the answer had begun. The node was reached in any case, whatever then went wrong. */
export function afterReached(error: unknown): Error {
  if (error instanceof TransportRefusal || error instanceof AnswerTooLarge) return error;
  return new TransportRefusal({ reason: reasonOf(error), retryAfterMs: null, wasReached: true, isLimit: false });
}

/**
 * Returns the pause that a node asks for, in milliseconds and bounded, or `null` if it asks for none. It's in `Retry-After`, in seconds or
 * as a date relative to the response's own `Date`. TronGrid puts it into the text: `{"Success":false,"Error":"The key exceeds the frequency
 * limit(15), and the query server is suspended for 30s","StatusCode":403}`.
 */
export function readNodePause(headers: Headers, text: string): number | null {
  const header = String(headers['retry-after'] ?? '').trim();
  const reported = /suspended for (\d{1,6})\s?s/i.exec(text.slice(0, 1000))?.[1];
  const seconds = /^\d{1,6}$/.test(header) ? Number(header) : reported === undefined ? null : Number(reported);
  const untilMs = Date.parse(header) - Date.parse(String(headers['date'] ?? ''));
  const ms = seconds === null ? untilMs : seconds * 1000;
  return Number.isFinite(ms) ? Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) : null;
}

/** Returns the beginning of an answer on a single line. */
export function shown(whole: string): string {
  const text = whole.replace(/\s+/g, ' ').trim();
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
