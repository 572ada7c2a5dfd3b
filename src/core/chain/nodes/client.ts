import { AppError, retryableError } from '../../domain/errors.ts';
import { type NodeSpec, nodeOrigin, urlsOf } from '../../domain/node.ts';
import { printableText } from '../../domain/text.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { createGrpcCaller } from './grpc-client.ts';
import { createHttpCaller } from './http-client.ts';
import { AnswerTooLarge, type Question, type Refusal, TransportRefusal } from './node.ts';

/** Sends questions to one node. Throws `NODE_REFUSED` (always retryable) on any failure. */
export type NodeClient = {
  /** For logs: the URL's origin, which contains no credentials, key or path. */
  origin: string;
  /** Whether the node can return raw bytes (by gRPC). */
  hasBytes: boolean;
  /** Whether the gRPC API is separate from the API that is normally used. */
  hasTwin: boolean;
  /** Whether a JSON-RPC URL is known. */
  hasJsonRpc: boolean;
  ask<Answer>(question: Question<Answer>, call?: Call): Promise<Answer>;
  close(): Promise<void>;
};

export type Call = {
  timeoutMs?: number;
  /** As long as an answer arrives steadily, it may take this many times the timeout. Default: 5. */
  steadyShare?: number;
  /** A limit for this call, below the question's own limit. */
  maxBytes?: number;
  /** Uses gRPC even if the node is normally asked over HTTP. */
  wantsBytes?: boolean;
  onOutcome?(outcome: Outcome): void;
};

export type Outcome =
  | { kind: 'ok' }
  /**
   * `retryAfterMs`: how long the node wants Quittance to wait, at most five minutes. `mayBeTheQuestion`: the node was reached and isn't
   * limiting requests, so the question itself may be the cause. `late`: the node timed out, either in silence or during a slow answer.
   * `isTooLarge`: the answer exceeded the limit.
   */
  | {
      kind: 'refused';
      reason: string;
      retryAfterMs: number | null;
      mayBeTheQuestion: boolean;
      late: Lateness | null;
      isTooLarge: boolean;
    };

export type NodeClientOptions = {
  spec: NodeSpec;
  /** The timeout for a whole answer, unless the call sets another. */
  timeoutMs?: number;
  /** A limit for all of this client's answers, below the questions' own limits. */
  maxAnswerBytes?: number;
  /** The node's name in messages. Default: its URL's origin. */
  origin?: string;
};

/** The list of all witnesses needs less than this. Questions about blocks allow more. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** A healthy node answers in milliseconds. A node that hangs must not delay Quittance by more than a few blocks. */
const ANSWER_TIMEOUT_MS = 10_000;

/** An answer that arrives steadily may take this many times the timeout, because a long answer isn't a failure, but silence is. */
const STEADY_SHARE = 5;

export function createNodeClient(options: NodeClientOptions): NodeClient {
  const { spec, timeoutMs = ANSWER_TIMEOUT_MS, maxAnswerBytes = Number.POSITIVE_INFINITY } = options;
  const origin = options.origin ?? nodeOrigin(spec.url);
  const isGrpc = spec.url.startsWith('grpc');
  const main = isGrpc ? createGrpcCaller(spec, spec) : createHttpCaller(spec);
  const twin = isGrpc ? main : spec.grpc === null ? null : createGrpcCaller(spec.grpc, spec);
  const redact = redactor(spec);
  return {
    origin,
    hasBytes: twin !== null,
    hasTwin: twin !== null && twin !== main,
    hasJsonRpc: spec.jsonRpcUrl !== null,
    ask: async (question, call = {}) => {
      const limitMs = Math.max(call.timeoutMs ?? timeoutMs, question.timeoutMs ?? 0);
      const maxBytes = Math.min(call.maxBytes ?? maxAnswerBytes, question.maxBytes ?? MAX_ANSWER_BYTES);
      // One deadline covers connecting, waiting, and reading a slow body.
      const deadline = startDeadline(limitMs, call.steadyShare ?? STEADY_SHARE);
      const caller = call.wantsBytes === true && twin !== null ? twin : main;
      const report = (outcome: Outcome) => call.onOutcome?.(outcome);
      try {
        const { signal, extend } = deadline;
        const answer = await caller.ask(question, { maxBytes, signal, onBytes: extend });
        report({ kind: 'ok' });
        return answer;
      } catch (error) {
        const late = deadline.signal.aborted ? deadline.lateness() : null;
        const refusal = refusalOf(error);
        const scheme = new URL(caller === main ? spec.url : (spec.grpc?.url ?? spec.url)).protocol;
        const reason = redact(late === null ? refusal.reason + schemeHint(error, scheme) : deadline.reason());
        const mayBeTheQuestion = late !== null || (refusal.wasReached && !refusal.isLimit);
        const { retryAfterMs } = refusal;
        const isTooLarge = error instanceof AnswerTooLarge;
        report({ kind: 'refused', reason, retryAfterMs, mayBeTheQuestion, late, isTooLarge });
        const path = (caller === main && !isGrpc ? question.http : question.grpc)?.path ?? question.http.path;
        const message = `${origin}${path}: ${reason}`;
        if (isTooLarge) throw new AnswerTooLarge(message);
        // The error has no `cause`, because a transport error may contain the whole URL.
        throw retryableError('NODE_REFUSED', message);
      } finally {
        deadline.clear();
      }
    },
    close: async () => {
      await Promise.all([main.close(), twin?.close()]);
    },
  };
}

