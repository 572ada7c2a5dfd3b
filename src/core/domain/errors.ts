import { say, type Text } from './message.ts';

/** The codes of all errors that Quittance throws. Expected outcomes are returned, not thrown. */
export type ErrorCode =
  | 'CONFIG_INVALID'
  | 'DATABASE_UNAVAILABLE'
  | 'MIGRATIONS_PENDING'
  | 'SCHEMA_NEWER'
  | 'SCHEMA_CHANGED'
  | 'ADDRESS_DAMAGED'
  | 'ROW_CHANGED'
  | 'ADDRESS_NOT_VOUCHED'
  | 'MANIFEST_REFUSED'
  | 'MIGRATION_REFUSED'
  | 'MIGRATION_BLOCKED'
  | 'BACKUP_DAMAGED'
  | 'BACKUP_TAMPERED'
  | 'BACKUP_UNAUTHENTICATED'
  | 'BACKUP_ENCRYPTED'
  | 'DATABASE_NOT_EMPTY'
  | 'DATABASE_COPIED'
  | 'LEDGER_CLOSED'
  | 'LEASE_LOST'
  | 'CHAIN_CONTRADICTION'
  | 'CHAIN_HALTED'
  | 'BLOCK_UNVERIFIABLE'
  | 'NODES_DISAGREE'
  | 'NO_NODE'
  | 'NODE_REFUSED'
  | 'NODE_WRONG_NETWORK'
  | 'PORT_IN_USE'
  | 'USAGE'
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'FORBIDDEN'
  | 'SERVER_UNAVAILABLE'
  | 'SANDBOX_NOT_RUNNING'
  | 'SANDBOX_REFUSED';

/** One of several problems. `subject` is the input field, the variable or the address. */
export type FieldProblem = { subject: Text; message: Text };

/**
 * An unexpected failure, or a refusal. `text` says what happened, with the values seen, and what to do; it never contains a secret.
 * `message` is the same text as a string, for logs.
 */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly text: Text;
  readonly retryable: boolean;
  readonly problems: readonly FieldProblem[];
  /** The reason in text that anyone may see, because it names no host; `null` if there's none. */
  readonly publicReason: string | null;

  constructor(
    code: ErrorCode,
    text: Text,
    options: {
      retryable?: boolean;
      cause?: unknown;
      problems?: readonly FieldProblem[];
      publicReason?: string | null;
    } = {},
  ) {
    super(String(text), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.text = text;
    this.retryable = options.retryable ?? false;
    this.problems = options.problems ?? [];
    this.publicReason = options.publicReason ?? null;
  }
}

type Said = Parameters<typeof say>;
const errorOf =
  (code: ErrorCode) =>
  (...text: Said): AppError =>
    new AppError(code, say(...text));

/** These make errors whose text is a template, as `say` makes it: throw conflict`${id} is already disabled`. */
export const usageError = errorOf('USAGE');
export const invalidArgument = errorOf('INVALID_ARGUMENT');
export const notFound = errorOf('NOT_FOUND');
export const conflict = errorOf('CONFLICT');
export const configInvalid = errorOf('CONFIG_INVALID');

/** An error about nodes or their answers: a later attempt, or another node, may succeed. */
export function retryableError(code: ErrorCode, text: Text): AppError {
  return new AppError(code, text, { retryable: true });
}

/** Whether the database doesn't respond or is short of a resource. Otherwise the database works, and the error has another cause. */
export function isDatabaseUnavailable(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE';
}

/** Resource shortages of PostgreSQL by SQLSTATE (class 53): the database responds, but refuses the statement. */
const SHORTAGES = {
  '53000': 'the database has run out of resources',
  '53100': 'the database disk is full',
  '53200': 'the database has run out of memory',
  '53300': 'the database accepts no more connections',
  '53400': 'the database has reached a configured limit',
} as const;

/** Returns the shortage that a SQLSTATE means, as text that anyone may see, or `null` if the SQLSTATE means something else. */
export function shortageOf(sqlState: unknown): string | null {
  if (typeof sqlState !== 'string' || !sqlState.startsWith('53')) return null;
  return Object.hasOwn(SHORTAGES, sqlState) ? SHORTAGES[sqlState as keyof typeof SHORTAGES] : SHORTAGES['53000'];
}

/** Returns the shortage that caused a `DATABASE_UNAVAILABLE` error, or `null` for any other error. */
export function shortageBehind(error: unknown): string | null {
  if (!isDatabaseUnavailable(error)) return null;
  return shortageOf((error.cause as { code?: unknown } | undefined)?.code);
}
