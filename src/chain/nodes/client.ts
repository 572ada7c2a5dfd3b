import { AppError } from '../../domain/errors.ts';
import { type NodeSpec, nodeOrigin, urlsOf } from '../../domain/node.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { type Lateness, startDeadline } from './deadline.ts';
import { createGrpcCaller } from './grpc-client.ts';
import { createHttpCaller } from './http-client.ts';
import type { Question } from './question.ts';
import { AnswerTooLarge, type Refusal, TransportRefusal } from './refusal.ts';

/** Asks a node. Throws `NODE_REFUSED` (always worth a retry) whatever goes wrong. */
export type NodeClient = {
  /** For logs: without credentials, key and path. */
  origin: string;
  /** Whether it can be asked for the very bytes: by gRPC. */
  hasBytes: boolean;
  /** Whether there is a place at which it may answer JSON-RPC. */
  hasJsonRpc: boolean;
  ask<Answer>(question: Question<Answer>, call?: Call): Promise<Answer>;
  /** Ends what is under way. */
  close(): Promise<void>;
};

export type Call = {
  timeoutMs?: number;
  /** An answer that comes steadily may take so many times as long; five times when absent. */
  steadyShare?: number;
  /** Less than the question's own bound. */
  maxBytes?: number;
  /** Asks by gRPC, also a node that is asked by HTTP as a rule. */
  wantsBytes?: boolean;
  onOutcome?(outcome: Outcome): void;
};

export type Outcome =
  | { kind: 'ok' }
  /**
   * `retryAfterMs`: how long the node asks to be left alone, at most five minutes. `mayBeTheQuestion`: the node was reached and does not
   * limit us, so that what went wrong may be the doing of what was asked for. `late`: it took too long, saying nothing or answering slowly.
   * `isTooLarge`: it is more than was wanted.
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
  /** For a whole answer, unless the call says otherwise. */
  timeoutMs?: number;
  /** Less than the questions' own bounds. */
  maxAnswerBytes?: number;
  /** The node's name in messages, in place of its URL's origin. */
  origin?: string;
};

/** More than all witnesses take; questions about blocks allow more. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** A healthy node answers in milliseconds; a hang must not cost more than a few blocks. */
const ANSWER_TIMEOUT_MS = 10_000;

/** A steady answer may take this many times the timeout: silence counts, and not length. */
const STEADY_SHARE = 5;

export function createNodeClient(options: NodeClientOptions): NodeClient {
  const { spec, timeoutMs = ANSWER_TIMEOUT_MS, maxAnswerBytes = Number.POSITIVE_INFINITY } = options;
  const origin = options.origin ?? nodeOrigin(spec.url);
  const isGrpc = spec.url.startsWith('grpc');
  const main = isGrpc ? createGrpcCaller(spec, spec.apiKey) : createHttpCaller(spec, spec.apiKey);
  const twin = isGrpc ? main : spec.grpc === null ? null : createGrpcCaller(spec.grpc, spec.apiKey);
  const redact = redactor(spec);
  return {
    origin,
    hasBytes: twin !== null,
    hasJsonRpc: spec.jsonRpcUrl !== null,
    ask: async (question, call = {}) => {
      const limitMs = Math.max(call.timeoutMs ?? timeoutMs, question.timeoutMs ?? 0);
      const maxBytes = Math.min(call.maxBytes ?? maxAnswerBytes, question.maxBytes ?? MAX_ANSWER_BYTES);
      // The same deadline covers connecting, waiting and a dripping body.
      const deadline = startDeadline(limitMs, call.steadyShare ?? STEADY_SHARE);
      const caller = call.wantsBytes === true && twin !== null ? twin : main;
      // The node is not blamed for its twin, for its JSON is as good as before.
      const report = (outcome: Outcome) => void (caller === main && call.onOutcome?.(outcome));
      try {
        const { signal, extend } = deadline;
        const answer = await caller.ask(question, { maxBytes, signal, onBytes: extend });
        report({ kind: 'ok' });
        return answer;
      } catch (error) {
        const late = deadline.signal.aborted ? deadline.lateness() : null;
        const refusal = refusalOf(error);
        const reason = redact(late === null ? refusal.reason : deadline.reason());
        const mayBeTheQuestion = late !== null || (refusal.wasReached && !refusal.isLimit);
        const { retryAfterMs } = refusal;
        const isTooLarge = error instanceof AnswerTooLarge;
        report({ kind: 'refused', reason, retryAfterMs, mayBeTheQuestion, late, isTooLarge });
        const path = (caller === main && !isGrpc ? question.http : question.grpc)?.path ?? question.http.path;
        const message = `${origin}${path}: ${reason}`;
        if (isTooLarge) throw new AnswerTooLarge(message);
        // No cause: what a transport throws may hold the whole URL.
        throw new AppError('NODE_REFUSED', message, { retryable: true });
      } finally {
        deadline.clear();
      }
    },
    close: async () => {
      await Promise.all([main.close(), twin?.close()]);
    },
  };
}

/** Takes the secrets out of a text, for a refusal may repeat the request. */
function redactor(spec: NodeSpec): (text: string) => string {
  const { apiKey } = spec;
  const paths = urlsOf(spec)
    .map((url) => new URL(url).pathname)
    .filter((path) => path.length > 1);
  const secrets = [...(apiKey === null ? [] : [apiKey]), ...paths];
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, '…'), text);
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof TransportRefusal) return error.refusal;
  return { reason: reasonOf(error), retryAfterMs: null, wasReached: !isConnectionError(error), isLimit: false };
}

/** Node.js and undici throw errors with a code where nothing was answered. */
function isConnectionError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !(error instanceof AppError);
}
