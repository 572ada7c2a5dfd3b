import { AppError } from '../../domain/errors.ts';

/**
 * A table whose rows have a MAC, so that an attacker who can access the database but doesn't have the master key can't insert or change
 * rows unnoticed. The MAC is in one of the row's columns (`mac`). It covers, in order, all columns that may change only together with it.
 */
export type SealedTable<Fields extends SealedFields = SealedFields> = {
  /** The derived key's purpose: the table's name, and the sealed part's name if it isn't the whole row. */
  readonly name: string;
  readonly fields: Fields;
  readonly mac: string;
  /** The SQL condition for rows that need a MAC; other rows don't need one. `row` is a prefix for their columns. */
  readonly needed: ((row: string) => string) | null;
  /** Whether each row is read only once, so that caching the results would be pointless. */
  readonly isReadOnce: boolean;
  /**
   * Fields that were added when rows had already been sealed without them. A null value adds nothing to the MAC, so the existing MACs of
   * these rows remain valid.
   */
  readonly later: readonly string[];
};

/**
 * The fields, by their names in rows. The first one identifies the row and is never null. Times are in milliseconds; bytes are a `Buffer`
 * or hex.
 */
type SealedFields = { readonly [name: string]: SealedType | `${SealedType}?` };
type SealedType =
  | ('uuid' | 'text' | 'text[]' | 'bool' | 'int4' | 'int8' | 'numeric' | 'bytea' | 'timestamptz' | 'json')
  /** A time that the sandbox can move, so it isn't sealed on a local network; see `sealedDeadline`. */
  | 'deadline';

/**
 * The problem with a row. `unsealed`: the row has no MAC. `unknown-key`: this process doesn't have the key for the MAC. `moved`: the MAC is
 * valid, but the columns next to it belong to another row.
 */
export type SealProblem = {
  table: string;
  id: string;
  network: string | null;
  kind: 'unsealed' | 'changed' | 'unknown-key' | 'moved';
  /** The master key's id, as contained in the MAC. */
  keyId?: string | null;
};

/** Creates and verifies MACs for one ledger. */
export type Sealer = {
  seal(table: SealedTable, row: SealedRow): Buffer;
  /** Returns the id of the master key that is used for sealing. */
  keyId(): string;
  /** Verifies a column made by `sealColumn`. Returns the covered fields and the problem, if there is one. */
  open(table: SealedTable, column: string): OpenedSeal;
  /** Whether this process doesn't have the key for a MAC (hex). */
  lacksKeyOf(mac: string): boolean;
  /** Loads the keys again, because another process may have created a new one. */
  reload(): Promise<void>;
};
type SealedRow = { readonly [name: string]: unknown };
/**
 * `parts` are the parts of the text that `sealColumn` makes: the MAC, followed by the values that it covers (see `coveredValues`). `keyId`
 * is the id of the master key in the MAC.
 */
export type OpenedSeal = {
  parts: readonly string[];
  keyId: string | null;
  problem: Exclude<SealProblem['kind'], 'moved'> | null;
};

export function sealedTable<const Fields extends SealedFields>(
  name: string,
  fields: Fields,
  { mac = 'mac', needed = null, isReadOnce = false, later = [] }: Partial<Omit<SealedTable, 'name' | 'fields'>> = {},
): SealedTable<Fields> {
  return { name, fields, mac, needed, isReadOnce, later };
}

/** A parameter that is replaced with the row's MAC, or with null if rows aren't sealed. */
export type SealParameter = { readonly table: SealedTable; readonly row: SealedRow };

export function sealOf<Fields extends SealedFields>(
  table: SealedTable<Fields>,
  row: { readonly [Name in keyof Fields]: unknown },
): SealParameter {
  return { table, row };
}

