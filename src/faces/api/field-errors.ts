import type { FieldError } from '../web/problem.ts';

const SHOWN_CHARACTERS = 60;

export function fieldError(field: string, code: string, message: string): FieldError {
  return { field: clip(field), code, message };
}

/** Quotes input for an error message, shortened. */
export function show(text: string): string {
  return JSON.stringify(clip(text));
}

/** Returns the type of a JSON value, in words. */
export function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
}

function clip(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
