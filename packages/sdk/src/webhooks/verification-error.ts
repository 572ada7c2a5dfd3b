/**
 * `BODY_TOO_LARGE`: more than 64 KiB, which no event has. `EVENT_MALFORMED`: the signature is valid, but the body isn't an event with the
 * id in the header, or it belongs to a project other than the receiver's.
 */
export type VerificationCode =
  | 'HEADER_MISSING'
  | 'HEADER_MALFORMED'
  | 'TIMESTAMP_TOO_OLD'
  | 'TIMESTAMP_TOO_NEW'
  | 'SIGNATURE_MISMATCH'
  | 'BODY_NOT_RAW'
  | 'BODY_TOO_LARGE'
  | 'EVENT_MALFORMED';

/** What the receiver saw, so that the sender can tell whether a clock is wrong, the body was changed, or the secret differs. */
export type Diagnosis = {
  /** The receiver's time, in Unix seconds. */
  receivedAt: number;
  /** Hash of the raw bytes in hex, or null if there were none. */
  bodySha256: string | null;
  bodyBytes: number | null;
  /**
   * For each secret, 8 hex digits of an HMAC over the webhook-id, joined by commas; null if there's no readable id. It doesn't reveal the
   * secrets.
   */
  secretCheck: string | null;
};

/** A webhook that you must not act on. The message contains no secret. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: VerificationCode;
  readonly diagnosis: Diagnosis;

  constructor(code: VerificationCode, message: string, diagnosis: Diagnosis) {
    super(message);
    this.code = code;
    this.diagnosis = diagnosis;
  }
}
