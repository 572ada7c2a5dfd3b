import { readFile } from 'node:fs/promises';
import { DataDirError } from '../../runtime/instance-lock.ts';

/** The embedded PostgreSQL can't be used. The message says why and what to do, and contains no secrets. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  readonly code:
    | 'EMBEDDED_MISSING'
    | 'EMBEDDED_UNSUPPORTED'
    | 'EMBEDDED_UNREACHABLE'
    | 'EMBEDDED_WRONG_VERSION'
    | 'EMBEDDED_DAMAGED'
    | 'EMBEDDED_FAILED';

  constructor(code: EmbeddedPostgresError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Returns a file's text, or undefined if the file doesn't exist. */
export async function readIfExists(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/** Returns undefined for errors that don't come from the operating system. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Turns the last output of initdb or postgres into an error that says what to do. */
export function explainFailure(path: string, output: string, program: string): Error {
  const reason = lastLines(output);
  if (DISK_FULL.test(output)) {
    return new DataDirError(
      'DATA_DIR_FULL',
      `The disk that holds ${path} is full, so PostgreSQL cannot run. Free some space, then start Quittance again.\n${reason}`,
    );
  }
  if (NAMELESS_USER.test(output)) {
    return new EmbeddedPostgresError(
      'EMBEDDED_UNSUPPORTED',
      `uid ${process.getuid?.()} has no name in /etc/passwd, which PostgreSQL requires. ` +
        `Add a line for it, use a named user, or set DATABASE_URL.\n${reason}`,
    );
  }
  if (OTHER_VERSION.test(output)) {
    return new EmbeddedPostgresError(
      'EMBEDDED_WRONG_VERSION',
      `The database in ${path} was created by a different PostgreSQL version. ` +
        `Start the Quittance release that created it, or set DATABASE_URL.\n${reason}`,
    );
  }
  if (DAMAGED.test(output)) {
    return new EmbeddedPostgresError(
      'EMBEDDED_DAMAGED',
      `The database in ${path} is damaged. Restore it from a backup.\n${reason}`,
    );
  }
  return new EmbeddedPostgresError(
    'EMBEDDED_FAILED',
    `The embedded PostgreSQL (${program}) failed in ${path}:\n${reason}\nFix the cause named above, or set DATABASE_URL.`,
  );
}

/** Returns the error for a PostgreSQL that exited without having been stopped. `logTail` is the end of PostgreSQL's log. */
export function endedByItself(
  dataDir: string,
  { code, signal, logTail }: { code: number | null; signal: string | null; logTail: string },
): Error {
  if (DISK_FULL.test(logTail) || DAMAGED.test(logTail)) return explainFailure(dataDir, logTail, 'postgres');
  return new EmbeddedPostgresError(
    'EMBEDDED_FAILED',
    `The embedded PostgreSQL in ${dataDir} ended (${signal ?? `exit code ${code}`}), so Quittance stopped. ` +
      `Start Quittance again: no acknowledged data is lost. End of its log:\n${lastLines(logTail)}`,
  );
}

// These are PostgreSQL 18's English messages; LC_ALL=C makes sure that messages are in English.
const DISK_FULL = /No space left on device|Disk quota exceeded/;
const NAMELESS_USER = /could not look up (effective|local) user ID/;
const OTHER_VERSION = /database files are incompatible with server/;
const DAMAGED = /could not open (control )?file|could not locate a valid checkpoint|required WAL directory|PANIC:/;

/** The reason is at the end of the log. */
const MAX_LINES = 12;

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-MAX_LINES).join('\n') || '(it wrote nothing)';
}
