import { BlockList, isIP } from 'node:net';
import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { noteProblem } from '../../domain/resolution.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { parseAddress } from '../../tron/address.ts';
import { parseSecret } from '../../webhooks/sign.ts';
import { clip, detectSecret, detectSecretInNote, FieldError, fieldProblem } from './problems.ts';

/** Reads one of `choices`; `null` if the field is left out. Errors: `INVALID_ARGUMENT`. */
export function readChoice<Choice extends string>(
  field: string,
  text: string | undefined,
  choices: readonly Choice[],
): Choice | null {
  if (text === undefined) return null;
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new FieldError(field, `is ${clip(text)}: choose ${choices.join(', ')}`);
}

/** How many a list shows. Errors: `INVALID_ARGUMENT`. */
export function readLimit(text: string, { least, most }: { least: number; most: number }): number {
  // A number that may not be 0 does not begin with it.
  const digits = least === 0 ? /^\d{1,4}$/ : /^[1-9]\d{0,3}$/;
  const limit = digits.test(text) ? Number(text) : -1;
  if (limit >= least && limit <= most) return limit;
  throw new FieldError('limit', `is ${clip(text)}: give ${least} to ${most}`);
}

/** A text that should be an address, and where it stands: `argument 2`, `line 14 of addresses.txt`. */
export type AddressEntry = { text: string; place: string };

/**
 * The addresses of a text with one on each line, where empty lines and what follows a `#` are skipped, or of CSV. `source`: what messages call
 * the text. Secrets come as entries, so that they are refused. Errors: `INVALID_ARGUMENT`.
 */
