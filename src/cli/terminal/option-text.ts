import type { FieldError } from '../../operator/input/field-error.ts';
import { secretProblem } from './secret-problem.ts';

/** A wrong field as the option that it was given by: `--limit is "x": it takes 1 to 500`. */
export function optionText({ field, reason, secret }: FieldError): string {
  return secret === null ? `--${field} ${reason}` : secretProblem(`--${field}`, secret).message;
}
