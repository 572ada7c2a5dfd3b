import type { Text } from '../domain/message.ts';
import type { UnixMs } from '../domain/time.ts';

/** An attempt, as it was made and as it is recorded. */
export type DiagnosedAttempt = {
  /** The HTTP status; `null` when none came. */
  status: number | null;
  /** The failure: a class, a colon, plain words, and at the end a code in parentheses. `null`: delivered. */
  error: string | null;
  /** The first bytes of the answer's body, at most 8 KiB. */
  answer: Uint8Array | null;
  /** The Date header of the answer. It is not kept, so it is known of an attempt just made only. */
  date: string | null;
  attemptedAt: UnixMs;
  latencyMs: number | null;
  sent: SentWebhook;
  /** `whsec_…`, those that ended lately too. `null`: they could not be opened. */
  secrets: readonly SigningSecret[] | null;
};

/** `id` is `evt_…`, as the header had it. */
type SentWebhook = { id: string; body: Uint8Array };

/** `endsAt` `null`: the current one. */
export type SigningSecret = { secret: string; endsAt: UnixMs | null };

/**
 * A fault of a receiver and its fix, in plain words without any text from the receiver. `proven` follows from what the receiver says that
 * it saw; `likely` is the usual meaning of such an outcome. `code` is for scripts.
 */
export type Diagnosis = { code: string; certainty: 'proven' | 'likely'; problem: string; fix: Text };
