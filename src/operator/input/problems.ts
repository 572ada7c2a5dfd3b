import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { say, type Text } from '../../domain/message.ts';
import { detectSecret } from './detect-secret.ts';

/** A field of an input cannot be taken. `reason` goes on behind its name: `is "odd": choose dead or delivered`, or `: this looks like a seed phrase`. */
export class FieldError extends AppError {
  readonly field: string;
  readonly reason: Text;

  constructor(field: string, reason: Text) {
    super('INVALID_ARGUMENT', fieldProblem(field, reason).message);
    this.field = field;
    this.reason = reason;
  }
}

/** Refuses a field that holds a secret, which is not repeated: who gave it must hear where it now stands. */
export function refuseSecret(field: string, kind: string | null): void {
  if (kind !== null) throw new FieldError(field, say`: ${{ secret: kind }}`);
}

/** The same as one problem of an input, which may have several. */
export function fieldProblem(field: string, reason: Text): FieldProblem {
  const gap = String(reason).startsWith(':') ? '' : ' ';
  return { subject: say`${{ field }}`, message: say`${{ field }}${gap}${reason}` };
}

/** Runs what reads a part of the input. Its mistakes are added to `problems`, so that all of a command is reported at once. */
export function gatherProblems<Input>(problems: FieldProblem[], read: () => Input): Input | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldError) problems.push(fieldProblem(error.field, error.reason));
    else if (error instanceof AppError && error.problems.length > 0) problems.push(...error.problems);
    else throw error;
    return undefined;
  }
}

/** The problem of a name of a project or key, or `null`. The schema sets the bound, in characters. */
export function nameProblem(name: string): string | null {
  const secret = detectSecret(name);
  if (secret !== null)
    return `looks like ${secret}, but names are stored and shown in plain text: give another name. If it is a real secret, replace it`;
  const length = [...name].length;
  if (length === 0) return 'is empty: give 1 to 100 characters';
  if (length > 100) return `has ${length} characters: give at most 100`;
  if (/\p{Cc}/u.test(name)) return 'contains a control character, such as a line break: remove it';
  return null;
}

/** A given value for a message: quoted and short. A text that looks like a secret is not shown. */
export function clip(text: string): string {
  return detectSecret(text) === null ? quote(text) : `(${text.length} characters, not shown)`;
}

/** A value of the ledger, for a message: quoted and short. */
export function quote(text: string): string {
  return quoteWhole(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** A value in quotes as JSON, in which nothing can rewrite what a terminal shows. */
export function quoteWhole(text: string): string {
  return printableJson(JSON.stringify(text));
}

/** Stored text for a sentence: short enough to read. The data has all of it. */
export function shorten(text: string, length = 80): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}

/** Control characters in stored text could rewrite what the terminal shows. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '�');
}

/**
 * The same for JSON, which stays JSON of the same value: characters are escaped, but for the line feeds between its parts. JSON
 * itself does so only below U+0020, which leaves other control characters and marks of direction.
 */
export function printableJson(json: string): string {
  return json.replace(/(?!\n)\p{C}/gu, (character) => character.split('').map(escapeUnit).join(''));
}

/** Escapes a code unit of UTF-16. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
