import { AppError } from '../../domain/errors.ts';

/** For a node that may not answer: the pool knows of it, and another one may. An unexpected error is thrown on. */
export function orNull(error: unknown): null {
  if (error instanceof AppError) return null;
  throw error;
}
