import { parseAddress } from '../tron/address.ts';
import { type CsvRow, readCsvRows } from './address-csv-rows.ts';
import { CliError } from './cli-error.ts';
import { clip } from './clip.ts';
import { isSeedPhrase, spotSecret } from './spot-secret.ts';

/** A text that should be an address, and where it stands: `argument 2`, `line 14 of addresses.txt`. */
export type AddressEntry = { text: string; place: string };

/** Whether a text is meant as CSV: it has cells, quotes, or a heading `address`. */
export function isCsv(text: string): boolean {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/#.*/, ''));
  const first = lines.find((line) => line.trim() !== '') ?? '';
  return isHeading(first) || lines.some((line) => /[,;\t"]/.test(line.trim()));
}

/**
 * The addresses of a CSV text: the column with the heading `address`, or, where there is none, the one column that holds
 * addresses. Cells that look like secrets come instead, so that they are refused; a message never repeats cells of others.
 */
export function readCsvAddresses(text: string, source: string): AddressEntry[] {
  const read = readCsvRows(text);
  if (read.kind === 'invalid') throw refused(`line ${read.line} of ${source}: ${read.reason}`);
  const { rows } = read;
  const secrets = findSecrets(rows, source);
  if (secrets.length > 0) return secrets;
  const [head] = rows;
  if (head === undefined) return [];
  const headings = head.cells.flatMap((cell, column) => (isHeading(cell) ? [column] : []));
  if (headings.length > 1) {
    throw refused(`line ${head.line} of ${source}: ${headings.length} columns are named "address": keep one of them`);
  }
  const [named] = headings;
  if (named !== undefined) return columnOf(rows.slice(1), named, source);
  return columnOf(rows, findColumn(rows, head, source), source);
}

function isHeading(cell: string): boolean {
  return cell.trim().toLowerCase() === 'address';
}

function columnOf(rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  return rows.map(({ cells, line }) => ({
    text: cells[column] ?? '',
    place: `line ${line}, column ${column + 1} of ${source}`,
  }));
}

/** The column that holds addresses: in all rows, or else the only one with any, whose other cells are then refused by row. */
function findColumn(rows: readonly CsvRow[], head: CsvRow, source: string): number {
  const width = Math.max(...rows.map(({ cells }) => cells.length));
  const isAddress = ({ cells }: CsvRow, column: number) => parseAddress(cells[column] ?? '').kind === 'ok';
  const columns = Array.from({ length: width }, (_, column) => column);
  const full = columns.filter((column) => rows.every((row) => isAddress(row, column)));
  const some = columns.filter((column) => rows.some((row) => isAddress(row, column)));
  const found = full.length > 0 ? full : some;
  const [only] = found;
  if (only === undefined) {
    if (width === 1) return 0;
    throw refused(`${source}: none of its ${width} columns holds TRON addresses (T… and 33 more characters)`);
  }
  if (found.length > 1) {
    const names = found.map((column) => column + 1).join(', ');
    throw refused(
      `${source}: columns ${names} hold addresses: give the one that is meant the heading "address", or write one address a line`,
    );
  }
  if (!head.cells.some((_, column) => isAddress(head, column)) && rows.slice(1).every((row) => isAddress(row, only))) {
    const heading = clip(head.cells[only] ?? '');
    throw refused(
      `line ${head.line}, column ${only + 1} of ${source}: this looks like a heading, ${heading}: name it "address", or leave the line out`,
    );
  }
  return only;
}

/** Also a phrase with a word in each cell of a row or of a column. */
function findSecrets(rows: readonly CsvRow[], source: string): AddressEntry[] {
  const width = Math.max(0, ...rows.map(({ cells }) => cells.length));
  const columns = Array.from({ length: width }, (_, column) => ({
    cells: rows.map(({ cells }) => cells[column] ?? ''),
    place: `column ${column + 1} of ${source}`,
  }));
  const lines = rows.map(({ cells, line }) => ({ cells, place: `line ${line} of ${source}` }));
  const phrases = [...lines, ...columns].filter(({ cells }) => isSeedPhrase(cells));
  const single = rows.flatMap(({ cells, line }) =>
    cells.map((text, column) => ({ text, place: `line ${line}, column ${column + 1} of ${source}` })),
  );
  return [
    ...phrases.map(({ cells, place }) => ({ text: cells.join(' '), place })),
    ...single.filter(({ text }) => spotSecret(text) !== null),
  ];
}

function refused(message: string): CliError {
  return new CliError('INVALID_ARGUMENT', message);
}
