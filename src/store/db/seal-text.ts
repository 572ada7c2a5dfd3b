/** Between the parts of the text of a seal: the MAC, and the values that it covers. */
const SEPARATOR = '\x1f';
/** A part that is null. In a text this and `SEPARATOR` become it with `1` or `2`. */
export const NULL_PART = '\x1e';
const [SQL_SEPARATOR, SQL_NULL_PART] = [`E'\\x1f'`, `E'\\x1e'`];

/** The SQL of the first part. */
export function macSql(column: string): string {
  return `coalesce(encode(${column}, 'hex'), ${SQL_NULL_PART})`;
}

/** The SQL of another part, with the separator before it. `type`: of the sealed field. Texts alone can hold its characters: JSON has them escaped. */
export function partSql(sql: string, type: string): string {
  const escaped = `replace(replace(${sql}, ${SQL_NULL_PART}, ${SQL_NULL_PART} || '1'), ${SQL_SEPARATOR}, ${SQL_NULL_PART} || '2')`;
  const part = isJson(type) ? `to_json(${sql})::text` : type.startsWith('text') ? escaped : sql;
  return `coalesce(${SQL_SEPARATOR} || ${part}, ${SQL_SEPARATOR} || ${SQL_NULL_PART})`;
}

function isJson(type: string): boolean {
  return type.startsWith('text[]') || type.startsWith('json');
}

/** The text of a row whose MAC (hex) and values are these. */
export function sealText(mac: string | null, values: readonly (string | null)[]): string {
  const parts = values.map((value) =>
    value === null ? NULL_PART : value.replaceAll(NULL_PART, `${NULL_PART}1`).replaceAll(SEPARATOR, `${NULL_PART}2`),
  );
  return [mac ?? NULL_PART, ...parts].join(SEPARATOR);
}

/** The parts of such a text. `String.split` takes longer. */
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

/** What a part says, as `canonical` has it. */
export function readPart(part: string | undefined, type: string): string | null {
  if (part === undefined || part === NULL_PART) return null;
  if (isJson(type)) return canonical(JSON.parse(part));
  return part.includes(NULL_PART)
    ? part.replaceAll(`${NULL_PART}2`, SEPARATOR).replaceAll(`${NULL_PART}1`, NULL_PART)
    : part;
}

/** The same text of a value as it is read or bound. */
export function canonical(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (value instanceof Date) return String(value.getTime());
  if (typeof value === 'object') return stable(value);
  return String(value);
}

/** Nothing of ours is half as deep; whoever nests thousands of levels would exhaust the stack. */
const MAX_DEPTH = 32;
/** No text of PostgreSQL has this character, so nothing that is sealed is it. */
export const TOO_DEEP = '\0';

/** JSON whose members stand in the order of their names: PostgreSQL keeps no other. `TOO_DEEP` if it is not ours. */
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
