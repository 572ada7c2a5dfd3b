import { parseObject } from '../runtime/parse-object.ts';

/**
 * Redacts the first 8 KiB of an endpoint's response, which is stored in the database for operators to read. The result has no control or
 * invisible characters except line feeds and tabs. Everything that looks like a secret is replaced with `[redacted]`. Secrets are
 * recognised by their name (`"password": …`, `token=…`), by their prefix (`whsec_`, `qt_live_`, `Bearer`) or by their shape (PEM, JWT, the
 * user in a URL, runs of 32 characters that aren't words). The SDK's diagnostic response is kept, because the diagnosis needs its fields.
 * The result has at most 8 KiB in UTF-8, and the function takes linear time.
 */
export function redactAnswer(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes.subarray(0, MAX_BYTES)).replace(INVISIBLE, '');
  const whole = bytes.length < MAX_BYTES;
  return truncate((whole ? redactDiagnostic(text) : null) ?? redact(whole ? text : maskCutRun(text)));
}

const MAX_BYTES = 8 * 1024;
const MASK = '[redacted]';
/** Matches control and format characters, which can hide or reverse text in a terminal. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** Matches a character of base64 (in both alphabets) or hex. In JSON, PHP writes a slash as `\/`. */
const RUN = String.raw`(?:[A-Za-z0-9+/=_-]|\\/)`;
const LONG_RUN = new RegExp(`${RUN}{32,}`, 'g');
const RUN_CHARACTER = /[A-Za-z0-9+/=_\\-]/;
/** If a secret is cut off after fewer characters, the remaining ones reveal nothing. */
const MIN_CUT_RUN = 8;

const PEM = /-----BEGIN [A-Z0-9 ]{1,40}-----[\s\S]*?(?:-----END [A-Z0-9 ]{1,40}-----|$)/g;
const PREFIXED = new RegExp(`(whsec_|qt_(?:live|test)_|qa_)${RUN}+`, 'g');
/** Doesn't match `Basic realm="…"` and `Bearer token required`, because they explain the error. */
const CREDENTIALS =
  /\b(Bearer|Basic)([ \t]+)(?!(?:auth[a-z]*|realm|scheme|token|credentials?|is|was|not)\b)[^\s"'<>,;]+/gi;
/** Matches name and password in a URL: `postgres://shop:hunter2@db`. In JSON, PHP writes a slash as `\/`. */
const USER_INFO = /(:\\?\/\\?\/)[^\s/"'<>]+@/g;
/** A JWT begins with the base64 of `{"`. */
const JWT = /(?<![\w-])eyJ[\w-]*\.[\w-]*(?:\.[\w-]*)?/g;

function redact(text: string): string {
  return redactNamed(text.replace(PEM, MASK))
    .replace(USER_INFO, `$1${MASK}@`)
    .replace(PREFIXED, `$1${MASK}`)
    .replace(CREDENTIALS, `$1$2${MASK}`)
    .replace(JWT, MASK)
    .replace(LONG_RUN, (run) => (isWords(run) ? run : MASK));
}

/** Matches the text after a name in `"token": `, `\"token\":`, `token=`, `[token] => ` and `<token>`. */
const ASSIGNED = String.raw`\\*["']?\]?[ \t\n]*(?:[:=]>?|>)`;
/** Matches the text after a name in `define('token', `, but not in a list of names, such as a list of missing fields. */
const DEFINED = String.raw`\\*["'](?<=\([ \t]*\\*["'][\w-]+\\*["'])[ \t\n]*,`;
/** Matches the text after a name in `<td>token</td><td>`, as on settings pages. */
const CELL = String.raw`[ \t\n]*<\/t[dh]>[ \t\n]*<td[^<>]{0,80}>`;
/** Matches each name with the separator before its value. */
const NAME = new RegExp(String.raw`(?<![\w-])([\w-]+)(?:${ASSIGNED}|${DEFINED}|${CELL})[ \t\n]*`, 'g');
const SECRET_NAME =
  /pass(?:word|wd|phrase|code)|secret|token|api[_-]?key|(?:access|private|signing|encryption)[_-]?key|authorization|^auth$|credential|cookie|sess|\bsid$|(?:^|[_-])(?:pass|pwd|pin|otp)$/i;
/** With these names, the whole header line is secret: `Cookie: a=1; b=2`. */
const HEADER_NAME = /^(?:proxy-)?authorization$|cookie$/i;
const HARMLESS_VALUE = /(?:null|true|false|undefined)(?![^\s,;&<>)}\]])/y;

/** Parses only values that follow a secret's name, so that a name inside another value is found as well. */
function redactNamed(text: string): string {
  let result = '';
  let done = 0;
  NAME.lastIndex = 0;
  for (let match = NAME.exec(text); match !== null; match = NAME.exec(text)) {
    const name = match[1] ?? '';
    if (!SECRET_NAME.test(name)) continue;
    const start = NAME.lastIndex;
    const end = endOfValue(text, start, HEADER_NAME.test(name));
    if (end === start) continue;
    result += text.slice(done, start) + MASK;
    done = end;
    NAME.lastIndex = end;
  }
  return result + text.slice(done);
}