/**
 * Returns a function that removes the node's secrets from a text, because a refusal may repeat the request. It also replaces control
 * characters, because a refusal may be compressed or in an unknown encoding.
 */
function redactor(spec: NodeSpec): (text: string) => string {
  const { apiKey } = spec;
  const paths = urlsOf(spec)
    .map((url) => new URL(url).pathname)
    .filter((path) => path.length > 1);
  const secrets = [...(apiKey === null ? [] : [apiKey]), ...paths];
  return (text) => printableText(secrets.reduce((shown, secret) => shown.replaceAll(secret, '…'), text));
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof TransportRefusal) return error.refusal;
  return { reason: reasonOf(error), retryAfterMs: null, wasReached: !isConnectionError(error), isLimit: false };
}

/** Suggests another scheme if the port doesn't seem to speak the protocol in the node's URL. Otherwise returns an empty string. */
function schemeHint(error: unknown, scheme: string): string {
  if (!(error instanceof Error)) return '';
  const [isGrpc, isTls] = [scheme.startsWith('grpc'), scheme.endsWith('s:')];
  const { code, name, cause } = error as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException };
  const codes = [code, cause?.code];
  if (codes.includes('ERR_SSL_WRONG_VERSION_NUMBER')) {
    return `: the port does not speak TLS; use ${isGrpc ? 'grpc' : 'http'}:// instead of ${scheme}//`;
  }
  if (codes.includes('ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')) {
    return ': the port speaks TLS and not gRPC; use its gRPC port, or https://';
  }
  if (isGrpc && codes.includes('ERR_HTTP2_ERROR')) {
    return `: the port does not speak gRPC; use its gRPC port, or http${isTls ? 's' : ''}://`;
  }
  if (name === 'HTTPParserError') return ': the port does not speak HTTP/1.1; if it is a gRPC service, use grpc://';
  const wasHungUp = codes.includes('UND_ERR_SOCKET') || (error instanceof TransportRefusal && error.refusal.wasHungUp);
  return wasHungUp && !isTls ? `; if this continues, the port may speak TLS: use ${scheme.slice(0, -1)}s://` : '';
}

/** If there was no answer, Node.js and undici throw errors that have a code. */
function isConnectionError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof AppError);
}

/** An answer that arrives at this rate isn't slow, however large it is. */
const GOOD_BYTES_PER_MS = 512;
/** Why an answer is late: nothing has arrived, or only part of it. */
export type Lateness = 'silent' | 'slow';

export type Deadline = ReturnType<typeof startDeadline>;

/**
 * Aborts after `limitMs` without an answer. An answer that arrives at a good rate may take up to `steadyShare` times as long. If that isn't
 * enough, the caller must increase `limitMs`.
 */
export function startDeadline(limitMs: number, steadyShare: number) {
  const controller = new AbortController();
  const startedMs = performance.now();
  let bytesRead = 0;
  let timer: NodeJS.Timeout;
  const untilMs = () => startedMs + Math.min(limitMs * steadyShare, limitMs + bytesRead / GOOD_BYTES_PER_MS);
  const arm = () => {
    const leftMs = untilMs() - performance.now();
    if (leftMs <= 0) controller.abort();
    else timer = setTimeout(arm, Math.ceil(leftMs));
  };
  arm();
  return {
    signal: controller.signal,
    /** Call this when bytes have arrived. The deadline then moves back, because a long answer isn't a failure, but silence is. */
    extend: (bytes: number) => {
      bytesRead += bytes;
    },
    lateness: (): Lateness => (bytesRead === 0 ? 'silent' : 'slow'),
    /** Returns why the deadline passed, as text for people. */
    reason: () =>
      bytesRead === 0
        ? `no complete response before the timeout of ${limitMs} ms`
        : `no complete response before the timeout: only ${bytesRead} bytes in ${Math.round(performance.now() - startedMs)} ms`,
    clear: () => clearTimeout(timer),
  };
}
