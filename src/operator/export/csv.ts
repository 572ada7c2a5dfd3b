/** The characters that start a formula in spreadsheet programs, with the wide and small forms that they convert to these. */
const TRIGGER = '[=+\\-@＝＋－＠﹦﹢﹣﹫−]';
/**
 * The places where a program may see a cell begin: its start, and the other characters at which some programs split lines.
 * Programs see the trigger even behind white space and invisible characters.
 */
const FORMULA = new RegExp(`(?<=^|[;\\t\\r\\n])(?=[\\s\\p{C}]*${TRIGGER})|^(?=[\\t\\r])`, 'gu');

/**
 * Writes a line of CSV (RFC 4180), with its CRLF. A text that a spreadsheet program would run as a formula gets an apostrophe
 * before it, so that such programs show it as text. Numbers and times are written as they are.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(cell: string | number | null): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = cell.replace(FORMULA, "'");
  return /[",;\r\n\t]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
