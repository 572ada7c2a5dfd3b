/** Every way in which a promise of the program can be broken. Expected outcomes are returned, not thrown. */
export type ErrorCode =
  | 'CONFIG_INVALID'
  | 'DATABASE_UNAVAILABLE'
  | 'MIGRATIONS_PENDING'
  | 'SCHEMA_NEWER'
  | 'SCHEMA_CHANGED'
  | 'ADDRESS_DAMAGED'
  | 'MIGRATION_REFUSED'
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
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'SANDBOX_NOT_RUNNING'
  | 'SANDBOX_REFUSED';

/** A broken promise. `message` says what happened, the values seen and what to do; it never holds a secret. */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}
