import type { FastifyRequest } from 'fastify';
import { asNumber, type Fields } from '../../core/webhooks/adapter-signature.ts';
import { CODES, Refusal } from './refusal.ts';

/** No shop sends this many fields. */
const MAX_FIELDS = 50;
const MAX_NAME = 64;
const MAX_VALUE = 2048;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a form's fields from the query and the body. Each field may appear once. */
export function readForm(request: FastifyRequest): Fields {
  const at = request.url.indexOf('?');
  const query = at === -1 ? '' : request.url.slice(at + 1);
  return collect([...new URLSearchParams(query), ...new URLSearchParams(bodyText(request))]);
}

/**
 * Reads a flat JSON object such as `{"order_id":"A-1","amount":42.10,"notify_url":"https://…"}`. Numbers are read as text, never as floats:
 * `42.10` becomes `42.1`, the form that shops sign. Null fields count as absent.
 */
function readFlatJson(request: FastifyRequest): Fields {
  const text = bodyText(request).trim();
  if (!text.startsWith('{') || !text.endsWith('}')) throw malformed('the body is not a single JSON object');
  const fields: [string, string][] = [];
  const member = /\s*("(?:[^"\\]|\\.)*")\s*:\s*(?:("(?:[^"\\]|\\.)*")|(-?[0-9.eE+-]+)|(true|false)|(null))\s*([,}])/suy;
  for (member.lastIndex = 1; ; ) {
    const found = member.exec(text);
    if (found === null) throw malformed('the body is not a JSON object of strings and numbers');
    const [, name = '', value, number, truth, nothing, end] = found;
    // Only BEpusdt's `reselect` is a boolean.
    if (truth !== undefined && name !== '"reselect"')
      throw malformed(`${name.slice(0, MAX_NAME)} is ${truth}, not a string or number`);
    if (nothing === undefined) {
      fields.push([parseText(name), truth ?? (value === undefined ? readNumber(number) : parseText(value))]);
    }
    if (fields.length > MAX_FIELDS) break;
    if (end === '}') {
      if (member.lastIndex !== text.length) throw malformed('there is unexpected content after the JSON object');
      break;
    }
  }
  return collect(fields);
}

/** Reads a body's fields according to its content type. */
export function readBody(request: FastifyRequest): Fields {
  if (/\?./.test(request.url))
    throw malformed('the URL has a query: send all fields in the body, and the URL without "?"');
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/json') return readFlatJson(request);
  if (type === 'application/x-www-form-urlencoded') return collect([...new URLSearchParams(bodyText(request))]);
  throw malformed('send the content type application/json or application/x-www-form-urlencoded');
}

function bodyText({ body }: FastifyRequest): string {
  if (!(body instanceof Uint8Array)) return '';
  try {
    return utf8.decode(body);
  } catch {
    throw malformed('the body is not UTF-8');
  }
}

function parseText(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    throw malformed('a string in the JSON object is malformed');
  }
}

function readNumber(text = ''): string {
  if (!/^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text)) {
    throw malformed(`${text.slice(0, 30)} is not a plain decimal number: write it without an exponent`);
  }
  return asNumber(text);
}

function collect(pairs: readonly [string, string][]): Fields {
  const fields = new Map<string, string>();
  if (pairs.length > MAX_FIELDS) throw malformed(`there are more than ${MAX_FIELDS} fields`);
  for (const [name, value] of pairs) {
    const shown = JSON.stringify(name.slice(0, MAX_NAME));
    if (name.length > MAX_NAME || value.length > MAX_VALUE) throw malformed(`the field ${shown} is too long`);
    if (fields.has(name)) throw malformed(`the field ${shown} is sent twice: send it once`);
    if (value.includes('\0') || !value.isWellFormed()) throw malformed(`the field ${shown} contains invalid text`);
    fields.set(name, value);
  }
  return fields;
}

function malformed(reason: string): Refusal {
  return new Refusal(CODES.fields, `failed to parse request params: ${reason}`);
}
