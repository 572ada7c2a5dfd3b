import { AppError } from '../../domain/errors.ts';
import { reasonOf } from '../../runtime/reason-of.ts';

/** As much of a refusal as a person needs to recognise it. */
const SHOWN_CHARACTERS = 200;
/** The longest pause that a node may ask for: a wrong header must not silence it for a day. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

type Headers = Record<string, string | string[] | undefined>;

/** `isLimit`: it refuses who asks, or how often, whatever is asked. `wasHungUp`: it ended the connection without a word. */
export type Refusal = {
  reason: string;
  retryAfterMs: number | null;
  wasReached: boolean;
  isLimit: boolean;
  wasHungUp?: boolean;
};

/** The node refused, or something in front of it did. */
export class TransportRefusal extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

/** `NODE_REFUSED`, because the answer is larger than the caller wants to read. */
export class AnswerTooLarge extends AppError {
  constructor(message: string) {
    super('NODE_REFUSED', message, { retryable: true });
  }
}

/** Wraps an error that came after the node began to answer: the node was reached, whatever broke the rest. */
export function afterReached(error: unknown): Error {
  if (error instanceof TransportRefusal || error instanceof AnswerTooLarge) return error;
  return new TransportRefusal({ reason: reasonOf(error), retryAfterMs: null, wasReached: true, isLimit: false });
}

/**
 * How long a node asks to be left alone, in milliseconds, bounded; `null` if it does not. It says so in `Retry-After` (seconds,
 * or a date, which counts from the answer's own `Date`), or as TronGrid does in the text:
 * `{"Success":false,"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s","StatusCode":403}`.
 */
export function readRetryAfter(headers: Headers, text: string): number | null {
  const header = String(headers['retry-after'] ?? '').trim();
  const reported = /suspended for (\d{1,6})\s?s/i.exec(text.slice(0, 1000))?.[1];
  const seconds = /^\d{1,6}$/.test(header) ? Number(header) : reported === undefined ? null : Number(reported);
  const untilMs = Date.parse(header) - Date.parse(String(headers['date'] ?? ''));
  const ms = seconds === null ? untilMs : seconds * 1000;
  return Number.isFinite(ms) ? Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) : null;
}

/** The beginning of an answer, on one line. */
export function shown(whole: string): string {
  const text = whole.replace(/\s+/g, ' ').trim();
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
