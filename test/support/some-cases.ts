import { inject } from 'vitest';

/** Every case in `npm run test:long`; each `step`-th in `npm test`, where all of them together would take minutes. */
export function someCases<Case>(cases: readonly Case[], step: number): Case[] {
  return cases.filter((_, at) => inject('everyCase') || at % step === 0);
}

/** Each case with every variant in `npm run test:long`; in `npm test` with one, and the next case with the next. */
export function withVariants<Case, Variant>(cases: readonly Case[], variants: readonly Variant[]): [Case, Variant][] {
  return cases.flatMap((each, at) =>
    variants
      .filter((_, index) => inject('everyCase') || index === at % variants.length)
      .map((variant): [Case, Variant] => [each, variant]),
  );
}
