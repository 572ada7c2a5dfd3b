import type { Text } from './message.ts';

/** Every way in which a promise of the program can be broken. Expected outcomes are returned, not thrown. */
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

/** A single problem, of several. `subject` is what it is about: a field of the input, a variable, an address. */
export type FieldProblem = { subject: Text; message: Text };

/** A broken promise, or a refusal. `text` says what happened, the values seen and what to do; it never holds a secret. `message` is the same for a log. */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly text: Text;
  readonly retryable: boolean;
  readonly problems: readonly FieldProblem[];

  constructor(
    code: ErrorCode,
    text: Text,
    options: { retryable?: boolean; cause?: unknown; problems?: readonly FieldProblem[] } = {},
  ) {
    super(String(text), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.text = text;
    this.retryable = options.retryable ?? false;
    this.problems = options.problems ?? [];
  }
}