export function readList(content: string, source: string): AddressEntry[] {
  // A wallet file is one secret, whatever stands on its lines.
  if (/^\s*\{/.test(content) && detectSecret(content) !== null) return [{ text: content, place: source }];
  if (content.includes('\0') || content.startsWith('PK\u0003\u0004')) {
    throw new AppError('INVALID_ARGUMENT', `${source} is not a text file: save a spreadsheet as CSV first`);
  }
  if (isCsv(content)) return readCsvAddresses(content, source);
  return content.split(/\r?\n/).flatMap((line, index) => {
    const place = `line ${index + 1} of ${source}`;
    const [, text = '', comment = ''] = /^([^#]*)(.*)$/.exec(line) ?? [];
    // It comes as an entry, so that it is refused.
    const secrets = detectSecretInNote(comment) === null ? [] : [{ text: comment, place }];
    return text.trim() === '' ? secrets : [{ text: text.trim(), place }, ...secrets];
  });
}

/** Whether a text is meant as CSV: it has cells, quotes, or a heading `address`. */
export function isCsv(text: string): boolean {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/#.*/, ''));
  const first = lines.find((line) => line.trim() !== '') ?? '';
  return isHeading(first) || lines.some((line) => /[,;\t"]/.test(line.trim()));
}

/**
 * The addresses of a CSV text: the column with the heading `address`, or the only column there is. Cells that look like
 * secrets come instead, so that they are refused; a message never repeats cells of others.
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
  // The column is never guessed: a wrong one may hold addresses of somebody else.
  return named === undefined ? onlyColumn(rows, source) : namedColumn(head, rows.slice(1), named, source);
}

function isHeading(cell: string): boolean {
  return cell.trim().toLowerCase() === 'address';
}

/** A row with a cell too few or too many has another column's cell where the address should stand. */
function namedColumn(head: CsvRow, rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  const width = countCells(head);
  const ragged = rows.find((row) => row.cells.length < width || countCells(row) > width);
  if (ragged !== undefined) {
    throw refused(
      `line ${ragged.line} of ${source}: it has ${ragged.cells.length} cells, but the heading in line ${head.line} has ${width}; write every cell, even an empty one, and quote cells that contain a comma or semicolon`,
    );
  }
  return columnOf(rows, column, source);
}

function onlyColumn(rows: readonly CsvRow[], source: string): AddressEntry[] {
  const wide = rows.find((row) => countCells(row) > 1);
  if (wide !== undefined) {
    throw refused(
      `line ${wide.line} of ${source}: it has ${countCells(wide)} columns, but no heading is "address": name the columns in the first line, with "address" for the right one, or write one address per line`,
    );
  }
  return columnOf(rows, 0, source);
}

/** Without the empty ones at the end, which spreadsheets add. */
function countCells({ cells }: CsvRow): number {
  return cells.findLastIndex((cell) => cell !== '') + 1;
}

function columnOf(rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  return rows.map(({ cells, line }) => ({
    text: cells[column] ?? '',
    place: `line ${line}, column ${column + 1} of ${source}`,
  }));
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
  const found = [...comments, ...cells].filter((each) => detectSecretInNote(each.text) !== null);
  if (found.length > 0) return found;
  const words = rows
    .filter((row) => !row.cells.some(isHeading) && !holdsAddress(row) && !isHeadOfMany(row, rows))
    .map((row) => row.cells.join(' '))
    .join('\n');
  return detectSecret(words) === null ? [] : [{ text: words, place: source }];
}

/** A heading of 12 columns or more, none of them named `address`, has the form of a phrase. */
function isHeadOfMany(row: CsvRow, rows: readonly CsvRow[]): boolean {
  const width = row.cells.length;
  return row === rows[0] && width >= 12 && rows.some((other) => other.cells.length === width && holdsAddress(other));
}

function holdsAddress({ cells }: CsvRow): boolean {
  return cells.some((cell) => parseAddress(cell).kind === 'ok');
}

function refused(message: string): AppError {
  return new AppError('INVALID_ARGUMENT', message);
}

/** A row of a CSV text. `line` counts from 1, where the row starts: a quoted cell may hold line breaks. */
type CsvRow = { cells: string[]; line: number };

type CsvRows = { kind: 'ok'; rows: CsvRow[] } | { kind: 'invalid'; line: number; reason: string };

type Delimiter = ',' | ';' | '\t';

/**
 * Splits a CSV text (RFC 4180) with LF or CRLF; a quote inside of quotes is doubled. Space around a cell is cut off. Empty
 * lines are left out, and lines that start with `#`.
 */
export function readCsvRows(text: string): CsvRows {
  const delimiter = findDelimiter(text);
  const rows: CsvRow[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const row: CsvRow = { cells: [], line };
    const isComment = text[at] === '#';
    let isLast = isComment;
    if (isComment) at = endOfLine(text, at);
    while (!isLast) {
      const cell = readCell(text, at, delimiter);
      if (cell.kind === 'invalid') return { ...cell, line };
      row.cells.push(cell.text);
      line += cell.lineBreaks;
      at = cell.end;
      isLast = text[at] !== delimiter;
      if (!isLast) at += 1;
    }
    if (row.cells.some((cell) => cell !== '')) rows.push(row);
    at += text.startsWith('\r\n', at) ? 2 : 1;
    line += 1;
  }
  return { kind: 'ok', rows };
}

/** The one that occurs most in the first row that is neither empty nor a comment, outside of quotes. */
function findDelimiter(text: string): Delimiter {
  const start = /^(?:#[^\n]*\n|[ \r]*\n)*/.exec(text)?.[0].length ?? 0;
  const bare = text.slice(start).replace(/"[^"]*"/g, 'x');
  const [first = ''] = bare.split('\n', 1);
  const counts = ([',', ';', '\t'] as const).map((delimiter) => ({ delimiter, count: first.split(delimiter).length }));
  return counts.reduce((most, each) => (each.count > most.count ? each : most)).delimiter;
}

type Cell = { kind: 'ok'; text: string; end: number; lineBreaks: number } | { kind: 'invalid'; reason: string };

/** Reads the cell that starts at `start`; `end` is where its delimiter or its line's end stands. */
function readCell(text: string, start: number, delimiter: Delimiter): Cell {
  const open = skipSpace(text, start);
  if (text[open] !== '"') {
    const end = endOfBare(text, start, delimiter);
    return { kind: 'ok', text: text.slice(start, end).trim(), end, lineBreaks: 0 };
  }
  let close = open + 1;
  for (; ; close += 2) {
    close = text.indexOf('"', close);
    if (close === -1) return { kind: 'invalid', reason: 'a cell starts with a quote that is never closed' };
    if (text[close + 1] !== '"') break;
  }
  const quoted = text.slice(open + 1, close);
  const end = skipSpace(text, close + 1);
  if (end < text.length && text[end] !== delimiter && text[end] !== '\n' && !text.startsWith('\r\n', end)) {
    return { kind: 'invalid', reason: 'there is text between the closing quote of a cell and the next column' };
  }
  return { kind: 'ok', text: quoted.replaceAll('""', '"').trim(), end, lineBreaks: quoted.split('\n').length - 1 };
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ') at += 1;
  return at;
}

function endOfBare(text: string, start: number, delimiter: Delimiter): number {
  let at = start;
  while (at < text.length && text[at] !== delimiter && text[at] !== '\n' && !text.startsWith('\r\n', at)) at += 1;
  return at;
}

function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\n', start);
  if (end === -1) return text.length;
  return text[end - 1] === '\r' ? end - 1 : end;
}

/**
 * The note that a field gives, or an empty one. Notes are kept for ever, so one that looks like a secret is refused. Problems are added
 * to `problems`, so that a caller reports all of them at once.
 */
export function readNote(text: string | undefined, problems: FieldProblem[], field = 'note'): string {
  const note = (text ?? '').trim();
  const kind = detectSecretInNote(note);
  if (kind !== null) {
    const { subject, message } = fieldProblem(field, say`: ${{ secret: kind }}`);
    problems.push({ subject, message: say`${message}${wayOut(kind, field)}` });
    return note;
  }
  const problem = noteProblem(note);
  if (problem !== null) problems.push(fieldProblem(field, problem));
  return note;
}

/** For what only looks like a secret. */
function wayOut(kind: string, field: string) {
  if (kind === 'a seed phrase') return ' If it is a sentence, write it with punctuation.';
  if (kind !== 'a private key') return '';
  return say` If it is a transaction id, write "tx" directly before it, and no word such as "key": ${{ field }} "tx 3a4f…".`;
}

/** The same for a note alone. Errors: `INVALID_ARGUMENT`. */
export function readOneNote(text: string | undefined, field = 'note'): string {
  const problems: FieldProblem[] = [];
  const note = readNote(text, problems, field);
  const [problem] = problems;
  if (problem !== undefined) throw new AppError('INVALID_ARGUMENT', problem.message);
  return note;
}

/** The reason that a decision is recorded with, for ever: one line. Errors: `INVALID_ARGUMENT`. */
export function readReason(text: string | undefined): string {
  const reason = readOneNote(text, 'reason');
  if (reason !== '') return reason;
  throw new FieldError('reason', 'is missing: give a reason, which is recorded permanently');
}

const DAY_MS = 86_400_000;

/** The time between two days or moments; the day `to` belongs to it. Errors: `INVALID_ARGUMENT`. */
export function readPeriod({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  const [start, end] = [readTime('from', from), readTime('to', to)];
  const until = end !== null && to?.includes('T') === false ? unixMs(end + DAY_MS) : end;
  if (start !== null && until !== null && start >= until) {
    throw new FieldError(
      'from',
      say`${clip(from ?? '')} is not before ${{ field: 'to' }} ${clip(to ?? '')}: give an earlier time`,
    );
  }
  return { from: start, until };
}

function readTime(field: string, text: string | undefined): UnixMs | null {
  if (text === undefined) return null;
  const time = parseDuration(text) === null ? parseMoment(text, 0) : null;
  if (time !== null && time >= 0) return unixMs(time);
  throw new FieldError(
    field,
    `is ${clip(text)}: give a day (2026-09-01, UTC) or a time with its zone (2026-09-01T12:00:00Z)`,
  );
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads `30m`, `12h` or `90d` as milliseconds; `null` for anything else, also for 0. */
export function parseDuration(text: string): number | null {
  const [, digits, unit] = /^([1-9]\d{0,5})([mhd])$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** Writes a duration in the largest unit that holds it without a rest: 1800000 → `30m`. */
export function formatDuration(durationMs: number): string {
  const unit = (['d', 'h'] as const).find((each) => durationMs % UNIT_MS[each] === 0) ?? 'm';
  return `${Math.round(durationMs / UNIT_MS[unit])}${unit}`;
}

const ISO = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Reads a moment: a duration from now (`90d`) or ISO 8601 (`2027-01-31` is midnight UTC, a time needs its zone).
 * `null` when it is neither, or no real date.
 */
export function parseMoment(text: string, nowMs: number): number | null {
  const durationMs = parseDuration(text);
  if (durationMs !== null) return nowMs + durationMs;
  const [, day] = ISO.exec(text) ?? [];
  if (day === undefined) return null;
  const dayMs = Date.parse(day);
  // Date.parse turns 30 February into 2 March.
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return null;
  const timeMs = Date.parse(text);
  return Number.isNaN(timeMs) ? null : timeMs;
}

type ParsedCidr = { kind: 'ok'; cidr: string } | { kind: 'invalid'; reason: string };

/**
 * Reads an IP address or a CIDR block and writes it with its prefix length: `192.0.2.7` → `192.0.2.7/32`.
 * A prefix of 0 is refused: a list that lets everyone in is a mistake, leaving the list out says the same honestly.
 */
export function parseCidr(text: string): ParsedCidr {
  const shown = JSON.stringify(text.slice(0, 60));
  const [ip = '', prefix, ...rest] = text.split('/');
  const version = ip.includes('%') ? 0 : isIP(ip);
  if (version === 0 || rest.length > 0) {
    return { kind: 'invalid', reason: `${shown} is neither an IP address nor a CIDR block such as 10.0.0.0/8` };
  }
  const bits = version === 4 ? 32 : 128;
  if (prefix === undefined) return { kind: 'ok', cidr: `${ip}/${bits}` };
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) {
    return { kind: 'invalid', reason: `${shown} has the prefix length ${prefix}; IPv${version} allows 1 to ${bits}` };
  }
  if (Number(prefix) === 0) return { kind: 'invalid', reason: `${shown} means everyone; leave it out or narrow it` };
  return { kind: 'ok', cidr: `${ip}/${Number(prefix)}` };
}

/** Whether all addresses of a block are in another one. Both are written as `parseCidr` writes them. */
export function isWithin(inner: string, outer: string): boolean {
  const [[ip = '', bits], [outerIp = '', outerBits]] = [inner.split('/'), outer.split('/')];
  const family = isIP(ip) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(ip) !== isIP(outerIp) || Number(bits) < Number(outerBits)) return false;
  const list = new BlockList();
  list.addSubnet(outerIp, Number(outerBits), family);
  return list.check(ip, family);
}

/** A signing secret that was given. Errors: `INVALID_ARGUMENT`, without the secret. */
export function readGivenSecret(text: string): string {
  try {
    parseSecret(text);
    return text;
  } catch {
    throw new FieldError(
      'secret',
      `(${text.length} characters, not shown) is not "whsec_" and the base64 of 24 to 64 bytes: leave it out to generate one, or create one with: echo "whsec_$(openssl rand -base64 32)"`,
    );
  }
}
