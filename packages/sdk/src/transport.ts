import { QuittanceError } from './error.ts';
import { readAnswer } from './read-answer.ts';
import { readBounded } from './read-bounded.ts';
import { isTooLong, isTransient, retryWaitMs } from './retry.ts';
import type { Settings } from './settings.ts';

/** The same version as in package.json; a test compares them. Browsers don't send this header. */
const USER_AGENT = 'quittance-sdk/0.1.0';
/** The largest page of the feed has 100 events of less than 20 KB each. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export type Call = {
  method: 'GET' | 'POST' | 'PATCH';
  /** Starts with `/v1/` and includes the query. */
  path: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal | undefined;
};

/** Sends a call and returns the JSON object of the response. */
export type Transport = (call: Call) => Promise<Record<string, unknown>>;

type Failure = { error: QuittanceError; isTransient: boolean };
type Attempt = { kind: 'answered'; answer: Record<string, unknown> } | ({ kind: 'failed' } & Failure);

/**
 * Sends calls with retries. Every attempt has the same headers and body, so that the server can recognise it by its key. Throws a
 * QuittanceError for the last failure, or the reason of the caller's signal. `wait` can be replaced in tests.
 */
export function createTransport(settings: Settings, wait: typeof waitFor = waitFor): Transport {
  return async (call) => {
    for (let number = 0; ; number++) {
      call.signal?.throwIfAborted();
      const attempt = await attemptOnce(settings, call);
      if (attempt.kind === 'answered') return attempt.answer;
      const { error, isTransient: isWorthIt } = attempt;
      if (!isWorthIt || isTooLong(error.retryAfterMs) || number >= settings.maxRetries) throw error;
      await wait(retryWaitMs(number, error.retryAfterMs, Math.random()), call.signal);
    }
  };
}

async function attemptOnce(settings: Settings, call: Call): Promise<Attempt> {
  const { apiKey, baseUrl, send, timeoutMs } = settings;
  const what = `${call.method} ${baseUrl}${call.path}`;
  const controller = new AbortController();
  const stop = () => controller.abort();
  const timer = setTimeout(stop, timeoutMs);
  call.signal?.addEventListener('abort', stop, { once: true });
  try {
    const response = await send(baseUrl + call.path, {
      method: call.method,
      headers: { ...call.headers, accept: 'application/json', 'x-api-key': apiKey, 'user-agent': USER_AGENT },
      // A redirect must never be followed, because the secret key would be sent to its target.
      redirect: 'manual',
      signal: controller.signal,
      ...(call.body === undefined ? {} : { body: call.body }),
    });
    const body = await readBounded(response.body, MAX_ANSWER_BYTES);
    return judge(what, response, body);
  } catch (cause) {
    call.signal?.throwIfAborted();
    const error = controller.signal.aborted
      ? new QuittanceError('TIMEOUT', `${what} got no response within ${timeoutMs} ms`)
      : new QuittanceError('CONNECTION_FAILED', `${what} failed: ${reasonOf(cause).replaceAll(apiKey, '…')}`);
    return { kind: 'failed', error, isTransient: true };
  } finally {
    clearTimeout(timer);
    call.signal?.removeEventListener('abort', stop);
  }
}

function judge(what: string, response: Response, body: Uint8Array | null): Attempt {
  const { status } = response;
  if (body === null) {
    const message = `${what} returned more than ${MAX_ANSWER_BYTES} bytes`;
    const error = new QuittanceError('ANSWER_TOO_LARGE', message, { status });
    return { kind: 'failed', error, isTransient: isTransient(status) };
  }
  const answer = readAnswer(what, response, body);
  if (!(answer instanceof QuittanceError)) return { kind: 'answered', answer };
  return { kind: 'failed', error: answer, isTransient: isTransient(status) };
}

/** `fetch` puts the reason into the cause: `fetch failed` is caused by `connect ECONNREFUSED 127.0.0.1:80`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason was given';
  const { cause } = error;
  const { code } = (cause ?? {}) as { code?: unknown };
  const inner = cause instanceof Error ? ` (${cause.message || String(code)})` : '';
  return (error.message + inner).slice(0, 500);
}

/** Waits, but stops as soon as the caller's signal is aborted. */
function waitFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
    // If the signal is already aborted, it emits no event.
    if (signal?.aborted === true) end();
    function end(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      if (signal?.aborted === true) reject(signal.reason);
      else resolve();
    }
  });
}
