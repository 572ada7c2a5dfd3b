import type { Text } from '../domain/message.ts';
import { printable } from './input/problems.ts';

/**
 * What a command shows of an outcome: `next` is for people only. `hasFailed`: the finding is bad, so the command exits 1. `refusal`: it was
 * only shown, because the person has yet to confirm it, and this says how.
 */
export type Printed = { text: string; next?: Text; hasFailed?: boolean; refusal?: Text };
/** A heading, the member that it shows or how it is made, and what stands for null. */
export type Column<Row> = readonly [
  heading: string,
  cell: (keyof Row & string) | ((row: Row) => string | null),
  none?: string,
];

function cellOf<Row extends object>(row: Row, [, cell, none]: Column<Row>, between: string): string | null {
  const value: unknown = typeof cell === 'function' ? cell(row) : row[cell];
  return value === null ? (none ?? null) : Array.isArray(value) ? value.join(between) : String(value);
}

/** Rows as a table, or nothing at all for an empty list. */
export function columnsText<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  return formatTable(
    columns.map(([heading]) => heading),
    rows.map((row) => columns.map((column) => cellOf(row, column, ',') ?? '')),
  );
}

/** Aligned lines of name and value; a value that is `null` is left out. */
export function fieldsText<Row extends object>(row: Row, fields: readonly Column<Row>[]): string {
  return formatFields(fields.map((field) => [field[0], cellOf(row, field, ', ')]));
}

/** `2026-09-01 12:00`, of ISO 8601 in UTC. */
export function isoMinute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}

/** `2026-09-01 12:00:00`, of ISO 8601 in UTC. */
export function isoSecond(time: string): string {
  return time.slice(0, 19).replace('T', ' ');
}

/** Aligned lines of name and value; a value that is `null` is left out. */
export function formatFields(fields: readonly (readonly [name: string, value: string | null])[]): string {
  const shown = fields.filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${printable(value ?? '')}`.trimEnd()).join('\n');
}

/** Columns under their names, or nothing at all for an empty list. */
export function formatTable(names: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const lines = [names, ...rows.map((row) => row.map(printable))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
