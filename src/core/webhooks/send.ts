import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Network } from '../domain/network.ts';
import { pauseAsked } from '../domain/retry.ts';
import { parseUrl } from '../domain/url.ts';
import { Agent } from '../runtime/http-agent.ts';
import { signWebhook } from './sign.ts';
import { checkTarget, createTargetConnector, type LookupAll, type TargetRule, targetRule } from './target.ts';

/**
 * An attempt's result. `error` is a class, a colon, and the failure in plain words (see `explainError`); it contains nothing from the URL's
 * path and query, or from the response. `latencyMs` is the time until the status arrived or the attempt failed. `answer` is the first 8 KiB
 * of the response body, unchanged. `date` is its Date header. `delivered` without a `status` means that nothing was sent, because it was no
 * longer needed. `aborted` means that Quittance stopped the attempt, which says nothing about the endpoint.
 */
export type SendResult =
  | { kind: 'delivered'; status: number | null; latencyMs: number; answer: Uint8Array }
  | {
      kind: 'failed';
      status: number | null;
      error: string;
      retryAfterMs: number | null;
      latencyMs: number;
      answer: Uint8Array | null;
      date: string | null;
    }
  | { kind: 'aborted' };

type Webhook = {
  url: string;
  rule: TargetRule;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** The default is `POST`. A `GET` has no body. */
  method?: 'GET' | 'POST';
  /** Returns why a 2xx response counts as a failure, or `null`. By default, no 2xx response does. */
  refuse?(answer: Uint8Array): string | null;
  /** A date in Retry-After is measured from this time. */
  nowMs: number;
};

export type WebhookSender = {
  /** Makes one attempt. Never throws. */
  send(webhook: Webhook): Promise<SendResult>;
  /** Ends current and later attempts as `aborted`, and destroys open connections. */
  close(): Promise<void>;
};

/** As documented for receivers: any 2xx within 15 s counts as delivered. */
export const ATTEMPT_TIMEOUT_MS = 15_000;

/**
 * Creates a sender of webhooks with its own connections. `connections` limits the connections per origin; it should equal the number of
 * concurrent attempts, because waiting for a connection uses up the attempt's time. `lookup` and `ca` are for tests.
 */
