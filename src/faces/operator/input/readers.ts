import { isIP } from 'node:net';
import { parseAddress } from '@quittance/tron/address';
import { AppError, type FieldProblem, invalidArgument, notFound } from '../../../core/domain/errors.ts';
import { decodeId, type IdPrefix } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { noteProblem } from '../../../core/domain/resolution.ts';
import { DAY_MS, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { parseSecret } from '../../../core/webhooks/sign.ts';
import { clip, detectSecret, detectSecretInNote, FieldError, fieldProblem } from './problems.ts';

/** The words for each kind of id in messages, and the command that lists the ids. */
const ID_WORDS = {
  prj: { name: 'project', command: 'project list' },
  key: { name: 'key', command: 'key list' },
  adm: { name: 'admin key', several: 'keys', command: 'admin-key list' },
  ses: { name: 'session', one: 'active session', command: 'session list' },
  chg: { name: 'change', several: 'pending changes', command: 'address pending' },
  whe: { name: 'endpoint', command: 'webhook list' },
  chn: { name: 'channel', command: 'notify list' },
  evt: { name: 'event', command: 'deliveries list', shown: 'in webhooks and by' },
  trf: { name: 'transfer', command: 'transfers list' },
} as const satisfies Partial<Record<IdPrefix, IdWords>>;
type IdWords = { name: string; one?: string; several?: string; shown?: string; command: string };
type ListedId = keyof typeof ID_WORDS;

/** Decodes an id such as `prj_…` to its UUID. Throws `INVALID_ARGUMENT`. */
export function readId(prefix: ListedId, text: string, shown?: string): string {
  const uuid = decodeId(prefix, text);
  if (uuid !== null) return uuid;
  throw new AppError('INVALID_ARGUMENT', notAnId(prefix, text, shown));
}

/** Says that a text isn't an id of this kind. `seen` is the text as it may be shown. */
export function notAnId(prefix: ListedId, text: string, seen = clip(text)): Text {
  const { name, command, shown = 'by' }: IdWords = ID_WORDS[prefix];
  const article = /^[ae]/.test(name) ? 'an' : 'a';
  return say`${seen} is not ${article} ${name} id: an id is "${prefix}_" followed by 26 characters, as shown ${shown} "${{ command }}"`;
}

/** The error for an id that doesn't exist, or that the actor may not see. */
export function noSuch(prefix: ListedId, id: string): AppError {
  const { name, one = name, several = `${name}s`, command }: IdWords = ID_WORDS[prefix];
  return notFound`there is no ${one} ${id}: list the ${several} with "${{ command }}"`;
}

/** Reads one of `choices`. Returns `null` if the field is absent. Throws `INVALID_ARGUMENT`. */
export function readChoice<Choice extends string>(field: string, text: string | undefined, choices: readonly Choice[]) {
  if (text === undefined) return null;
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new FieldError(field, `is ${clip(text)}: choose ${choices.join(', ')}`);
}

/** Reads the maximum length of a list. Throws `INVALID_ARGUMENT`. */
export function readLengthLimit(text: string, { least, most }: { least: number; most: number }): number {
  // A number that may not be 0 can't begin with 0.
  const digits = least === 0 ? /^\d{1,4}$/ : /^[1-9]\d{0,3}$/;
  const limit = digits.test(text) ? Number(text) : -1;
  if (limit >= least && limit <= most) return limit;
  throw new FieldError('limit', `is ${clip(text)}: use ${least} to ${most}`);
}

/** A text that should be an address, and where it was found: `argument 2`, `line 14 of addresses.txt`. */
export type AddressEntry = { text: string; place: string };

/**
 * Reads the addresses in a text, which is CSV or has one address per line. Empty lines and everything after a `#` are skipped. Messages
 * refer to the text as `source`. Secrets are returned as entries so that they are refused. Throws `INVALID_ARGUMENT`.
 */
export function readList(content: string, source: string): AddressEntry[] {
  // A wallet file is a single secret that spans its lines.
  if (/^\s*\{/.test(content) && detectSecret(content) !== null) return [{ text: content, place: source }];
  if (content.includes('\0') || content.startsWith('PK\u0003\u0004'))
    throw invalidArgument`${source} is not a text file: if it is a spreadsheet, save it as CSV first`;
  if (isCsv(content)) return readCsvAddresses(content, source);
  return content.split(/\r?\n/).flatMap((line, index) => {
    const place = `line ${index + 1} of ${source}`;
    const [, text = '', comment = ''] = /^([^#]*)(.*)$/.exec(line) ?? [];
    // The secret is returned as an entry so that it's refused.
    const secrets = detectSecretInNote(comment) === null ? [] : [{ text: comment, place }];
    return text.trim() === '' ? secrets : [{ text: text.trim(), place }, ...secrets];
  });
}

/** Whether a text is CSV: it has several cells, quotes, or a heading `address`. */
export function isCsv(text: string): boolean {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/#.*/, ''));
  const first = lines.find((line) => line.trim() !== '') ?? '';
  return isHeading(first) || lines.some((line) => /[,;\t"]/.test(line.trim()));
}

/**
 * Reads the addresses in a CSV text, from the column with the heading `address` or from the only column. If cells look like secrets,
 * returns only those cells, so that they are refused. Messages never repeat the cells in other columns.
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
    throw refused(`line ${head.line} of ${source}: ${headings.length} columns are named "address": keep only one`);
  }
  const [named] = headings;
  // Never guess the column, because the wrong one may contain someone else's addresses.
  return named === undefined ? onlyColumn(rows, source) : namedColumn(head, rows.slice(1), named, source);
}

function isHeading(cell: string): boolean {
  return cell.trim().toLowerCase() === 'address';
}

/** If a row has a missing or an extra cell, the address column may contain another column's cell. */
function namedColumn(head: CsvRow, rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  const width = countCells(head);
  const ragged = rows.find((row) => row.cells.length < width || countCells(row) > width);
  if (ragged !== undefined) {
    throw refused(
      `line ${ragged.line} of ${source}: it has ${ragged.cells.length} cells, but the heading in line ${head.line} has ${width}. Write every cell, even empty cells, and quote cells that contain a comma or semicolon`,
    );
  }
  return columnOf(rows, column, source);
}

function onlyColumn(rows: readonly CsvRow[], source: string): AddressEntry[] {
  const wide = rows.find((row) => countCells(row) > 1);
  if (wide !== undefined) {
    throw refused(
      `line ${wide.line} of ${source}: it has ${countCells(wide)} columns, but no heading is "address". Name the columns in the first line, and use "address" for the column of addresses. Or write one address per line`,
    );
  }
  return columnOf(rows, 0, source);
}

/** Ignores empty cells at the end, which spreadsheets add. */
function countCells({ cells }: CsvRow): number {
  return cells.findLastIndex((cell) => cell !== '') + 1;
}

function columnOf(rows: readonly CsvRow[], column: number, source: string): AddressEntry[] {
  return rows.map(({ cells, line }) => ({
    text: cells[column] ?? '',
    place: `line ${line}, column ${column + 1} of ${source}`,
  }));
}

/**
 * Also finds secrets in comments, and seed phrases that are spread over cells or rows. If a row contains an address, its other cells are
 * labels, not parts of a phrase.
 */
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

/** Whether this is a header row. If it has 12 or more columns but no `address`, it has the form of a seed phrase. */
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

/** A row of a CSV text. `line` is where it starts, counted from 1, because quoted cells may hold line breaks. */
type CsvRow = { cells: string[]; line: number };

type CsvRows = { kind: 'ok'; rows: CsvRow[] } | { kind: 'invalid'; line: number; reason: string };

type Delimiter = ',' | ';' | '\t';

/**
 * Splits a CSV text (RFC 4180) with LF or CRLF; a quote inside quotes is doubled. Trims cells, and skips empty lines and lines that start
 * with `#`.
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

/** Returns the delimiter that occurs most often, outside quotes, in the first row that is neither empty nor a comment. */
function findDelimiter(text: string): Delimiter {
  const start = /^(?:#[^\n]*\n|[ \r]*\n)*/.exec(text)?.[0].length ?? 0;
  const bare = text.slice(start).replace(/"[^"]*"/g, 'x');
  const [first = ''] = bare.split('\n', 1);
  const counts = ([',', ';', '\t'] as const).map((delimiter) => ({ delimiter, count: first.split(delimiter).length }));
  return counts.reduce((most, each) => (each.count > most.count ? each : most)).delimiter;
}

type Cell = { kind: 'ok'; text: string; end: number; lineBreaks: number } | { kind: 'invalid'; reason: string };

/** Reads the cell that starts at `start`. `end` is the position of the delimiter or line end after it. */
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
 * Reads an optional note, which may be empty. Notes are kept permanently, so a note that looks like a secret is refused. Adds problems to
 * `problems` so that a caller can report all of them together.
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

/** Says how to write a text that only looks like a secret. */
function wayOut(kind: string, field: string) {
  if (kind === 'a seed phrase') return ' If it is a sentence, write it with punctuation.';
  if (kind !== 'a private key') return '';
  return say` If it is a transaction id, write "tx" directly before it, without a word such as "key": ${{ field }} "tx 3a4f…".`;
}

/** Like `readNote`, but throws the problem at once, because the note is the only input. Throws `INVALID_ARGUMENT`. */
export function readOneNote(text: string | undefined, field = 'note'): string {
  const problems: FieldProblem[] = [];
  const note = readNote(text, problems, field);
  const [problem] = problems;
  if (problem !== undefined) throw new AppError('INVALID_ARGUMENT', problem.message);
  return note;
}

/** Reads the reason for a decision, which is a single line and is recorded permanently. Throws `INVALID_ARGUMENT`. */
export function readReason(text: string | undefined): string {
  const reason = readOneNote(text, 'reason');
  if (reason !== '') return reason;
  throw new FieldError('reason', 'is missing: enter a reason, which is recorded permanently');
}

/** Reads a period between two days or times. It includes the day `to`. Throws `INVALID_ARGUMENT`. */
export function readPeriod({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  const [start, end] = [readTime('from', from), readTime('to', to)];
  const until = end !== null && to?.includes('T') === false ? unixMs(end + DAY_MS) : end;
  if (start !== null && until !== null && start >= until) {
    throw new FieldError(
      'from',
      say`${clip(from ?? '')} is not before ${{ field: 'to' }} ${clip(to ?? '')}: use an earlier time`,
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
    `is ${clip(text)}: use a day (2026-09-01, UTC) or a time with its zone (2026-09-01T12:00:00Z)`,
  );
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads `30m`, `12h` or `90d` as milliseconds. Returns `null` for anything else, including 0. */
export function parseDuration(text: string): number | null {
  const [, digits, unit] = /^([1-9]\d{0,5})([mhd])$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** Writes a duration in the largest unit that divides it: 1800000 → `30m`. */
export function formatDuration(durationMs: number): string {
  const unit = (['d', 'h'] as const).find((each) => durationMs % UNIT_MS[each] === 0) ?? 'm';
  return `${Math.round(durationMs / UNIT_MS[unit])}${unit}`;
}

const ISO = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Reads a duration from now (`90d`) or an ISO 8601 date or time: `2027-01-31` means midnight UTC, and a time needs its zone. Returns `null`
 * for anything else, including dates that don't exist.
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
 * Reads an IP address or CIDR block and adds the prefix length if it's missing: `192.0.2.7` → `192.0.2.7/32`. Refuses a prefix length of 0,
 * because a list that allows everyone is probably a mistake. A user who wants that can leave the list out.
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
  if (Number(prefix) === 0)
    return { kind: 'invalid', reason: `${shown} allows everyone: leave it out, or use a smaller block` };
  return { kind: 'ok', cidr: `${ip}/${Number(prefix)}` };
}

/** Reads a signing secret that the user has chosen. Throws `INVALID_ARGUMENT`; the error doesn't contain the secret. */
export function readGivenSecret(text: string): string {
  try {
    parseSecret(text);
    return text;
  } catch {
    throw new FieldError(
      'secret',
      `(${text.length} characters, not shown) is not "whsec_" followed by 24 to 64 bytes in base64: leave it out to generate a secret, or create a secret with: echo "whsec_$(openssl rand -base64 32)"`,
    );
  }
}
