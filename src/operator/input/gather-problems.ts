import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { FieldError, fieldProblem } from './field-error.ts';

/** Runs what reads a part of the input. Its mistakes are added to `problems`, so that all of a command is reported at once. */
export function gatherProblems<Input>(problems: FieldProblem[], read: () => Input): Input | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldError) problems.push(fieldProblem(error.field, error.reason));
    else if (error instanceof AppError && error.problems.length > 0) problems.push(...error.problems);
    else throw error;
    return undefined;
  }
}
