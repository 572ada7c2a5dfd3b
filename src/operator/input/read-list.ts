import { AppError } from '../../domain/errors.ts';
import { parseAddress } from '../../tron/address.ts';
import { spotSecret, spotSecretInNote } from './spot-secret.ts';

/** A text that should be an address, and where it stands: `argument 2`, `line 14 of addresses.txt`. */
export type AddressEntry = { text: string; place: string };

/**
 * The addresses of a text with one on each line, where empty lines and what follows a `#` are skipped, or of CSV. `source`: what messages call
 * the text. Secrets come as entries, so that they are refused. Errors: `INVALID_ARGUMENT`.
 */
export function readList(content: string, source: string): AddressEntry[] {
  // A wallet file is one secret, whatever stands on its lines.
  if (/^\s*\{/.test(content) && spotSecret(content) !== null) return [{ text: content, place: source }];
  if (content.includes('\0') || content.startsWith('PK\u0003\u0004')) {
    throw new AppError('INVALID_ARGUMENT', `${source} is not a text file: save a spreadsheet as CSV first`);
  }
  if (isCsv(content)) return readCsvAddresses(content, source);
  return content.split(/\r?\n/).flatMap((line, index) => {
    const place = `line ${index + 1} of ${source}`;
    const [, text = '', comment = ''] = /^([^#]*)(.*)$/.exec(line) ?? [];
    // It comes as an entry, so that it is refused.
    const secrets = spotSecretInNote(comment) === null ? [] : [{ text: comment, place }];
    return text.trim() === '' ? secrets : [{ text: text.trim(), place }, ...secrets];
  });
}

/** Whether a text is meant as CSV: it has cells, quotes, or a heading `address`. */
export function isCsv(text: string): boolean {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/#.*/, ''));
  const first = lines.find((line) => line.trim() !== '') ?? '';
  return isHeading(first) || lines.some((line) => /[,;\t"]/.test(line.trim()));
}

/**
 * The addresses of a CSV text: the column with the heading `address`, or the only column there is. Cells that look like
 * secrets come instead, so that they are refused; a message never repeats cells of others.
 */
export function readCsvAddresses(text: string, source: string): AddressEntry[] {
  const read = readCsvRows(text);
  if (read.kind === 'invalid') throw refused(`line ${read.line} of ${source}: ${read.reason}`);
  const { rows } = read;
  const secrets = findSecrets(text, rows, source);
  if (secrets.length > 0) return secrets;
  const [head] = rows;
  if (head === undefined) return [];
  const headings = head.cells.flatMap((cell, column) => (isHeading(cell) ? [column] : []));
  if (headings.length > 1) {
    throw refused(`line ${head.line} of ${source}: ${headings.length} columns are named "address": keep one of them`);
  }
  const [named] = headings;
  // The column is never guessed: a wrong one may hold addresses of somebody else.
  return named === undefined ? onlyColumn(rows, source) : namedColumn(head, rows.slice(1), named, source);
}

function isHeading(cell: string): boolean {
  return cell.trim().toLowerCase() === 'address';
}

/** A row with a cell too few or too many has another column's cell where the address should stand. */
function namedColumn(head: CsvRow, rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  const width = countCells(head);
  const ragged = rows.find((row) => row.cells.length < width || countCells(row) > width);
  if (ragged !== undefined) {
    throw refused(
      `line ${ragged.line} of ${source}: it has ${ragged.cells.length} cells, but the heading in line ${head.line} has ${width}; write every cell, even an empty one, and quote cells that contain a comma or semicolon`,
    );
  }
  return columnOf(rows, column, source);
}

function onlyColumn(rows: readonly CsvRow[], source: string): AddressEntry[] {
  const wide = rows.find((row) => countCells(row) > 1);
  if (wide !== undefined) {
    throw refused(
      `line ${wide.line} of ${source}: it has ${countCells(wide)} columns, but no heading is "address": name the columns in the first line, with "address" for the right one, or write one address per line`,
    );
  }
  return columnOf(rows, 0, source);
}

/** Without the empty ones at the end, which spreadsheets add. */
function countCells({ cells }: CsvRow): number {
  return cells.findLastIndex((cell) => cell !== '') + 1;
}

function columnOf(rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  return rows.map(({ cells, line }) => ({
    text: cells[column] ?? '',
    place: `line ${line}, column ${column + 1} of ${source}`,
  }));
}

/** Also in comments, and a phrase with its words in several cells or rows: these hold no address, unlike rows with labels. */
function findSecrets(text: string, rows: readonly CsvRow[], source: string): AddressEntry[] {
  const comments = text
    .split(/\r?\n/)
    .map((line, index) => ({ text: line, place: `line ${index + 1} of ${source}` }))
    .filter((comment) => comment.text.startsWith('#'));
  const cells = rows.flatMap((row) =>
    row.cells.map((cell, column) => ({ text: cell, place: `line ${row.line}, column ${column + 1} of ${source}` })),
  );
  const found = [...comments, ...cells].filter((each) => spotSecretInNote(each.text) !== null);
  if (found.length > 0) return found;
  const words = rows
    .filter((row) => !row.cells.some(isHeading) && !holdsAddress(row) && !isHeadOfMany(row, rows))
    .map((row) => row.cells.join(' '))
    .join('\n');
  return spotSecret(words) === null ? [] : [{ text: words, place: source }];
}

/** A heading of 12 columns or more, none of them named `address`, has the form of a phrase. */
function isHeadOfMany(row: CsvRow, rows: readonly CsvRow[]): boolean {
  const width = row.cells.length;
  return row === rows[0] && width >= 12 && rows.some((other) => other.cells.length === width && holdsAddress(other));
}

function holdsAddress({ cells }: CsvRow): boolean {
  return cells.some((cell) => parseAddress(cell).kind === 'ok');
}

function refused(message: string): AppError {
  return new AppError('INVALID_ARGUMENT', message);
}

/** A row of a CSV text. `line` counts from 1, where the row starts: a quoted cell may hold line breaks. */
type CsvRow = { cells: string[]; line: number };

type CsvRows = { kind: 'ok'; rows: CsvRow[] } | { kind: 'invalid'; line: number; reason: string };

type Delimiter = ',' | ';' | '\t';

/**
 * Splits a CSV text (RFC 4180) with LF or CRLF; a quote inside of quotes is doubled. Space around a cell is cut off. Empty
 * lines are left out, and lines that start with `#`.
 */
export function readCsvRows(text: string): CsvRows {
  const delimiter = findDelimiter(text);
  const rows: CsvRow[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const row: CsvRow = { cells: [], line };
    const isComment = text[at] === '#';
    let isLast = isComment;
    if (isComment) at = endOfLine(text, at);
    while (!isLast) {
      const cell = readCell(text, at, delimiter);
      if (cell.kind === 'invalid') return { ...cell, line };
      row.cells.push(cell.text);
      line += cell.lineBreaks;
      at = cell.end;
      isLast = text[at] !== delimiter;
      if (!isLast) at += 1;
    }
    if (row.cells.some((cell) => cell !== '')) rows.push(row);
    at += text.startsWith('\r\n', at) ? 2 : 1;
    line += 1;
  }
  return { kind: 'ok', rows };
}

/** The one that occurs most in the first row that is neither empty nor a comment, outside of quotes. */
function findDelimiter(text: string): Delimiter {
  const start = /^(?:#[^\n]*\n|[ \r]*\n)*/.exec(text)?.[0].length ?? 0;
  const bare = text.slice(start).replace(/"[^"]*"/g, 'x');
  const [first = ''] = bare.split('\n', 1);
  const counts = ([',', ';', '\t'] as const).map((delimiter) => ({ delimiter, count: first.split(delimiter).length }));
  return counts.reduce((most, each) => (each.count > most.count ? each : most)).delimiter;
}

type Cell = { kind: 'ok'; text: string; end: number; lineBreaks: number } | { kind: 'invalid'; reason: string };

/** Reads the cell that starts at `start`; `end` is where its delimiter or its line's end stands. */
function readCell(text: string, start: number, delimiter: Delimiter): Cell {
  const open = skipSpace(text, start);
  if (text[open] !== '"') {
    const end = endOfBare(text, start, delimiter);
    return { kind: 'ok', text: text.slice(start, end).trim(), end, lineBreaks: 0 };
  }
  let close = open + 1;
  for (; ; close += 2) {
    close = text.indexOf('"', close);
    if (close === -1) return { kind: 'invalid', reason: 'a cell starts with a quote that is never closed' };
    if (text[close + 1] !== '"') break;
  }
  const quoted = text.slice(open + 1, close);
  const end = skipSpace(text, close + 1);
  if (end < text.length && text[end] !== delimiter && text[end] !== '\n' && !text.startsWith('\r\n', end)) {
    return { kind: 'invalid', reason: 'there is text between the closing quote of a cell and the next column' };
  }
  return { kind: 'ok', text: quoted.replaceAll('""', '"').trim(), end, lineBreaks: quoted.split('\n').length - 1 };
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ') at += 1;
  return at;
}

function endOfBare(text: string, start: number, delimiter: Delimiter): number {
  let at = start;
  while (at < text.length && text[at] !== delimiter && text[at] !== '\n' && !text.startsWith('\r\n', at)) at += 1;
  return at;
}

function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\n', start);
  if (end === -1) return text.length;
  return text[end - 1] === '\r' ? end - 1 : end;
}
