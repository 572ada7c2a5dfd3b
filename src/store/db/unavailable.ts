import { AppError } from '../../domain/errors.ts';
import { shortageOf } from '../../domain/shortage.ts';
import { reasonOf } from '../../runtime/reason-of.ts';

/**
 * Throws an error of node-postgres on: as `DATABASE_UNAVAILABLE` where it is that the database does not answer, or is short of something,
 * of which `onShortage` is told.
 */
export function rethrow(error: unknown, onShortage?: (what: string) => void): never {
  if (!isUnavailable(error)) throw error;
  const reason = reasonOf(error);
  const shortage = shortageOf((error as { code?: unknown }).code);
  if (shortage !== null) onShortage?.(shortage);
  throw new AppError('DATABASE_UNAVAILABLE', `${shortage ?? 'the database does not answer'}: ${reason}`, {
    retryable: true,
    cause: error,
  });
}

/**
 * Whether an error that a statement met is the answer of a server that goes on: the statement has done nothing, and the cause may lie in
 * what it was asked, or in the locks of others. After other errors it is not known what was done, or no other statement would fare better.
 */
export function isOfStatement(error: unknown): boolean {
  if (!(error instanceof AppError)) return true;
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(55P03|40001|40P01)$/.test(code);
}

/** Whether a statement took longer than it may. */
export function isTimeout(error: unknown): boolean {
  return error instanceof AppError && ((error.cause ?? {}) as { code?: unknown }).code === '57014';
}

/**
 * SQLSTATE classes of a server that is away, full, or going down: 08, 53, 57P, 58, one that we do not take (25006), a database that
 * takes no connections (55000), and our own timeouts.
 */
function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') {
    return (
      /^(08|53|57P|58)/.test(code) ||
      /^(57014|55000|55P03|40001|40P01|25006|25P03|3D000|28P01|28000|E[A-Z]+)$/.test(code) ||
      // The one who answers has not shown to be the server: Node's and OpenSSL's names.
      /^(ERR_(TLS|SSL)_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/.test(code)
    );
  }
  return (
    error instanceof Error &&
    /(timeout|terminated|Connection ended|not queryable|Cannot use a pool|SSL connection)/i.test(error.message)
  );
}
