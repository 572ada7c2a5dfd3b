import { AppError } from '../../domain/errors.ts';
import { canonical, macSql, NULL_PART, partSql, readPart } from './seal-text.ts';

/**
 * A table whose rows carry a MAC, so that who can write to the database, but does not hold the master key, can neither make a row nor
 * change one unseen. The MAC stands in a column of the row (`mac`), over the columns that are never changed without it, in their order.
 */
export type SealedTable<Fields extends SealedFields = SealedFields> = {
  /** What the key is derived for: the table, and what of it is sealed if not the row. */
  readonly name: string;
  readonly fields: Fields;
  readonly mac: string;
  /** A row of which this SQL is not true needs no MAC. `row`: its prefix. */
  readonly needed: ((row: string) => string) | null;
  /** It is read once: what was found is not remembered. */
  readonly isReadOnce: boolean;
  /** Fields that came after rows were sealed without them: null adds nothing to a MAC, so that those rows keep theirs. */
  readonly later: readonly string[];
};

/** By the names of rows. The first one names the row, and is never null. Times are milliseconds, bytes a `Buffer` or hex. */
export type SealedFields = { readonly [name: string]: SealedType | `${SealedType}?` };
type SealedType =
  | ('uuid' | 'text' | 'text[]' | 'bool' | 'int4' | 'int8' | 'numeric' | 'bytea' | 'timestamptz' | 'json')
  /** A time that the sandbox brings forward, so that it is not sealed on a local network: see `sealedDeadline`. */
  | 'deadline';

/**
 * What was wrong with a row. `unsealed`: it has no MAC; `unknown-key`: the key that made it is not at hand; `moved`: it is as it was sealed, and
 * stands beside what is another's.
 */
export type SealProblem = {
  table: string;
  id: string;
  network: string | null;
  kind: 'unsealed' | 'changed' | 'unknown-key' | 'moved';
  /** Of the master key that its MAC names. */
  keyId?: string | null;
};

/** Makes and checks MACs for one ledger. */
export type Sealer = {
  seal(table: SealedTable, row: SealedRow): Buffer;
  /** The id of the master key that seals. */
  keyId(): string;
  /** Examines a column that `sealColumn` made: the fields that its MAC covers, and what is wrong. */
  open(table: SealedTable, column: string): OpenedSeal;
  /** Whether the key that made a MAC (hex) is not at hand. */
  lacksKeyOf(mac: string): boolean;
  /** Reads the keys again, for another process may have made a new one. */
  reload(): Promise<void>;
};
type SealedRow = { readonly [name: string]: unknown };
/** `parts`: of the text (see `coveredValues`). `keyId`: of the master key that it names. */
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

/** A parameter that becomes the MAC of the row, or null where no seals are made. */
export type SealParameter = { readonly table: SealedTable; readonly row: SealedRow };

export function sealOf<Fields extends SealedFields>(
  table: SealedTable<Fields>,
  row: { readonly [Name in keyof Fields]: unknown },
): SealParameter {
  return { table, row };
}

/** The MAC of a row in hex, for a parameter that holds many rows; null where no seals are made. */
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
 * The SQL of a field `seal: sealed(TABLE)`: the MAC and what it covers, as one text; null where none is needed. `row`: `i.`. Joined here,
 * for `json_build_array` takes twice the time, which was most of what a read paid for its seal.
 */
export function sealColumn({ fields, mac, needed }: SealedTable, row: string): string {
  const covered = Object.entries(fields).map(([name, type]) => {
    return ` || ${partSql(textOf(row, snakeCase(name), type), type)}`;
  });
  const text = `(${macSql(`${row}${mac}`)}${covered.join('')})`;
  return needed === null ? text : `case when ${needed(row)} then ${text} end`;
}

/** What the MAC of a row covers, in the order of the table's fields. */
export function coveredValues({ fields }: SealedTable, { parts }: Pick<OpenedSeal, 'parts'>): (string | null)[] {
  return Object.values(fields).map((type, place) => readPart(parts[place + 1], type));
}

/** The SQL of what the MAC of a row covers, and of `beside`, as one text, in which a later field stands once it has a value. */
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
      // Infinity has no milliseconds. As a text it is another value than was sealed, and no statement fails.
      return `case when isfinite(${column}) then (date_part('epoch', ${column}) * 1000)::int8::text else ${column}::text end`;
    case 'text[]':
    case 'json':
      return column;
    default:
      return `${column}::text`;
  }
}

/** A deadline as it is sealed. */
export function sealedDeadline(network: string, at: number): number | null {
  return network === 'devnet' ? null : at;
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A column that holds a seal, and the columns beside it that its MAC covers too: `[column, place, type]`. `isTold`: it becomes a boolean. */
export type SealColumn = {
  column: string;
  table: SealedTable;
  isTold: boolean;
  beside: readonly (readonly [string, number, SealedFields[string]])[];
};

/** How the seals of what is read are judged. `require`: a row that is not as it was sealed is read by nobody. */
export type SealMode = 'warn' | 'require';
/** `isOlder`: the ledger began before seals were required, so rows of former releases may have none. */
type Judging = { mode: SealMode; isOlder: boolean };
export type SealJudge = Judging & { onProblem(problem: SealProblem, judging: Judging): void };

/** A row, by the columns of SQL, that failed its check, and why. */
export type LeftOut = { row: Readonly<Record<string, unknown>>; error: AppError };

/**
 * Examines the seals of rows, and that what stands beside them is what they cover: a view could tell a column twice in two ways.
 * Error: `ROW_CHANGED`, or with `leftOut` none. Without a sealer all are taken as they are.
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
    for (const row of rows) for (const { column } of told) row[column] = true;
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

/** Takes the refused rows out of `rows`. Throws the first reason where nobody asks which they are. */
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
      // A row that a left join did not find.
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
    'has no seal: it was inserted directly into the database, or it is older than the seals and "quittance ledger seal" has not run',
  changed: 'has a wrong seal: it was changed directly in the database',
  moved: 'has a correct seal, but a row that refers to it was changed directly in the database',
  'unknown-key':
    'names a master key that this process does not have: another process uses that key, or the seal is forged. Give every process the same QUITTANCE_MASTER_KEY',
};

/** `alarm`: the kind of alarm that says it. */
export function describeSealProblem({ table, id, kind }: SealProblem, alarm = 'row-changed'): string {
  return `a row of ${table} (${id.slice(0, 60)}) ${WHAT[kind]}. See "${alarm}" in docs/guides/operations.md`;
}