const BRACKETED = /\[[^\]]*\]?|\{[^}]*\}?/y;
const QUOTED = /"(?:[^"\\]|\\[\s\S])*"?|'(?:[^'\\]|\\[\s\S])*'?/y;
const ESCAPED_QUOTE = /\\+["']/y;
const LINE = /[^\n"']*/y;
const WORD = /[^\s&,;"'<>()[\]{}]+/y;

/** Returns the end of the value at `start`, or `start` itself if there's nothing to hide. */
function endOfValue(text: string, start: number, isHeader: boolean): number {
  if (matchAt(HARMLESS_VALUE, text, start) !== '') return start;
  const quote = matchAt(ESCAPED_QUOTE, text, start);
  if (quote !== '') {
    const end = text.indexOf(quote, start + quote.length);
    return end < 0 ? text.length : end + quote.length;
  }
  for (const shape of [BRACKETED, QUOTED, isHeader ? LINE : WORD]) {
    const value = matchAt(shape, text, start);
    if (value !== '') return start + value.length;
  }
  return start;
}

function matchAt(pattern: RegExp, text: string, start: number): string {
  pattern.lastIndex = start;
  return pattern.exec(text)?.[0] ?? '';
}

/** Whether a run is a path, or a name in kebab, snake or camel case, such as `/app/node_modules/express4/lib/handleWebhookRequest`. */
function isWords(run: string): boolean {
  return run
    .split(/[^A-Za-z0-9]+/)
    .every((piece) => CONSTANT.test(piece) || (WORDS.test(piece) && hasFewCapitals(piece)));
}

const CONSTANT = /^[A-Z]{0,15}$/;
const WORDS = /^[A-Za-z]{0,28}[0-9]{0,4}$/;

/** In random text, half of the letters are capitals. */
function hasFewCapitals(piece: string): boolean {
  return piece.replace(/[^A-Z]/g, '').length <= Math.max(3, piece.length / 4);
}

/** The SDK's response to a webhook that it couldn't verify. Its digests reveal nothing to anyone who doesn't have the secret. */
const DIAGNOSTIC = 'webhook_verification_failed';
const DIAGNOSIS = new Map([
  ['receivedAt', /^[0-9]{1,12}$/],
  ['bodySha256', /^(?:[0-9a-f]{64}|null)$/],
  ['bodyBytes', /^(?:[0-9]{1,12}|null)$/],
  ['secretCheck', /^(?:[0-9a-f]{8}(?:,[0-9a-f]{8}){0,15}|null)$/],
]);

/**
 * Returns the diagnostic response with a redacted message, because escapes in the message could hide anything. Returns `null` for anything
 * that isn't exactly such a response.
 */
function redactDiagnostic(text: string): string | null {
  if (!text.startsWith('{') || !text.includes(DIAGNOSTIC)) return null;
  const answer = parseObject(text);
  const { error, code, message, diagnosis, ...others } = answer;
  const isDiagnostic =
    error === DIAGNOSTIC &&
    typeof code === 'string' &&
    /^[A-Z_]{1,40}$/.test(code) &&
    typeof message === 'string' &&
    Object.keys(others).length === 0 &&
    isDiagnosis(diagnosis);
  return isDiagnostic
    ? JSON.stringify({ error, code, message: redact(message.replace(INVISIBLE, '')), diagnosis })
    : null;
}

function isDiagnosis(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const fields: [string, unknown][] = Object.entries(value);
  return fields.every(
    ([name, field]) => (field === null || typeof field !== 'object') && DIAGNOSIS.get(name)?.test(String(field)),
  );
}

/** If the text was cut off, masks a possible secret's beginning at the end of the text. */
function maskCutRun(text: string): string {
  let start = text.length;
  while (start > 0 && RUN_CHARACTER.test(text.charAt(start - 1))) start -= 1;
  return text.length - start < MIN_CUT_RUN ? text : text.slice(0, start) + MASK;
}

/** Masks and replacement characters may have made the text longer than the input. */
function truncate(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_BYTES) return text;
  let end = MAX_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/**
 * Matches the tags that web pages start with, and PHP's output before an error. A receiver's XML, such as `<Response/>`, doesn't start with
 * any of these. A comment must end at its first `-->`: if one comment could also match as several, the time would double with each comment.
 */
const PAGE =
  /^(?:\s|<!--(?:(?!-->)[\s\S])*-->|<\?xml[^>]*>)*<(?:!doctype\s+html|(?:html|head|body|title|meta|link|script|style|div|center|table|form|h1|br)[\s/>])/i;
const TITLE = /<title[^>]*>\s*([^<]+)/i;
const UNSEEN = /<(script|style|head)\b[\s\S]*?(?:<\/\1\s*>|$)|<!--[\s\S]*?(?:-->|$)|<[^>]*>?/gi;
const MAX_QUOTED = 80;

/**
 * Returns a web page's title or first words, or `null` if the response isn't a page. The content type is ignored, because PHP sends
 * everything as `text/html`, including a receiver's `ok`. `answer` must be redacted.
 */
export function quotePage(answer: string | null): string | null {
  if (answer === null || !PAGE.test(answer)) return null;
  const words = (TITLE.exec(answer)?.[1] ?? answer.replace(UNSEEN, ' ')).trim().split(/\s+/).join(' ');
  if (words === '') return 'a page without text';
  return words.length > MAX_QUOTED ? `${words.slice(0, MAX_QUOTED - 1)}…` : words;
}

/** Returns an error if the response is a web page, because tests and notifications treat such a response as a failure. */
export function refusePage(answer: Uint8Array): string | null {
  return quotePage(redactAnswer(answer)) === null ? null : REFUSED;
}

const REFUSED =
  "web_page: the endpoint returned 2xx with a web page, such as a login page; webhook receivers don't do that";
