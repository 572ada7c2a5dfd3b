/** Describes anything that was thrown. An error without a message is described by its code, such as `ECONNREFUSED`, or by its name. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error ? String(error.code) : error.name);
}
