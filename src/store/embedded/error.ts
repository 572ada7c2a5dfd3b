import { readFile } from 'node:fs/promises';

/** The embedded PostgreSQL cannot do its work. The message says why and what to do; it holds no secret. */
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

/** The text of a file; undefined if there is none. */
export async function readIfExists(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/** Undefined for anything but an error of the operating system. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
