import { AppError } from '../../domain/errors.ts';
import { decodeId } from '../../domain/ids.ts';
import { clip } from '../input/clip.ts';

/** A `req_…` as it is kept; `null` for any other text. */
export function findRequestId(text: string): string | null {
  const id = text.trim().toLowerCase();
  return decodeId('req', id) === null ? null : id;
}

/** The same where nothing else is taken. Errors: `INVALID_ARGUMENT`. */
export function readRequestId(text: string): string {
  const id = findRequestId(text);
  if (id !== null) return id;
  throw new AppError(
    'INVALID_ARGUMENT',
    `${clip(text)} is not a request id: it is "req_" and 26 characters, as the header X-Request-Id has it`,
  );
}
