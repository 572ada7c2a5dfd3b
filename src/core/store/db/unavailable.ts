import { AppError, shortageOf } from '../../domain/errors.ts';
import { reasonOf } from '../../runtime/reason-of.ts';

/**
 * configuration_limit_exceeded, as when a report exceeds `temp_file_limit`: only the statement itself was too large. Other statements still
 * succeed, so invoices can be created.
 */
const STATEMENT_TOO_LARGE = '53400';

/**
 * Rethrows a node-postgres error. If the database doesn't respond or is short of a resource, the error is rethrown as
 * `DATABASE_UNAVAILABLE`; in case of a shortage that affects other statements too, `onShortage` is called first.
 */
export function rethrow(error: unknown, onShortage?: (what: string) => void): never {
  if (!isUnavailable(error)) throw error;
  const reason = reasonOf(error);
  const { code } = error as { code?: unknown };
  const shortage = shortageOf(code);
  if (shortage !== null && code !== STATEMENT_TOO_LARGE) onShortage?.(shortage);
  throw new AppError('DATABASE_UNAVAILABLE', `${shortage ?? 'the database does not respond'}: ${reason}`, {
    retryable: true,
    cause: error,
  });
}

/**
 * Whether an error came from a server that keeps working. In that case, the statement had no effect, and the cause may be its input or
 * locks held by others. After any other error, the statement's effect is unknown, or every other statement would fail as well.
 */
export function isOfStatement(error: unknown): boolean {
  if (!(error instanceof AppError)) return true;
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(55P03|40001|40P01)$/.test(code);
}

export function isTimeout(error: unknown): boolean {
  return error instanceof AppError && ((error.cause ?? {}) as { code?: unknown }).code === '57014';
}

/**
 * The SQLSTATE classes for a server that is down, full or shutting down: 08, 53, 57P, 58. Also the codes for a refused server (25006), for
 * a database that doesn't accept connections (55000), and for our own timeouts.
 */
function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') {
    return (
      /^(08|53|57P|58)/.test(code) ||
      /^(57014|55000|55P03|40001|40P01|25006|25P03|3D000|28P01|28000|E[A-Z]+)$/.test(code) ||
      // These are error codes of Node.js and OpenSSL for a server that couldn't prove its identity.
      /^(ERR_(TLS|SSL)_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/.test(code)
    );
  }
  return (
    error instanceof Error &&
    /(timeout|terminated|Connection ended|not queryable|Cannot use a pool|SSL connection)/i.test(error.message)
  );
}
