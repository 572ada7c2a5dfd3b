/**
 * What the exit codes mean. Scripts rely on them: they never change.
 */
export const EXIT = { ok: 0, failed: 1, usage: 2, notFound: 3, conflict: 4, unavailable: 5 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export type CliErrorCode =
  | 'USAGE'
  | 'INVALID_ARGUMENT'
  | 'CONFIG_INVALID'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'DATABASE_UNAVAILABLE'
  | 'MIGRATIONS_PENDING'
  | 'PORT_IN_USE';

/** One of several things that are wrong. `subject` is what it is about: a variable, an option, an address. */
export type Problem = { subject: string; message: string };

/** A command cannot do what it was asked. The message says what happened, the value seen and what to do, with no secret. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: CliErrorCode;
  readonly problems: readonly Problem[];

  constructor(code: CliErrorCode, message: string, options: { problems?: readonly Problem[]; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.problems = options.problems ?? [];
  }
}

/** The exit code of each error code, ours and those of the parts below. Anything else is `failed`. */
const EXIT_CODES: Readonly<Record<string, ExitCode>> = {
  USAGE: EXIT.usage,
  INVALID_ARGUMENT: EXIT.usage,
  CONFIG_INVALID: EXIT.usage,
  NOT_FOUND: EXIT.notFound,
  CONFLICT: EXIT.conflict,
  DATABASE_UNAVAILABLE: EXIT.unavailable,
  DATA_DIR_IN_USE: EXIT.unavailable,
  PORT_IN_USE: EXIT.unavailable,
  SANDBOX_NOT_RUNNING: EXIT.unavailable,
};

export type DescribedError = {
  code: string;
  message: string;
  problems: readonly Problem[];
  exitCode: ExitCode;
  /** For an error that nobody foresaw. */
  stack: string | undefined;
};

/** The errors that the parts below throw on purpose; their messages are written for people. */
const EXPECTED = ['CliError', 'AppError', 'DataDirError', 'EmbeddedPostgresError', 'KeyRingError'];

export function describeError(error: unknown): DescribedError {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'FAILED';
  if (!(error instanceof Error) || !EXPECTED.includes(error.name)) {
    const stack = error instanceof Error ? error.stack : undefined;
    return { code: 'FAILED', message: `unexpected: ${message}`, problems: [], exitCode: EXIT.failed, stack };
  }
  const problems = error instanceof CliError ? error.problems : [];
  return { code, message, problems, exitCode: EXIT_CODES[code] ?? EXIT.failed, stack: undefined };
}
