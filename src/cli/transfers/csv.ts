/** What spreadsheet programs take for the start of a formula, with the wide and small forms that they turn into it. */
const TRIGGER = '[=+\\-@＝＋－＠﹦﹢﹣﹫−]';
/**
 * Where a cell may begin: at its start, and where a program that splits lines at other places than commas would cut. White
 * space and invisible characters before the trigger do not keep a program from seeing it.
 */
const FORMULA = new RegExp(`(?<=^|[;\\t\\r\\n])(?=[\\s\\p{C}]*${TRIGGER})|^(?=[\\t\\r])`, 'gu');

/**
 * One line of CSV (RFC 4180), with its CRLF. A text that a spreadsheet program would run as a formula gets an apostrophe
 * before it, which such programs show as text; numbers and times are written as they are.
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
