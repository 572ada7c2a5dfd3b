import { csvLine } from './csv.ts';

type Cell = string | number | null | undefined;

/** Rows of an export in batches, and their columns by name. */
export type ExportedRows<Row> = {
  columns: readonly (readonly [name: string, cell: (row: Row) => Cell])[];
  batches: AsyncIterable<Row[]>;
};

/** Text in chunks of one batch. `count` rises with the rows. */
export async function* writeRows<Row>(
  format: 'csv' | 'json',
  { columns, batches }: ExportedRows<Row>,
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
