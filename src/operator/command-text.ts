import type { Text } from '../domain/message.ts';
import { printable } from './input/printable.ts';

/** What a command shows of an outcome: `next` is for people only. `hasFailed`: what was found is bad, so that the command exits 1. */
export type Printed = { text: string; next?: Text; hasFailed?: boolean };
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
  if (rows.length === 0) return '';
  const cells = rows.map((row) => columns.map((column) => printable(cellOf(row, column, ',') ?? '')));
  const lines = [columns.map(([heading]) => heading), ...cells];
  const widths = columns.map((_, place) => Math.max(...lines.map((line) => line[place]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, place) => cell.padEnd(widths[place] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Aligned lines of name and value; a value that is `null` is left out. */
export function fieldsText<Row extends object>(row: Row, fields: readonly Column<Row>[]): string {
  const shown = fields
    .map((field) => [field[0], cellOf(row, field, ', ')] as const)
    .filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${printable(value ?? '')}`.trimEnd()).join('\n');
}

/** `2026-09-01 12:00`, of ISO 8601 in UTC. */
export function isoMinute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}
