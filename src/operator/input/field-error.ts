import { AppError } from '../../domain/errors.ts';

/** A field of an input cannot be taken. `reason` goes on behind its name: `is "odd": choose dead or delivered`. */
export class FieldError extends AppError {
  readonly field: string;
  readonly reason: string;
  /** The kind of secret that the field holds, which is not repeated: who gave it must hear where it now stands. */
  readonly secret: string | null;

  constructor(field: string, reason: string, secret: string | null = null) {
    super('INVALID_ARGUMENT', `${field} ${reason}`);
    this.field = field;
    this.reason = reason;
    this.secret = secret;
  }
}

/** Refuses a field that holds a secret. */
export function refuseSecret(field: string, kind: string | null): void {
  if (kind !== null) throw new FieldError(field, `looks like ${kind}, and is kept and shown`, kind);
}
