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
