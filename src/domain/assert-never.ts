/** Ends a `switch` over a union: the compiler refuses a forgotten case, and at run time it throws. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
