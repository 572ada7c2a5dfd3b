/** Put this at the end of a `switch` over a union: the compiler then rejects a missing case, and at run time it throws. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