/** Returns a row's MAC in hex, for a parameter that contains many rows, or null if rows aren't sealed. */
export function hexSeal<Fields extends SealedFields>(
  sealer: Sealer | null,
  table: SealedTable<Fields>,
  row: { readonly [Name in keyof Fields]: unknown },
): string | null {
  return sealer === null ? null : sealer.seal(table, row).toString('hex');
}

export function isSealParameter(value: unknown): value is SealParameter {
  return typeof value === 'object' && value !== null && 'table' in value && 'row' in value;
}

/**
 * The SQL of a field `seal: sealed(TABLE)`: the MAC and the covered values as a single text, or null if the row doesn't need a MAC. `row`
 * is a prefix such as `i.`. The text is concatenated, because `json_build_array` takes twice as long, and that was most of the cost of
 * reading a sealed row.
 */
export function sealColumn({ fields, mac, needed }: SealedTable, row: string): string {
  const covered = Object.entries(fields).map(([name, type]) => {
    return ` || ${partSql(textOf(row, snakeCase(name), type), type)}`;
  });
  const text = `(${macSql(`${row}${mac}`)}${covered.join('')})`;
  return needed === null ? text : `case when ${needed(row)} then ${text} end`;
}

/** Returns the values that a row's MAC covers, in the order of the table's fields. */
export function coveredValues({ fields }: SealedTable, { parts }: Pick<OpenedSeal, 'parts'>): (string | null)[] {
  return Object.values(fields).map((type, place) => readPart(parts[place + 1], type));
}

/**
 * The SQL for the values that a row's MAC covers, together with `beside`, as a single text. Fields that were added later are included only
 * if they have a value.
 */
export function contentColumn({ fields, later }: SealedTable, row: string, beside: string): string {
  const first = Object.fromEntries(Object.entries(fields).filter(([name]) => !later.includes(name)));
  const added = later.map(
    (name) => ` || coalesce('${name}=' || (${textOf(row, snakeCase(name), fields[name] ?? 'text')})::text, '')`,
  );
  const covered = Object.entries(first).map(([name, type]) => textOf(row, snakeCase(name), type));
  return `json_build_array(${beside}, ${covered.join(', ')})::text${added.join('')}`;
}

function textOf(row: string, name: string, type: SealedFields[string]): string {
  const column = `${row}${name}`;
  switch (type.replace('?', '')) {
    case 'deadline':
      return `case when ${row}network <> 'devnet' then ${textOf(row, name, 'timestamptz')} end`;
    case 'bytea':
      return `encode(${column}, 'hex')`;
    case 'timestamptz':
      // Infinity can't be expressed in milliseconds. As text, it differs from every sealed value, so no statement fails because of it.
      return `case when isfinite(${column}) then (date_part('epoch', ${column}) * 1000)::int8::text else ${column}::text end`;
    case 'text[]':
    case 'json':
      return column;
    default:
      return `${column}::text`;
  }
}

