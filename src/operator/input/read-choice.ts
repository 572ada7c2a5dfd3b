import { clip } from './clip.ts';
import { FieldError } from './field-error.ts';

/** Reads one of `choices`; `null` if the field is left out. Errors: `INVALID_ARGUMENT`. */
export function readChoice<Choice extends string>(
  field: string,
  text: string | undefined,
  choices: readonly Choice[],
): Choice | null {
  if (text === undefined) return null;
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new FieldError(field, `is ${clip(text)}: choose ${choices.join(', ')}`);
}

/** How many a list shows. Errors: `INVALID_ARGUMENT`. */
export function readLimit(text: string, { least, most }: { least: number; most: number }): number {
  // A number that may not be 0 does not begin with it.
  const digits = least === 0 ? /^\d{1,4}$/ : /^[1-9]\d{0,3}$/;
  const limit = digits.test(text) ? Number(text) : -1;
  if (limit >= least && limit <= most) return limit;
  throw new FieldError('limit', `is ${clip(text)}: give ${least} to ${most}`);
}
