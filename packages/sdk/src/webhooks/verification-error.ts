/**
 * `BODY_TOO_LARGE`: more than 64 KiB, which no event has. `EVENT_MALFORMED`: genuinely signed, but not an event of the id that
 * the header names, or of another project than the receiver's.
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

/** What the receiver saw, so that the sender can tell a wrong clock, a changed body and another secret from each other. */
export type Diagnosis = {
  /** By the receiver's clock, in Unix seconds. */
  receivedAt: number;
  /** Of the raw bytes, in hex; null if there were none. */
  bodySha256: string | null;
  bodyBytes: number | null;
  /** 8 hex digits of an HMAC by each secret over the webhook-id, joined by commas; null without a readable id. Reveals no secret. */
  secretCheck: string | null;
};

/** A webhook that must not be acted upon. The message holds no secret. */
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
