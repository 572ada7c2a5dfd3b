/** Separates the parts of a seal's text: the MAC, and the values that it covers. */
const SEPARATOR = '\x1f';
/** Represents a null part. Inside texts, this character and `SEPARATOR` are escaped as this character followed by `1` or `2`. */
export const NULL_PART = '\x1e';
const [SQL_SEPARATOR, SQL_NULL_PART] = [`E'\\x1f'`, `E'\\x1e'`];

/** The SQL for the first part, which is the MAC. */
export function macSql(column: string): string {
  return `coalesce(encode(${column}, 'hex'), ${SQL_NULL_PART})`;
}

/**
 * The SQL for any further part, preceded by the separator. `type` is the sealed field's type. The two characters can occur only in texts,
 * because JSON escapes them.
 */
export function partSql(sql: string, type: string): string {
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
export function readPart(part: string | undefined, type: string): string | null {
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