/** A deadline isn't sealed on a local network, because the sandbox moves it. */
export function sealedDeadline(network: string, at: number): number | null {
  return network === 'devnet' ? null : at;
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * A column that contains a seal, and the columns next to it that the MAC also covers: `[column, place, type]`. With `isTold`, the column
 * becomes a boolean.
 */
export type SealColumn = {
  column: string;
  table: SealedTable;
  isTold: boolean;
  beside: readonly (readonly [string, number, SealedFields[string]])[];
};

/** What a wrong seal leads to. With `require`, the row can't be read. */
export type SealMode = 'warn' | 'require';
/** `isOlder` means that the ledger is older than the seal requirement, so rows from older releases may have no seals. */
type Judging = { mode: SealMode; isOlder: boolean };
export type SealJudge = Judging & { onProblem(problem: SealProblem, judging: Judging): void };

/** A row that failed its check, keyed by SQL column names, with the error. */
export type LeftOut = { row: Readonly<Record<string, unknown>>; error: AppError };

/**
 * Verifies the seals of rows. The columns next to a seal must equal the values that it covers, because a view could return a column
 * differently the second time. Throws `ROW_CHANGED`, unless `leftOut` is given. Without a sealer, all rows are accepted.
 */
export async function readSeals(
  statement: { name: string; sealColumns: readonly SealColumn[] },
  rows: Record<string, unknown>[],
  sealer: Sealer | null,
  judge: SealJudge | null,
  leftOut?: LeftOut[],
): Promise<void> {
  if (sealer === null || judge === null) {
    const told = statement.sealColumns.filter(({ isTold }) => isTold);
    for (const row of rows) for (const { column } of told) row[column] = row[column] !== false;
    return;
  }
  let found = examine(statement, rows, sealer);
  if (found.some(({ problem }) => problem?.kind === 'unknown-key')) {
    await sealer.reload();
    found = examine(statement, rows, sealer);
  }
  const refused = new Map<unknown, AppError>();
  for (const { row, column, isTold, problem } of found) {
    const isRefused = problem !== null && judge.mode === 'require';
    if (problem !== null) judge.onProblem(problem, judge);
    if (isTold) row[column] = !isRefused;
    else if (isRefused)
      refused.set(row, new AppError('ROW_CHANGED', `${describeSealProblem(problem)} (${statement.name})`));
  }
  leaveOut(rows, refused, leftOut);
}

/** Removes the refused rows from `rows`. If the caller gave no list for the failures, throws the first error. */
export function leaveOut(
  rows: Record<string, unknown>[],
  refused: ReadonlyMap<unknown, AppError>,
  leftOut: LeftOut[] | undefined,
): void {
  const [first] = refused.values();
  if (first === undefined) return;
  if (leftOut === undefined) throw first;
  const kept = rows.filter((row) => {
    const error = refused.get(row);
    if (error !== undefined) leftOut.push({ row, error });
    return error === undefined;
  });
  rows.splice(0, rows.length, ...kept);
}

type Examined = { row: Record<string, unknown>; column: string; isTold: boolean; problem: SealProblem | null };

function examine(
  { sealColumns }: { sealColumns: readonly SealColumn[] },
  rows: readonly Record<string, unknown>[],
  sealer: Sealer,
): Examined[] {
  const examined: Examined[] = [];
  for (const row of rows) {
    for (const { column, table, isTold, beside } of sealColumns) {
      const text = row[column];
      if (typeof text !== 'string') continue;
      const { parts, keyId, problem } = sealer.open(table, text);
      // A left join has found no row.
      if (parts[1] === NULL_PART) continue;
      const isOther =
        problem === null &&
        beside.some(([name, place, type]) => canonical(row[name]) !== readPart(parts[place + 1], type));
      const kind = isOther ? 'moved' : problem;
      if (isTold || kind !== null) {
        examined.push({ row, column, isTold, problem: kind && describe(table, { parts, keyId }, kind) });
      }
    }
  }
  return examined;
}

function describe(
  table: SealedTable,
  { parts, keyId }: Pick<OpenedSeal, 'parts' | 'keyId'>,
  kind: SealProblem['kind'],
): SealProblem {
  const values = coveredValues(table, { parts });
  const of = (name: string) => values[Object.keys(table.fields).indexOf(name)] ?? null;
  return { table: table.name, id: of('id') ?? values[0] ?? '', network: of('network'), kind, keyId };
}

const WHAT = {
  unsealed:
    'has no seal: it was inserted directly into the database, or it was written before Quittance had seals and "quittance ledger seal" has not run',
  changed: 'has a wrong seal: it was changed directly in the database',
  moved: 'has a correct seal, but a row that refers to it was changed directly in the database',
  'unknown-key':
    'has a seal from a master key that this process does not have: another process uses that key, or the seal is forged. Give every process the same QUITTANCE_MASTER_KEY',
};

/** `alarm` is the kind of alarm that reports this problem. */
export function describeSealProblem({ table, id, kind }: SealProblem, alarm = 'row-changed'): string {
  return `a row in ${table} (${id.slice(0, 60)}) ${WHAT[kind]}. See "${alarm}" in docs/reference/alarms.md`;
}

/** Separates the parts of a seal's text: the MAC, and the values that it covers. */
const SEPARATOR = '\x1f';
/** Represents a null part. Inside texts, this character and `SEPARATOR` are escaped as this character followed by `1` or `2`. */
const NULL_PART = '\x1e';
const [SQL_SEPARATOR, SQL_NULL_PART] = [`E'\\x1f'`, `E'\\x1e'`];

/** The SQL for the first part, which is the MAC. */
function macSql(column: string): string {
  return `coalesce(encode(${column}, 'hex'), ${SQL_NULL_PART})`;
}

/**
 * The SQL for any further part, preceded by the separator. `type` is the sealed field's type. The two characters can occur only in texts,
 * because JSON escapes them.
 */
function partSql(sql: string, type: string): string {
  const escaped = `replace(replace(${sql}, ${SQL_NULL_PART}, ${SQL_NULL_PART} || '1'), ${SQL_SEPARATOR}, ${SQL_NULL_PART} || '2')`;
  const part = isJson(type) ? `to_json(${sql})::text` : type.startsWith('text') ? escaped : sql;
  return `coalesce(${SQL_SEPARATOR} || ${part}, ${SQL_SEPARATOR} || ${SQL_NULL_PART})`;
}

function isJson(type: string): boolean {
  return type.startsWith('text[]') || type.startsWith('json');
}

/** Builds a row's text from its MAC (hex) and its values. */
export function sealText(mac: string | null, values: readonly (string | null)[]): string {
  const parts = values.map((value) =>
    value === null ? NULL_PART : value.replaceAll(NULL_PART, `${NULL_PART}1`).replaceAll(SEPARATOR, `${NULL_PART}2`),
  );
  return [mac ?? NULL_PART, ...parts].join(SEPARATOR);
}

/** Splits such a text into its parts; `String.split` is slower. */
export function splitSeal(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let to = text.indexOf(SEPARATOR); to >= 0; to = text.indexOf(SEPARATOR, from)) {
    parts.push(text.slice(from, to));
    from = to + 1;
  }
  parts.push(text.slice(from));
  return parts;
}

