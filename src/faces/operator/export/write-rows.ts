/** Characters that start a formula in spreadsheet programs, including wide and small forms that those programs convert. */
const TRIGGER = '[=+\\-@＝＋－＠﹦﹢﹣﹫−]';
/**
 * Positions where a program may see the beginning of a cell: its start, and after other characters at which some programs split lines.
 * Programs find the trigger even after white space and invisible characters.
 */
const FORMULA = new RegExp(`(?<=^|[;\\t\\r\\n])(?=[\\s\\p{C}]*${TRIGGER})|^(?=[\\t\\r])`, 'gu');

/**
 * Writes a line of CSV (RFC 4180), with its CRLF. A text that a spreadsheet program would run as a formula gets a leading apostrophe, so
 * that such programs show it as text. Numbers and times are written unchanged.
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

type Cell = string | number | null | undefined;

/** An export's rows in batches, with their columns by name, and the words for one row and for several. */
export type ExportedRows<Row> = {
  columns: readonly (readonly [name: string, cell: (row: Row) => Cell])[];
  batches: AsyncIterable<Row[]>;
  name: string;
  plural: string;
};

/** Yields one chunk of text for each batch. `count` grows with the rows. */
export async function* writeRows<Row>(
  format: 'csv' | 'json',
  { columns, batches }: Pick<ExportedRows<Row>, 'columns' | 'batches'>,
  count = { rows: 0 },
): AsyncGenerator<string> {
  yield format === 'csv' ? csvLine(columns.map(([name]) => name)) : '{"data":[';
  for await (const rows of batches) {
    const isFirst = count.rows === 0;
    count.rows += rows.length;
    if (format === 'csv') yield rows.map((row) => csvLine(columns.map(([, cell]) => cell(row) ?? null))).join('');
    else
      yield `${isFirst ? '\n' : ',\n'}${rows.map((row) => JSON.stringify(Object.fromEntries(columns.map(([name, cell]) => [name, cell(row) ?? null])))).join(',\n')}`;
  }
  if (format === 'json') yield '\n]}\n';
}
