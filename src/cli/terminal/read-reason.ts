import { AppError } from '../../domain/errors.ts';
import { readOneNote } from '../../operator/input/read-note.ts';

/** The reason that a decision is recorded with, for ever: one line. Errors: `INVALID_ARGUMENT`. */
export function readReason(option: string | undefined): string {
  const reason = readOneNote(option, 'reason');
  if (reason !== '') return reason;
  throw new AppError('INVALID_ARGUMENT', '--reason is missing: say why, for it is recorded for ever');
}
