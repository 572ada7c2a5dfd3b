import { AppError } from '../domain/errors.ts';

/** As much of a refusal as a person needs to recognise it. */
const SHOWN_CHARACTERS = 200;
/** What a node may ask for at most: a wrong header must not silence it for a day. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

type Headers = Record<string, string | string[] | undefined>;

/** `NODE_REFUSED`, because the answer is larger than who asked wants to read. */
export class AnswerTooLarge extends AppError {
  constructor(message: string) {
    super('NODE_REFUSED', message, { retryable: true });
  }
}

/** Reads a body as text; throws `AnswerTooLarge` as soon as it is larger than `maxBytes`. */
export async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new AnswerTooLarge(`the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Parses an answer; throws an `Error` that shows its beginning where it is a refusal, which come with any status and any
 * body. Two seen with status 200: `{"Error":"class java.lang.RuntimeException : lack of computing resources"}` and the bare
 * text `this API is closed because this node is a lite fullnode`.
 */
export function readAnswer(status: number, text: string): unknown {
  if (status !== 200) throw new Error(`HTTP ${status}: ${shown(text)}`);
  if (text.length > SCANNED_CHARACTERS && isDeep(text)) throw new Error(`nested too deep: ${shown(text)}`);
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error(`not JSON: ${shown(text)}`);
  }
  if (typeof answer !== 'object' || answer === null) throw new Error(`neither object nor array: ${shown(text)}`);
  if ('Error' in answer) throw new Error(`error: ${shown(String(answer.Error))}`);
  return answer;
}

/** JSON that opens ever deeper takes 28 bytes of memory a character to parse: 4 MB of it are borne, more are looked at first. */
const SCANNED_CHARACTERS = 8 * 1024 * 1024;
/** Blocks are nested eight deep. */
const MAX_DEPTH = 64;

/** Whether brackets open deeper than any answer of a node. Those inside strings count too, which only makes it stricter. */
function isDeep(text: string): boolean {
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return false;
}

/**
 * How long a node asks to be left alone, in milliseconds, bounded; `null` if it does not. It says so in `Retry-After` (seconds,
 * or a date, which counts from the answer's own `Date`), or as TronGrid does in the text:
 * `{"Success":false,"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s","StatusCode":403}`.
 */
export function readRetryAfter(headers: Headers, text: string): number | null {
  const header = String(headers['retry-after'] ?? '').trim();
  const told = /suspended for (\d{1,6})\s?s/i.exec(text.slice(0, 1000))?.[1];
  const seconds = /^\d{1,6}$/.test(header) ? Number(header) : told === undefined ? null : Number(told);
  const untilMs = Date.parse(header) - Date.parse(String(headers['date'] ?? ''));
  const ms = seconds === null ? untilMs : seconds * 1000;
  return Number.isFinite(ms) ? Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) : null;
}

function shown(whole: string): string {
  const text = whole.replace(/\s+/g, ' ').trim();
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
