import { parseSecret } from '../../webhooks/sign.ts';
import { FieldError } from './problems.ts';

/** A signing secret that was given. Errors: `INVALID_ARGUMENT`, without the secret. */
export function readGivenSecret(text: string): string {
  try {
    parseSecret(text);
    return text;
  } catch {
    throw new FieldError(
      'secret',
      `(${text.length} characters, not shown) is not "whsec_" and the base64 of 24 to 64 bytes: leave it out to generate one, or create one with: echo "whsec_$(openssl rand -base64 32)"`,
    );
  }
}
