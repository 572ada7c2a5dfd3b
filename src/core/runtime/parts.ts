type Part = { stop(): Promise<unknown> };

/**
 * Collects started parts. `stop` stops them in reverse order. If one fails to stop, for example because the disk is full, the others are
 * still stopped, and the first error is thrown at the end.
 */
export function createParts() {
  const parts: Part[] = [];
  return {
    add: async <Started extends Part>(starting: Started | Promise<Started>): Promise<Started> => {
      const part = await starting;
      parts.push(part);
      return part;
    },
    stop: async (): Promise<void> => {
      const failures: unknown[] = [];
      for (const part of parts.splice(0).reverse()) {
        await part.stop().catch((error: unknown) => failures.push(error));
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