export function createWebhookSender(options: {
  connections: number;
  timeoutMs?: number;
  lookup?: LookupAll;
  ca?: string;
}): WebhookSender {
  const { connections, timeoutMs = ATTEMPT_TIMEOUT_MS, ...connector } = options;
  const connectTimeoutMs = Math.min(CONNECT_TIMEOUT_MS, timeoutMs);
  const createAgent = (rule: TargetRule) =>
    new Agent({
      connections,
      connect: createTargetConnector({ rule, connectTimeoutMs, ...connector }),
      // The attempt's own timer fires earlier.
      headersTimeout: 2 * timeoutMs,
      bodyTimeout: 2 * timeoutMs,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
  const agents = { public: createAgent('public'), local: createAgent('local'), own: createAgent('own') };
  const findTarget = rememberTargets();
  const underWay = new Set<Exchange>();
  const sweep = setInterval(
    () => expire(underWay, performance.now()),
    Math.min(SWEEP_MS, Math.ceil(timeoutMs / 10)),
  ).unref();
  let isClosed = false;
  return {
    send: async (webhook) => {
      if (isClosed) return { kind: 'aborted' };
      const target = findTarget(webhook.url, webhook.rule);
      if (target.kind === 'refused') return failedAttempt(null, target.error, 0);
      const startedMs = performance.now();
      const ended = await exchange(agents[webhook.rule], target, webhook, { underWay, startedMs, timeoutMs });
      return judge(ended, webhook, { startedMs, timeoutMs });
    },
    close: async () => {
      isClosed = true;
      clearInterval(sweep);
      for (const each of underWay) each.end({ kind: 'stopped' });
      await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
    },
  };
}

/** `localTargets`: whether test network projects' webhooks may be sent to this machine, and over http. */
export type SendDeps = { sender: WebhookSender; localTargets: boolean };

/** Signs a webhook with each of its secrets (`whsec_…`) and sends it once. `id` is `evt_…`. Throws the errors of `signWebhook`. */
export async function sendSigned(
  { sender, localTargets }: SendDeps,
  webhook: {
    url: string;
    network: Network;
    id: string;
    body: Buffer;
    secrets: readonly string[];
    refuse?: (answer: Uint8Array) => string | null;
  },
  nowMs: number,
): Promise<SendResult> {
  const { url, network, id, body, secrets, refuse } = webhook;
  const headers = signWebhook({ id, timestampSeconds: Math.floor(nowMs / 1000), body, secrets });
  return sender.send({
    url,
    rule: targetRule(network, localTargets),
    headers,
    body,
    nowMs,
    ...(refuse && { refuse }),
  });
}

/** Shorter than the total timeout, so that the socket to an address that drops packets is released before the next attempt. */
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * An endpoint may ask for longer, but idle sockets for thousands of endpoints would cost more than they save. An origin's pool is closed
 * together with its last socket.
 */
const KEEP_ALIVE_MAX_MS = 10_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** How much of the response body is kept for the operator. The rest isn't read. */
const MAX_BODY_BYTES = 8 * 1024;
/** The status has already decided the outcome, so it isn't worth waiting for a slow body. */
const BODY_TIME_MS = 1000;
/** An HTTP date has only 29 characters. */
const MAX_DATE_LENGTH = 100;
export const USER_AGENT = 'Quittance-Webhooks/2';

/** How long after its deadline an attempt may be ended. One timer for all attempts costs less than two for each. */
const SWEEP_MS = 100;

type Target = { kind: 'ok'; origin: string; path: string } | { kind: 'refused'; error: string };

/** Parses and checks URLs, and caches the last thousand results. Addresses are checked when connecting. */
function rememberTargets(): (url: string, rule: TargetRule) => Target {
  const known = new Map<string, Target>();
  return (url, rule) => {
    const key = `${rule} ${url}`;
    let target = known.get(key);
    if (target === undefined) {
      target = readTarget(url, rule);
      if (known.size >= MAX_TARGETS) known.clear();
      known.set(key, target);
    }
    return target;
  };
}

const MAX_TARGETS = 1000;

function readTarget(text: string, rule: TargetRule): Target {
  const url = parseUrl(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return { kind: 'refused', error: 'invalid_url: the endpoint URL is not http or https' };
  }
  const check = checkTarget(url, rule);
  if (check.kind === 'refused') return { kind: 'refused', error: `target_refused: ${check.reason}` };
  return { kind: 'ok', origin: url.origin, path: url.pathname + url.search };
}

function judge(
  ended: Ended,
  { nowMs, refuse }: Webhook,
  { startedMs, timeoutMs }: { startedMs: number; timeoutMs: number },
): SendResult {
  if (ended.kind === 'stopped') return { kind: 'aborted' };
  const latencyMs = Math.round(ended.atMs - startedMs);
  if (ended.kind === 'timeout')
    return failedAttempt(null, `timeout: no response within ${timeoutMs / 1000} s`, latencyMs);
  if (ended.kind === 'broken') return failedAttempt(null, explainError(ended.error), latencyMs);
  const { status, answer, headers } = ended;
  if (status >= 200 && status < 300) {
    const error = refuse?.(answer) ?? null;
    if (error === null) return { kind: 'delivered', status, latencyMs, answer };
    return { kind: 'failed', status, error, retryAfterMs: null, latencyMs, answer, date: null };
  }
  const retryAfterMs = readRetryAfter(headers['retry-after'], nowMs);
  const date = typeof headers['date'] === 'string' ? headers['date'].slice(0, MAX_DATE_LENGTH) : null;
  const error = explainStatus(status) + (retryAfterMs === null || retryAfterMs <= 0 ? '' : pauseAsked(retryAfterMs));
  return { kind: 'failed', status, error, retryAfterMs, latencyMs, answer, date };
}

/** `atMs` (from performance.now) is when the status arrived, or when it was certain that none would arrive. */
type Ended =
  | { kind: 'answered'; atMs: number; status: number; headers: IncomingHttpHeaders; answer: Uint8Array }
  | { kind: 'broken'; atMs: number; error: unknown }
  | { kind: 'timeout'; atMs: number }
  | { kind: 'stopped' };

/** Tells undici that nothing more will be read. */
const ENOUGH = new Error('nothing more is read');

/** A request in progress: its deadline, and the function that ends it. */
type Exchange = { deadlineMs: number; end(otherwise: Ended): void };

function expire(underWay: ReadonlySet<Exchange>, nowMs: number): void {
  for (const each of underWay) if (each.deadlineMs <= nowMs) each.end({ kind: 'timeout', atMs: nowMs });
}

/**
 * Sends a request and reads the beginning of the response. It uses undici's handlers, because truncating a response with streams would take
 * several streams. It has its own deadline, because undici has no timer for a request that waits for a connection.
 */
function exchange(
  agent: Agent,
  { origin, path }: Extract<Target, { kind: 'ok' }>,
  { headers, body, method = 'POST' }: Webhook,
  { underWay, startedMs, timeoutMs }: { underWay: Set<Exchange>; startedMs: number; timeoutMs: number },
): Promise<Ended> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | null = null;
    let answered: Extract<Ended, { kind: 'answered' }> | null = null;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const finish = (otherwise: Ended, isWhole: boolean) => {
      if (!underWay.delete(self)) return;
      if (!isWhole) controller?.abort(ENOUGH);
      if (answered !== null && bytes > 0) answered.answer = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES);
      resolve(answered ?? otherwise);
    };
    const fail = (error: unknown, isWhole = false) =>
      finish({ kind: 'broken', atMs: performance.now(), error }, isWhole);
    const self: Exchange = { deadlineMs: startedMs + timeoutMs, end: (otherwise) => finish(otherwise, false) };
    underWay.add(self);
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (started) => {
        controller = started;
        // The connection was opened only after the deadline.
        if (!underWay.has(self)) started.abort(ENOUGH);
      },
      onResponseStart: (_, status, received) => {
        if (status < 200) return;
        const atMs = performance.now();
        answered = { kind: 'answered', atMs, status, headers: received, answer: NOTHING };
        self.deadlineMs = atMs + Math.min(BODY_TIME_MS, timeoutMs);
      },
      onResponseData: (_, chunk) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes >= MAX_BODY_BYTES) fail(ENOUGH);
      },
      onResponseEnd: () => fail(ENOUGH, true),
      onResponseError: (_, error) => fail(error),
    };
    try {
      const sent = { ...headers, 'user-agent': USER_AGENT };
      agent.dispatch({ origin, path, method, headers: sent, body: method === 'GET' ? null : body }, handler);
    } catch (error) {
      fail(error);
    }
  });
}

