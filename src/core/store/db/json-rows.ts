import { toIso, type UnixMs } from '../../domain/time.ts';
import { snakeCase } from './seal.ts';
import { columnOf, isHex, type Row, type Shape } from './statement.ts';

type JsonRows<Fields extends Shape> = {
  /** For example `"id", "project_id", …`. */
  columns: string;
  /** The SQL for turning a parameter's rows into the table `t`. */
  table(parameter: `$${number}`): string;
  /** Returns the text to bind to that parameter. Row fields that aren't in the shape are left out. */
  bind(rows: readonly Row<Fields>[]): string;
};

/** Binds many rows to one JSON parameter, for `insert … select … from`. The shape must not contain groups. */
export function jsonRows<const Fields extends Shape>(shape: Fields): JsonRows<Fields> {
  const fields = Object.entries(shape).map(([name, field]) => {
    const type = isHex(field) ? 'bytea' : columnOf(field).replace('?', '');
    return { name, column: snakeCase(name), type };
  });
  const definitions = fields.map(({ column, type }) => `"${column}" ${type}`).join(', ');
  return {
    columns: fields.map(({ column }) => `"${column}"`).join(', '),
    table: (parameter) => `jsonb_to_recordset(${parameter}::text::jsonb) as t(${definitions})`,
    bind: (rows) => {
      const entries = (row: Record<string, unknown>) =>
        fields.map(({ name, column, type }) => [column, toJson(row[name], type)] as const);
      return JSON.stringify(rows.map((row) => Object.fromEntries(entries(row))));
    },
  };
}

/** PostgreSQL reads `\x0ca1…` as bytes. Amounts are bound as text, because not every amount fits a JSON number. */
function toJson(value: unknown, type: string): unknown {
  if (value === null) return null;
  if (typeof value === 'bigint') return value.toString();
  if (type === 'bytea') return `\\x${value}`;
  return type === 'timestamptz' ? toIso(value as UnixMs) : value;
}
