import { readFile } from 'node:fs/promises';

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
