import type { FieldError } from '../../operator/input/field-error.ts';
import { secretProblem } from '../../operator/input/secret-message.ts';

/** The option that a field is given by: `webhookUrl` by `--webhook-url`. */
export function optionOf(field: string): string {
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** A wrong field as the option that it was given by: `--limit is "x": it takes 1 to 500`. */
export function optionText({ field, reason, secret }: FieldError): string {
  const option = optionOf(field);
  return secret === null ? `${option} ${reason}` : secretProblem(option, secret).message;
}
