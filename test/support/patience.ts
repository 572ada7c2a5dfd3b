/**
 * How long a test waits for an expected result. It only ends tests that hang, just before the test runner would, and reports what was seen
 * last. A busy machine takes many times as long as an idle one.
 */
export const PATIENCE_MS = 80_000;