/** Returns a part's value in the same form as `canonical`. */
function readPart(part: string | undefined, type: string): string | null {
  if (part === undefined || part === NULL_PART) return null;
  if (isJson(type)) return canonical(JSON.parse(part));
  return part.includes(NULL_PART)
    ? part.replaceAll(`${NULL_PART}2`, SEPARATOR).replaceAll(`${NULL_PART}1`, NULL_PART)
    : part;
}

/** Returns the same text for a value that was read and a value that is about to be bound. */
export function canonical(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (value instanceof Date) return String(value.getTime());
  if (typeof value === 'object') return stable(value);
  return String(value);
}

/** No value in the ledger is even half as deep, and thousands of nested levels would exhaust the stack. */
const MAX_DEPTH = 32;
/** PostgreSQL texts can't contain this character, so it can't be a sealed value. */
export const TOO_DEEP = '\0';

/**
 * Serialises JSON with sorted member names, because PostgreSQL doesn't keep their order. Returns `TOO_DEEP` for JSON that Quittance can't
 * have written.
 */
function stable(value: object): string {
  if (isDeeper(value, MAX_DEPTH)) return TOO_DEEP;
  const isRecord = (part: unknown): part is Record<string, unknown> =>
    typeof part === 'object' && part !== null && !Array.isArray(part);
  return JSON.stringify(value, (_, part: unknown) =>
    isRecord(part)
      ? Object.fromEntries(
          Object.keys(part)
            .sort()
            .map((name) => [name, part[name]]),
        )
      : part,
  );
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((part) => isDeeper(part, depth - 1));
}
