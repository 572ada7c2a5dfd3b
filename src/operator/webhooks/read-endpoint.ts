import { EVENT_TYPES, type EventType } from '../../domain/event.ts';
import { clip } from '../input/clip.ts';
import { FieldError, refuseSecret } from '../input/field-error.ts';
import { spotSecretInNote } from '../input/spot-secret.ts';

/** The types of events that a field names; `null` stands for all. Errors: `INVALID_ARGUMENT`. */
export function readEventTypes(field: string, texts: readonly string[]): EventType[] | null {
  const names = texts.map((text) => text.trim()).filter((text) => text !== '');
  if (names.length === 1 && names[0] === 'all') return null;
  const types = EVENT_TYPES.filter((type) => names.includes(type));
  const unknown = names.find((name) => !types.some((type) => type === name));
  if (unknown === undefined && types.length > 0) return types;
  const problem = unknown === undefined ? 'is empty' : `has ${clip(unknown)}, which is no type of event`;
  throw new FieldError(field, `${problem}: choose all, or some of ${EVENT_TYPES.join(', ')}`);
}

/** The bound of the schema. */
const MAX_LINE = 200;

/** Reads a line of free text, which is kept and shown; may be empty. Errors: `INVALID_ARGUMENT`. */
export function readLine(field: string, text: string): string {
  const line = text.trim();
  refuseSecret(field, spotSecretInNote(line));
  const length = [...line].length;
  if (length <= MAX_LINE && !/[\p{Cc}\p{Cs}]/u.test(line)) return line;
  const problem = length > MAX_LINE ? `has ${length} characters` : 'holds a line break or a control character';
  throw new FieldError(field, `${problem}: give at most ${MAX_LINE} characters on one line`);
}
