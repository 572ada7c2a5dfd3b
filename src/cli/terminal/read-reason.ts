import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { readNote } from '../../operator/input/read-note.ts';

/** The reason that a decision is recorded with, for ever: one line. Errors: `INVALID_ARGUMENT`. */
export function readReason(option: string | undefined): string {
  const problems: FieldProblem[] = [];
  const reason = readNote(option, problems, 'reason');
  const [problem] = problems;
  if (problem !== undefined) throw new AppError('INVALID_ARGUMENT', problem.message);
  if (reason !== '') return reason;
  throw new AppError('INVALID_ARGUMENT', '--reason is missing: say why, for it is recorded for ever');
}
