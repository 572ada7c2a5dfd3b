import { AppError } from '../../core/domain/errors.ts';
import { reasonOf } from '../../core/runtime/reason-of.ts';
import { writeText } from '../../faces/operator/command-words.ts';

/** Scripts rely on these exit codes, so they never change. */
export const EXIT = { ok: 0, failed: 1, usage: 2, notFound: 3, conflict: 4, unavailable: 5 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code for each error code, both our own and those from lower layers. All others are `failed`. */
const EXIT_CODES: Readonly<Record<string, ExitCode>> = {
  USAGE: EXIT.usage,
  INVALID_ARGUMENT: EXIT.usage,
  CONFIG_INVALID: EXIT.usage,
  NOT_FOUND: EXIT.notFound,
  CONFLICT: EXIT.conflict,
  DATABASE_UNAVAILABLE: EXIT.unavailable,
  MIGRATION_BLOCKED: EXIT.unavailable,
  DATA_DIR_IN_USE: EXIT.unavailable,
  PORT_IN_USE: EXIT.unavailable,
  SANDBOX_NOT_RUNNING: EXIT.unavailable,
  SERVER_UNAVAILABLE: EXIT.unavailable,
};

export type DescribedError = {
  code: string;
  message: string;
  problems: readonly { subject: string; message: string }[];
  exitCode: ExitCode;
  /** The stack trace of an unexpected error. */
  stack: string | undefined;
};

/** Errors that lower layers throw deliberately, with messages for people. */
const EXPECTED = ['AppError', 'DataDirError', 'EmbeddedPostgresError', 'KeyRingError'];

export function describeError(error: unknown): DescribedError {
  const message = reasonOf(error);
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'FAILED';
  if (!(error instanceof Error) || !EXPECTED.includes(error.name)) {
    const stack = error instanceof Error ? error.stack : undefined;
    return { code: 'FAILED', message: `unexpected: ${message}`, problems: [], exitCode: EXIT.failed, stack };
  }
  const exitCode = EXIT_CODES[code] ?? EXIT.failed;
  if (!(error instanceof AppError)) return { code, message, problems: [], exitCode, stack: undefined };
  const problems = error.problems.map(({ subject, message: text }) => {
    return { subject: writeText(subject), message: writeText(text) };
  });
  return { code, message: writeText(error.text), problems, exitCode, stack: undefined };
}
