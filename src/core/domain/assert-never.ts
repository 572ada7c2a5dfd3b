/** Ends a `switch` over a union. The compiler rejects a forgotten case, and at run time this throws. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
