import { createHash } from 'node:crypto';

/**
 * How a receiver must have written the JSON of a body again, so that its bytes have this SHA-256 (hex): a phrase such as
 * `with spaces after commas and colons, as Python's json.dumps does`. `null` if it is none of the ways that are known.
 */
export function recogniseRewriting(body: Uint8Array, sha256: string): string | null {
  const isIt = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex') === sha256;
  const text = new TextDecoder().decode(body);
  if (isIt(Buffer.from(Buffer.from(body).toString('latin1')))) return 'read as Latin-1 instead of UTF-8';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  for (const sorted of [false, true]) {
    for (const layout of LAYOUTS) {
      const plain = write(sorted ? sortKeys(value) : value, layout.indent, layout.spaced);
      for (const escaping of ESCAPINGS) {
        const written = escaping.apply(plain);
        const end = isIt(written) ? '' : isIt(`${written}\n`) ? 'with a line feed at its end' : null;
        if (end === null) continue;
        const traits = [layout.words, sorted ? 'with its keys sorted' : '', escaping.words, end].filter(Boolean);
        return traits.length === 0 ? null : traits.join(', ');
      }
    }
  }
  return null;
}

const LAYOUTS = [
  { indent: '', spaced: false, words: '' },
  { indent: '', spaced: true, words: "with spaces after commas and colons, as Python's json.dumps does" },
  { indent: '  ', spaced: true, words: 'indented by two spaces' },
  { indent: '    ', spaced: true, words: 'indented by four spaces' },
  { indent: '\t', spaced: true, words: 'indented by tabs' },
] as const;

const ESCAPINGS: readonly { words: string; apply(json: string): string }[] = [
  { words: '', apply: (json) => json },
  { words: 'with other characters than ASCII as \\u…', apply: escapeUnicode },
  { words: 'with / as \\/', apply: escapeSlashes },
  {
    words: "with / as \\/ and Unicode as \\u…, as PHP's json_encode does",
    apply: (j) => escapeSlashes(escapeUnicode(j)),
  },
  { words: 'with <, > and & as \\u…, as Go does', apply: escapeHtml },
];

/** Outside of strings JSON has none of these characters, so the text can be changed as a whole. */
function escapeUnicode(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, escapeUnit);
}

function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, escapeUnit);
}

function escapeSlashes(json: string): string {
  return json.replaceAll('/', '\\/');
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function write(value: unknown, indent: string, spaced: boolean): string {
  if (indent !== '' || !spaced) return JSON.stringify(value, null, indent);
  if (Array.isArray(value)) return `[${value.map((item) => write(item, indent, spaced)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${write(member, indent, spaced)}`,
  );
  return `{${members.join(', ')}}`;
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const members: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(
    members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortKeys(member)]),
  );
}
