import { AppError } from '../../domain/errors.ts';

/**
 * Handles an error of a node that may fail: the pool has already recorded it, and another node may answer. Unexpected errors are rethrown.
 */
export function orNull(error: unknown): null {
  if (error instanceof AppError) return null;
  throw error;
}
