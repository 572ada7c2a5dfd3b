import { reasonOf } from '../../core/runtime/reason-of.ts';

export type JsonBody =
  | { kind: 'ok'; value: Record<string, unknown>; duplicateKeys: string[] }
  | { kind: 'invalid-json'; detail: string }
  | { kind: 'not-an-object'; detail: string };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses a request body that must be one JSON object in UTF-8, and returns the paths of duplicate keys. The body's size bounds the work.
 */
export function readJsonObject(body: Uint8Array): JsonBody {
  if (body.length === 0) return { kind: 'invalid-json', detail: 'The body is empty; send one JSON object.' };
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    return { kind: 'invalid-json', detail: 'The body is not UTF-8.' };
  }
  if (text.startsWith('\uFEFF')) {
    return {
      kind: 'invalid-json',
      detail: 'The body begins with a byte order mark (BOM, EF BB BF); send UTF-8 without it.',
    };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = reasonOf(error);
    return { kind: 'invalid-json', detail: `The body is not JSON: ${reason.slice(0, 200)}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const seen = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
    return { kind: 'not-an-object', detail: `The body is ${seen}; send one JSON object.` };
  }
  return { kind: 'ok', value: value as Record<string, unknown>, duplicateKeys: findDuplicateKeys(text) };
}

/** An unclosed object or list: its keys so far (`null` for a list), the path prefix of its members, and the current member. */
type Open = { keys: Set<string> | null; prefix: string; member: string | number };

/** For a longer path, its beginning is enough. The limit keeps the cost of many long paths low. */
const MAX_PREFIX = 100;

/**
 * Finds the paths of keys that occur more than once in an object, such as `metadata.a` (`JSON.parse` silently keeps the last). `text` must
 * be valid JSON.
 */
function findDuplicateKeys(text: string): string[] {
  const duplicates = new Set<string>();
  /** The outermost first. */
  const open: Open[] = [];
  let isKeyNext = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    const inner = open.at(-1);
    if (character === '"') {
      const end = endOfString(text, i);
      if (inner?.keys && isKeyNext) {
        const key = JSON.parse(text.slice(i, end + 1)) as string;
        if (inner.keys.has(key)) duplicates.add(inner.prefix + key);
        inner.keys.add(key);
        inner.member = key;
      }
      isKeyNext = false;
      i = end;
    } else if (character === '{' || character === '[') {
      const prefix = inner === undefined ? '' : `${`${inner.prefix}${inner.member}`.slice(0, MAX_PREFIX)}.`;
      open.push({ keys: character === '{' ? new Set() : null, prefix, member: 0 });
      isKeyNext = true;
    } else if (character === '}' || character === ']') open.pop();
    else if (character === ',') {
      isKeyNext = true;
      if (typeof inner?.member === 'number') inner.member += 1;
    }
  }
  return [...duplicates];
}

/** Returns the index of the quotation mark that closes the string at `start`. */
function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}
