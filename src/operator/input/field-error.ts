import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { say, type Text } from '../../domain/message.ts';

/** A field of an input cannot be taken. `reason` goes on behind its name: `is "odd": choose dead or delivered`, or `: this looks like a seed phrase`. */
export class FieldError extends AppError {
  readonly field: string;
  readonly reason: Text;

  constructor(field: string, reason: Text) {
    super('INVALID_ARGUMENT', fieldProblem(field, reason).message);
    this.field = field;
    this.reason = reason;
  }
}

/** Refuses a field that holds a secret, which is not repeated: who gave it must hear where it now stands. */
export function refuseSecret(field: string, kind: string | null): void {
  if (kind !== null) throw new FieldError(field, say`: ${{ secret: kind }}`);
}

/** The same as one problem of an input, which may have several. */
export function fieldProblem(field: string, reason: Text): FieldProblem {
  const gap = String(reason).startsWith(':') ? '' : ' ';
  return { subject: say`${{ field }}`, message: say`${{ field }}${gap}${reason}` };
}
