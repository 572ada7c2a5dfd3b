import { type Hint, Message, type Text } from '../../core/domain/message.ts';
import { printable } from './input/problems.ts';

/** Options whose names differ from those of their fields. */
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

/** Returns the option for a field, such as `--webhook-url` for `webhookUrl`. */
export function optionOf(field: string): string {
  return `--${OPTIONS[field] ?? field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Returns a command line such as `quittance chain rescan --from 1 --to 2`. */
export function formatHint({ command, args = [], input = {} }: Hint): string {
  const options = Object.entries(input).flatMap(([field, given]) =>
    [given].flat().flatMap((value) => [optionOf(field), ...(value === true ? [] : [quoted(field, value)])]),
  );
  return ['quittance', command, ...args, ...options].join(' ');
}

/** Reasons and notes are sentences, which a shell would split into words. */
function quoted(field: string, value: string): string {
  return field === 'reason' || field === 'note' ? `"${value}"` : value;
}

/**
 * Returns the message for a text that looks like this kind of secret. Arguments and options remain in the shell history; other places are
 * files and streams.
 */
export function secretMessage(kind: string, place = 'argument'): string {
  const where = place.startsWith('argument')
    ? 'The secret may now be in your shell history'
    : 'The secret is now in that input';
  return `this looks like ${kind}. Quittance never asks for this kind of secret, and you should never paste it anywhere. ${where}: delete it there and, if it is real, move the funds or replace it.`;
}

/** Formats a message in command-line terms. */
export function writeText(text: Text): string {
  return text instanceof Message ? text.write({ field: optionOf, step: formatHint, secret: secretMessage }) : text;
}

/** A JSON replacer that formats every message in command-line terms. */
export function asWritten(_key: string, value: unknown): unknown {
  return value instanceof Message ? writeText(value) : value;
}

/** A hint that doesn't apply is `null` or `false`. */
type MaybeHint = Text | null | false;
/**
 * A command's output. `text` may have several parts, with an empty line between them; empty parts are omitted. `next` contains hints, each
 * on its own line, which are shown only to people. With `hasFailed`, the command exits with 1, because the finding is bad. With `isUnknown`,
 * it exits with 3, because nothing was found, although that is a valid answer. `refusal` means that the result is only a preview, and says
 * how to confirm it.
 */
export type Printed = {
  text: string | readonly string[];
  next?: MaybeHint | readonly MaybeHint[];
  hasFailed?: boolean;
  isUnknown?: boolean;
  refusal?: Text;
};

/** Joins the parts of an output. */
export function joinParts(text: string | readonly string[]): string {
  return typeof text === 'string' ? text : text.filter((part) => part !== '').join('\n\n');
}

/** A column's heading, the member or function that fills its cells, and the text for null. */
export type Column<Row> = readonly [
  heading: string,
  cell: (keyof Row & string) | ((row: Row) => string | null),
  none?: string,
];

function cellOf<Row extends object>(row: Row, [, cell, none]: Column<Row>, between: string): string | null {
  const value: unknown = typeof cell === 'function' ? cell(row) : row[cell];
  return value === null ? (none ?? null) : Array.isArray(value) ? value.join(between) : String(value);
}

/** Formats rows as a table. An empty list gives an empty string. */
export function columnsText<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  return formatTable(
    columns.map(([heading]) => heading),
    rows.map((row) => columns.map((column) => cellOf(row, column, ',') ?? '')),
  );
}

/** Formats names and values as aligned lines, and omits `null` values. */
export function fieldsText<Row extends object>(row: Row, fields: readonly Column<Row>[]): string {
  return formatFields(fields.map((field) => [field[0], cellOf(row, field, ', ')]));
}

const MAX_CELL = 24;

/** Shortens a text for a table's cell. */
export function shortCell(text: string): string {
  const characters = [...text];
  return characters.length > MAX_CELL ? `${characters.slice(0, MAX_CELL - 1).join('')}…` : text;
}

/** Formats an ISO 8601 time in UTC as `2026-09-01 12:00`. */
export function isoMinute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}

/** Formats an ISO 8601 time in UTC as `2026-09-01 12:00:00`. */
export function isoSecond(time: string): string {
  return time.slice(0, 19).replace('T', ' ');
}

/** Formats names and values as aligned lines, and omits `null` values. */
export function formatFields(fields: readonly (readonly [name: string, value: string | null])[]): string {
  const shown = fields.filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${printable(value ?? '')}`.trimEnd()).join('\n');
}

/** Formats columns under their names; an empty list gives an empty string. */
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
