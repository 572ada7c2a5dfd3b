import { Agent, type Dispatcher, request } from 'undici';
import type { SignedHeaders } from './sign.ts';

/**
 * What one attempt came to. `error` is a class of at most a few words, a colon, and what happened in plain words; it holds
 * no part of the URL or of the answer. `aborted` means that we stopped it, which says nothing about the endpoint.
 */
export type SendResult =
  | { kind: 'delivered'; status: number }
  | { kind: 'gone' }
  | { kind: 'failed'; status: number | null; error: string; retryAfterMs: number | null }
  | { kind: 'aborted' };

export type WebhookSender = {
  /** Makes one attempt; never throws. `nowMs` is what a Retry-After date is measured from. */
  send(webhook: {
    url: string;
    headers: SignedHeaders;
    body: Uint8Array;
    nowMs: number;
    stop: AbortSignal;
  }): Promise<SendResult>;
  /** Destroys what is open. */
  close(): Promise<void>;
};

/** From the contract: delivered is any 2xx within 15 s. */
const ATTEMPT_TIMEOUT_MS = 15_000;

/**
 * Sends webhooks over connections of its own. `connections` bounds them per origin; it should be the number of attempts
 * made at once, since a request that waits for a connection uses up its time.
 */
export function createWebhookSender(options: { connections: number; timeoutMs?: number }): WebhookSender {
  const timeoutMs = options.timeoutMs ?? ATTEMPT_TIMEOUT_MS;
  const agent = new Agent({
    connections: options.connections,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
  return {
    send: async ({ url, headers, body, nowMs, stop }) => {
      if (!isHttpUrl(url)) return failed(null, 'invalid_url: the URL of the endpoint is not http or https');
      const attempt = startTimer(timeoutMs, stop);
      try {
        const answer = await Promise.race([post(agent, url, headers, body, attempt.signal), attempt.aborted]);
        await drain(answer.body, attempt.aborted);
        return judge(answer.statusCode, answer.headers['retry-after'], nowMs);
      } catch (error) {
        if (error === TIMED_OUT) return failed(null, `timeout: no answer within ${timeoutMs / 1000} s`);
        return error === STOPPED ? { kind: 'aborted' } : failed(null, explain(error));
      } finally {
        attempt.clear();
      }
    },
    close: () => agent.destroy(),
  };
}

/** Below the total, so that an address that swallows packets frees its socket before the next attempt. */
const CONNECT_TIMEOUT_MS = 10_000;
/** An endpoint may ask for longer; idle sockets are not worth it. */
const KEEP_ALIVE_MAX_MS = 30_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** The answer's body says nothing to us; a short one is read so that the connection can be used again. */
const MAX_BODY_BYTES = 8 * 1024;
/** The status has already decided; a body that drips is not worth a slot. */
const DRAIN_MS = 1000;

const TIMED_OUT = new Error('the attempt took too long');
const STOPPED = new Error('the attempt was stopped');

function isHttpUrl(url: string): boolean {
  return URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol);
}

/** undici acts on an abort only once it is connected, so `aborted`, which rejects with the reason, is raced against it. */
function startTimer(timeoutMs: number, stop: AbortSignal) {
  const controller = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
  });
  aborted.catch(() => undefined);
  const onStop = () => controller.abort(STOPPED);
  stop.addEventListener('abort', onStop, { once: true });
  if (stop.aborted) onStop();
  const timer = setTimeout(() => controller.abort(TIMED_OUT), timeoutMs);
  return {
    signal: controller.signal,
    aborted,
    clear: () => {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    },
  };
}

function post(agent: Agent, url: string, headers: SignedHeaders, body: Uint8Array, signal: AbortSignal) {
  return request(url, {
    dispatcher: agent,
    method: 'POST',
    headers: { ...headers, 'user-agent': 'Quittance-Webhooks/2' },
    body,
    signal,
    highWaterMark: MAX_BODY_BYTES,
  });
}

/** Reads a short body to its end; closes the connection on a long, slow or broken one. */
async function drain(body: Dispatcher.ResponseData['body'], aborted: Promise<never>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooSlow = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MS);
  });
  body.on('error', () => undefined);
  const read = body.dump({ limit: MAX_BODY_BYTES }).catch(() => undefined);
  await Promise.race([read, tooSlow, aborted.catch(() => undefined)]);
  clearTimeout(timer);
  body.destroy();
}

function judge(status: number, retryAfter: string | string[] | undefined, nowMs: number): SendResult {
  if (status >= 200 && status < 300) return { kind: 'delivered', status };
  if (status === 410) return { kind: 'gone' };
  const retryAfterMs = readRetryAfter(retryAfter, nowMs);
  if (status >= 300 && status < 400) {
    return failed(
      status,
      `redirect: the endpoint answered ${status}, and redirects are not followed; register the final URL`,
      retryAfterMs,
    );
  }
  return failed(status, `http_${status}: the endpoint answered ${status}, and only 2xx is delivered`, retryAfterMs);
}

/**
 * Milliseconds that a Retry-After asks for, or `null`. Real values: `120` and `Wed, 21 Oct 2026 07:28:00 GMT`
 * (RFC 9110, 10.2.3 and 5.6.7: the two older forms of a date are read as well).
 */
export function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | null {
  if (typeof header !== 'string') return null;
  const text = header.trim();
  if (/^[0-9]+$/.test(text)) return Number(text) * 1000;
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [ -~]{1,40}$/.test(text)) return null;
  const timeMs = Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`);
  return timeMs > nowMs ? timeMs - nowMs : null;
}

/** Codes of Node, OpenSSL and undici and what they mean to who runs the endpoint. */
const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, `timeout: no connection within ${CONNECT_TIMEOUT_MS / 1000} s`],
  [/^UND_ERR_(HEADERS|BODY)_TIMEOUT$/, 'timeout: no answer in time'],
  [/^ECONNREFUSED$/, 'connection_refused: nothing listens at the address of the endpoint'],
  [/^(ENOTFOUND|EAI_)/, 'dns: the name of the endpoint does not resolve'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'connection_lost: the connection was closed before an answer'],
  [/^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, 'unreachable: no route to the endpoint'],
  [/(CERT|TLS|SSL|SIGNATURE|^EPROTO$)/, 'tls: no secure connection; check the certificate and its chain'],
  [/^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES)/, 'invalid_answer: the answer is not valid HTTP'],
];

function explain(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  const label = String(code ?? name);
  if (!/^[A-Za-z0-9_]{1,60}$/.test(label)) return UNKNOWN;
  return `${EXPLANATIONS.find(([pattern]) => pattern.test(label))?.[1] ?? UNKNOWN} (${label})`;
}

const UNKNOWN = 'network: the attempt failed';

function failed(status: number | null, error: string, retryAfterMs: number | null = null): SendResult {
  return { kind: 'failed', status, error, retryAfterMs };
}
