import { AppError } from '../../domain/errors.ts';
import type { Terminal } from './terminal.ts';

/** More than the longest secret takes, and the longest URL that holds one. */
const MAX_SECRET_INPUT = 4096;

/** The secret that was given, `-` reads it from standard input. Errors: `INVALID_ARGUMENT`. */
export async function readSecret(
  option: string | undefined,
  { stdin }: Pick<Terminal, 'stdin'>,
): Promise<string | undefined> {
  if (option !== '-') return option?.trim();
  let text = '';
  for await (const chunk of stdin) {
    text += String(chunk);
    if (text.length > MAX_SECRET_INPUT) {
      throw new AppError('INVALID_ARGUMENT', 'standard input holds more than one secret: give one, on one line');
    }
  }
  return text.trim();
}
