import { formatTable } from '../../operator/command-text.ts';

/** A column of a list: its heading, and the text that it shows for a row. */
export type Column<Row> = readonly [heading: string, cell: (row: Row) => string];

/** Rows as a table, or nothing at all for an empty list. */
export function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return formatTable(
    columns.map(([heading]) => heading),
    rows.map((row) => columns.map(([, cell]) => cell(row))),
  );
}
