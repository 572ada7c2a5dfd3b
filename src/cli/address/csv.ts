import { parseAddress } from '../../tron/address.ts';
import { CliError } from '../cli-error.ts';
import { spotSecret, spotSecretInNote } from '../spot-secret.ts';
import { type CsvRow, readCsvRows } from './csv-rows.ts';
import { isMeantAsAddress } from './foreign-address.ts';

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
  const secrets = findSecrets(text, rows, source);
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

/** The column without a heading that holds addresses: the only one with any, also with one that is written wrong. */
function findColumn(rows: readonly CsvRow[], head: CsvRow, source: string): number {
  const width = rows.reduce((most, { cells }) => Math.max(most, cells.length), 0);
  const columns = Array.from({ length: width }, (_, column) => column);
  // A mistake in the right column must not make another one the only one: its addresses may be somebody else's.
  const [only, ...others] = columns.filter((column) => rows.some(({ cells }) => isMeantAsAddress(cells[column] ?? '')));
  if (only === undefined) {
    if (width === 1) return 0;
    throw refused(`${source}: none of its ${width} columns holds TRON addresses (T… and 33 more characters)`);
  }
  if (others.length > 0) {
    const names = [only, ...others].map((column) => column + 1).join(', ');
    throw refused(
      `${source}: columns ${names} hold addresses: give the one that is meant the heading "address", or write one address a line`,
    );
  }
  const isAddress = ({ cells }: CsvRow) => parseAddress(cells[only] ?? '').kind === 'ok';
  if (!isMeantAsAddress(head.cells[only] ?? '') && rows.slice(1).every(isAddress)) {
    throw refused(
      `line ${head.line}, column ${only + 1} of ${source}: this looks like a heading: name it "address", or leave the line out`,
    );
  }
  return only;
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
    .filter((row) => !row.cells.some((cell) => isHeading(cell) || parseAddress(cell).kind === 'ok'))
    .map((row) => row.cells.join(' '))
    .join('\n');
  return spotSecret(words) === null ? [] : [{ text: words, place: source }];
}

function refused(message: string): CliError {
  return new CliError('INVALID_ARGUMENT', message);
}
