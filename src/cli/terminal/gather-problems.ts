import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { FieldError } from '../../operator/input/field-error.ts';
import { optionOf } from './option-text.ts';

/**
 * Runs what reads a part of the input. Its mistakes are added to `problems`, so that all of a command is reported at once. `option`: what
 * the command line calls the field, if not by its name.
 */
export function gatherProblems<Input>(problems: FieldProblem[], read: () => Input, option?: string): Input | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldError) {
      const subject = option ?? optionOf(error.field);
      problems.push({ subject, message: `${subject} ${error.reason}` });
    } else if (error instanceof AppError && error.problems.length > 0) problems.push(...error.problems);
    else throw error;
    return undefined;
  }
}
