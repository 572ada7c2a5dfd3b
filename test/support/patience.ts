/**
 * How long a test waits for what must come. It only ends what hangs, just before its test would be ended and could not say what it saw
 * last: a busy machine takes many times as long as a quiet one.
 */
export const PATIENCE_MS = 80_000;