const NOTHING = new Uint8Array();

/**
 * Returns a Retry-After in milliseconds, or `null`. Real values: `120` and `Wed, 21 Oct 2026 07:28:00 GMT` (RFC 9110, 10.2.3 and 5.6.7; the
 * two older date formats are accepted as well).
 */
export function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | null {
  if (typeof header !== 'string') return null;
  const text = header.trim();
  if (/^[0-9]+$/.test(text)) return Number(text) * 1000;
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [ -~]{1,40}$/.test(text)) return null;
  const timeMs = Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`);
  return timeMs > nowMs ? timeMs - nowMs : null;
}

export function failedAttempt(status: number | null, error: string, latencyMs: number): SendResult {
  return { kind: 'failed', status, error, retryAfterMs: null, latencyMs, answer: null, date: null };
}

/**
 * Explains an attempt without a response: a class, a colon, and the failure in plain words. The classes never change, because diagnoses
 * depend on them: `timeout`, `dns`, `connection_refused`, `connection_lost`, `unreachable`, `tls`, `target_refused`, `redirect`,
 * `http_<status>`, `invalid_answer`, `invalid_url`, `network`, `unsigned`. For an adapter's shop there is also `not_acknowledged`, and for
 * tests and notifications `web_page`.
 */
export function explainError(error: unknown): string {
  const { code, name, message } = (error ?? {}) as { code?: unknown; name?: unknown; message?: unknown };
  if (code === 'TARGET_REFUSED') return `target_refused: ${String(message)}`;
  const label = String(code ?? name);
  if (!/^[A-Za-z0-9_]{1,60}$/.test(label)) return UNKNOWN;
  return `${EXPLANATIONS.find(([pattern]) => pattern.test(label))?.[1] ?? UNKNOWN} (${label})`;
}

/** Explains a response other than 2xx, in the same form. */
export function explainStatus(status: number): string {
  if (status >= 300 && status < 400) {
    return `redirect: the endpoint returned ${status}, but Quittance does not follow redirects; register the final URL`;
  }
  return `http_${status}: the endpoint returned ${status}${STATUSES[status] ?? (status >= 500 ? SERVER_ERROR : '')}, but only 2xx counts as delivered`;
}

const UNKNOWN = 'network: the attempt failed';
const SERVER_ERROR = ' (an error on its side)';
const STATUSES: Readonly<Record<number, string>> = {
  401: ' (it requires a login)',
  403: ' (it forbids the request)',
  404: ' (nothing exists at its path)',
  405: ' (its path does not accept POST)',
  410: ' (it is permanently gone)',
  413: ' (it does not accept a body of this size)',
  429: ' (it received too many requests)',
};

/** Error codes from Node.js, OpenSSL and undici, with their meaning for the endpoint's operator. The first match is used. */
const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'timeout: no connection in time'],
  [/^UND_ERR_(HEADERS|BODY)_TIMEOUT$/, 'timeout: no response in time'],
  [/^ECONNREFUSED$/, "connection_refused: nothing is listening at the endpoint's address"],
  [/^ENOTFOUND$/, 'dns: the endpoint host name does not resolve'],
  [/^EAI_/, 'dns: the endpoint host name could not be looked up'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'connection_lost: the connection was closed before a response arrived'],
  [/^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, 'unreachable: no route to the endpoint'],
  [/^CERT_HAS_EXPIRED$/, 'tls: the certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, 'tls: the certificate is not valid yet; check the clocks'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'tls: the certificate is for a different name'],
  [/^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/, 'tls: the certificate is self-signed'],
  [
    /^(UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?)$/,
    'tls: the certificate chain is incomplete, or no well-known authority signed it',
  ],
  [/^CERT_REVOKED$/, 'tls: the certificate was revoked'],
  [/(CERT|TLS|SSL|SIGNATURE|^EPROTO$)/, 'tls: no secure connection'],
  [/^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES)/, 'invalid_answer: the response is not valid HTTP'],
];
