import { type Dispatcher, request } from 'undici';
import { printable } from '../../operator/input/printable.ts';
import { parseObject } from '../../runtime/parse-object.ts';
import { redactAnswer } from '../../webhooks/redact.ts';
import { USER_AGENT } from '../../webhooks/send.ts';
import { signWebhook } from '../../webhooks/sign.ts';
import { explain } from './read-feed.ts';

/** `unanswered`: the server did not get the event, or did not say so. `answer` is what a refusal said, in one line. */
export type Forwarded =
  | { kind: 'answered'; status: number; elapsedMs: number; answer: string | null; code: string | null }
  | { kind: 'unanswered'; reason: string };

/** As long as a real webhook waits. */
const TIMEOUT_MS = 15_000;
/** The first line of a refusal is enough to go on with. */
const MAX_ANSWER_BYTES = 8 * 1024;
const ANSWER_MS = 1000;
const MAX_LINE = 200;

/** Posts one event as a real webhook comes: the same bytes, headers and signature. Redirects are not followed. Never throws. */
export async function forward(
  to: { url: URL; secret: string; dispatcher: Dispatcher },
  event: { id: string; body: Uint8Array },
): Promise<Forwarded> {
  const timestampSeconds = Math.floor(Date.now() / 1000);
  const headers = signWebhook({ ...event, timestampSeconds, secrets: [to.secret] });
  const startedMs = performance.now();
  try {
    const response = await request(to.url, {
      dispatcher: to.dispatcher,
      method: 'POST',
      headers: { ...headers, 'user-agent': USER_AGENT },
      body: event.body,
      headersTimeout: TIMEOUT_MS,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const elapsedMs = Math.round(performance.now() - startedMs);
    const text = redactAnswer(await readStart(response.body));
    const status = response.statusCode;
    if (status >= 200 && status < 300) return { kind: 'answered', status, elapsedMs, answer: null, code: null };
    return { kind: 'answered', status, elapsedMs, ...(readDiagnosis(text) ?? { answer: firstLine(text), code: null }) };
  } catch (error) {
    return { kind: 'unanswered', reason: explain(error) };
  }
}

/** The first bytes of a body, as far as they come in time; the status has already answered. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  const tooSlow = setTimeout(() => body.destroy(), ANSWER_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    // The answer broke off or is too slow: the part that came is used.
  } finally {
    clearTimeout(tooSlow);
  }
  return Buffer.concat(chunks);
}

/** The SDK's answer to a webhook that it cannot verify: `{"error":"webhook_verification_failed","code":"…","message":"…"}`. */
function readDiagnosis(text: string): { answer: string; code: string } | null {
  const { error, code, message } = parseObject(text);
  if (error !== 'webhook_verification_failed' || typeof code !== 'string' || typeof message !== 'string') return null;
  return { answer: firstLine(message) ?? '', code: firstLine(code) ?? '' };
}

function firstLine(text: string): string | null {
  const [line] = text
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const shown = printable(line ?? '');
  if (shown === '') return null;
  return shown.length > MAX_LINE ? `${shown.slice(0, MAX_LINE)}…` : shown;
}
