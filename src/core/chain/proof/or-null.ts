import { AppError } from '../../domain/errors.ts';

/** For a node that may fail: the pool already recorded it, and another node may answer. Unexpected errors are rethrown. */
export function orNull(error: unknown): null {
  if (error instanceof AppError) return null;
  throw error;
}
