import { type Hint, Message, type Text } from '../domain/message.ts';
import { printable } from './input/problems.ts';

/** Options that are called otherwise than the field that they give. */
const OPTIONS: Readonly<Record<string, string>> = {
  allowedIps: 'allow-ip',
  identities: 'identity',
  isChecked: 'no-check',
  isConfirmed: 'yes',
  isDryRun: 'dry-run',
  isFresh: 'fresh',
  isOwnNetwork: 'own-network',
  isSettled: 'yes',
  isKeyless: 'without-key',
  isKeyLost: 'key-is-lost',
  path: 'to',
  person: 'user',
  projectId: 'project',
  projectIds: 'project',
  resolution: 'as',
};

/** The option that a field is given by: `webhookUrl` by `--webhook-url`. */
export function optionOf(field: string): string {
  return `--${OPTIONS[field] ?? field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `quittance chain rescan --from 1 --to 2`. */
export function formatHint({ command, args = [], input = {} }: Hint): string {
  const options = Object.entries(input).flatMap(([field, given]) =>
    [given].flat().flatMap((value) => [optionOf(field), ...(value === true ? [] : [quoted(field, value)])]),
  );
  return ['quittance', command, ...args, ...options].join(' ');
}

/** A reason or a note is a sentence, which a shell would take apart. */
function quoted(field: string, value: string): string {
  return field === 'reason' || field === 'note' ? `"${value}"` : value;
}

/**
 * The message for a text that looks like a secret of this kind. What is typed as an argument or option stays in the history of the shell;
 * other places are files and streams.
 */
export function secretMessage(kind: string, place = 'argument'): string {
  const where = place.startsWith('argument') ? 'It may now be in your shell history' : 'It is now in that input';
  return `this looks like ${kind}. Quittance never needs one, and you should never paste it anywhere. ${where}: delete it there and, if it is real, move the funds or replace it.`;
}

/** A text with the names of the command line. */
export function writeText(text: Text): string {
  return text instanceof Message ? text.write({ field: optionOf, step: formatHint, secret: secretMessage }) : text;
}

/** The same for all texts in what is written as JSON. */
export function asWritten(_key: string, value: unknown): unknown {
  return value instanceof Message ? writeText(value) : value;
}

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
