import { AppError } from '../../domain/errors.ts';
import { reasonOf } from '../../runtime/reason-of.ts';

/** The length of a refusal that is shown in messages. */
const SHOWN_CHARACTERS = 200;
/** The longest pause that a node may request. A wrong header must not silence the node for a day. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

type Headers = Record<string, string | string[] | undefined>;

/**
 * `isLimit`: the node refuses the caller or the request rate, whatever the question. `wasHungUp`: it closed the connection without an
 * answer.
 */
export type Refusal = {
  reason: string;
  retryAfterMs: number | null;
  wasReached: boolean;
  isLimit: boolean;
  wasHungUp?: boolean;
};

/** The node, or something in front of it, refused. */
export class TransportRefusal extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

/** `NODE_REFUSED`, because the answer exceeds the caller's limit. */
export class AnswerTooLarge extends AppError {
  constructor(message: string) {
    super('NODE_REFUSED', message, { retryable: true });
  }
}

/** Wraps an error that occurred after the answer began: the node was reached, whatever broke the rest. */
export function afterReached(error: unknown): Error {
  if (error instanceof TransportRefusal || error instanceof AnswerTooLarge) return error;
  return new TransportRefusal({ reason: reasonOf(error), retryAfterMs: null, wasReached: true, isLimit: false });
}

/**
 * The pause that a node asks for, in milliseconds and bounded; `null` if it asks for none. It's in `Retry-After` (seconds, or a date
 * relative to the answer's own `Date`). TronGrid writes it in the text: `{"Success":false,"Error":"The key exceeds the frequency limit(15),
 * and the query server is suspended for 30s","StatusCode":403}`.
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
