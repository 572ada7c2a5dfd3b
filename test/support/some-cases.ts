import { inject, test } from 'vitest';

/**
 * Declares a test that only `npm run test:long` runs. It takes a second of processor time or more, and either `npm test` covers the same
 * subject with cheaper tests, or it concerns packaging.
 */
export const longTest = test.runIf(inject('everyCase'));

/** Returns every case in `npm run test:long`. In `npm test`, where all of them would take minutes, returns every `step`-th. */
export function someCases<Case>(cases: readonly Case[], step: number): Case[] {
  return cases.filter((_, at) => inject('everyCase') || at % step === 0);
}

/** Combines each case with every variant in `npm run test:long`. In `npm test`, gives each case one variant in turn. */
export function withVariants<Case, Variant>(cases: readonly Case[], variants: readonly Variant[]): [Case, Variant][] {
  return cases.flatMap((each, at) =>
    variants
      .filter((_, index) => inject('everyCase') || index === at % variants.length)
      .map((variant): [Case, Variant] => [each, variant]),
  );
}
