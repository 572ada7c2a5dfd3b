import { Agent, request } from 'undici';
import { AppError } from '../domain/errors.ts';
import { AnswerTooLarge, readAnswer, readBounded, readRetryAfter } from './node-answer.ts';

/** A TRON full node's HTTP API. `post` answers parsed JSON or throws `NODE_REFUSED` (always worth a retry). */
export type NodeClient = {
  /** Base URL without a trailing slash. Its path may be a secret: for logs there is `origin`. */
  url: string;
  origin: string;
  post(path: string, body: object, call?: Call): Promise<unknown>;
  /** Ends what is under way. */
  close(): Promise<void>;
};

/** More than all witnesses take; who asks for blocks allows more. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** One answer takes milliseconds on a healthy node; a hang must not cost more than a few blocks. */
const ANSWER_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5000;
/** Enough to read ahead while catching up, few enough for a provider that counts connections. */
const MAX_CONNECTIONS = 8;
/** A node that refuses who asks, or how often, whatever is asked. */
const LIMITING_STATUSES: readonly (number | null)[] = [401, 403, 429];

export type Outcome =
  | { kind: 'ok' }
  /**
   * `retryAfterMs`: how long the node asks to be left alone, at most five minutes. `mayBeTheQuestion`: the node was reached and
   * does not limit us, so that what went wrong may be the doing of what was asked for.
   */
  | { kind: 'refused'; reason: string; retryAfterMs: number | null; mayBeTheQuestion: boolean };

type Call = { timeoutMs?: number; maxBytes?: number; onOutcome?(outcome: Outcome): void };

export type NodeClientOptions = {
  url: string;
  /** Sent as `TRON-PRO-API-KEY`. */
  apiKey: string | null;
  /** For a whole answer, unless the call says otherwise. */
  timeoutMs?: number;
  maxAnswerBytes?: number;
  /** What the node is called in messages, in place of its URL's origin. */
  origin?: string;
};

export function createNodeClient(options: NodeClientOptions): NodeClient {
  const { apiKey, timeoutMs = ANSWER_TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = options;
  const agent = new Agent({
    connections: MAX_CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: 10_000,
  });
  const headers = { 'content-type': 'application/json', ...(apiKey === null ? {} : { 'TRON-PRO-API-KEY': apiKey }) };
  const url = options.url.replace(/\/+$/, '');
  const { pathname } = new URL(url);
  const origin = options.origin ?? new URL(url).origin;
  // A refusal may repeat what it was asked with.
  const secrets = [apiKey, pathname.length > 1 ? pathname : null].filter((secret) => secret !== null);
  const redact = (text: string) => secrets.reduce((shown, secret) => shown.replaceAll(secret, '…'), text);
  return {
    url,
    origin,
    post: async (path, body, call = {}) => {
      const limitMs = call.timeoutMs ?? timeoutMs;
      // One signal covers connecting, waiting and a dripping body.
      const signal = AbortSignal.timeout(limitMs);
      let status: number | null = null;
      let retryAfterMs: number | null = null;
      try {
        const sent = { method: 'POST', dispatcher: agent, headers, body: JSON.stringify(body), signal } as const;
        const response = await request(url + path, sent);
        status = response.statusCode;
        const text = await readBounded(response.body, call.maxBytes ?? maxAnswerBytes);
        retryAfterMs = readRetryAfter(response.headers, text);
        const answer = readAnswer(status, text);
        call.onOutcome?.({ kind: 'ok' });
        return answer;
      } catch (error) {
        const seen = signal.aborted ? `no whole answer before the timeout of ${limitMs} ms` : describe(error);
        const reason = redact(seen);
        const isLimit = retryAfterMs !== null || LIMITING_STATUSES.includes(status);
        const mayBeTheQuestion = signal.aborted || (status !== null && !isLimit);
        call.onOutcome?.({ kind: 'refused', reason, retryAfterMs, mayBeTheQuestion });
        const message = `${origin}${path}: ${reason}`;
        if (error instanceof AnswerTooLarge) throw new AnswerTooLarge(message);
        // No cause: what undici throws may hold the whole URL.
        throw new AppError('NODE_REFUSED', message, { retryable: true });
      }
    },
    close: () => agent.destroy(),
  };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : error.name;
  return error.message || code;
}
