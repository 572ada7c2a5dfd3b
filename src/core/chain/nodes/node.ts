import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import { AppError } from '../../domain/errors.ts';
import { isLocalNetwork, type Network } from '../../domain/network.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { findGenesisId } from '../../store/chain/cursor.ts';
import type { Sql } from '../../store/db/database.ts';
import type { JsonShape } from './json-reader.ts';

/**
 * The kinds of questions that have a substitute: infos can replace logs, single blocks can replace ranges, and JSON can replace infos as
 * bytes. If such a question fails, only questions of the same kind are paused, never the node.
 */
export type Substitutable = 'logs' | 'ranges' | 'bytes';

/** A question to a node, in both protocols that nodes support. `read` throws on anything that isn't an answer to it. */
export type Question<Answer> = {
  /** Absent if the question has no substitute. */
  substitutable?: Substitutable;
  /** Size limit of the answer. Default: 4 MiB. */
  maxBytes?: number;
  /** Approximate memory limit for the parts of a JSON answer that are kept. Default: 8 MiB. */
  maxHeldBytes?: number;
  /** Minimum timeout for a question that takes longer than others. */
  timeoutMs?: number;
  http: {
    path: `/wallet/${string}` | `/walletsolidity/${string}` | '/jsonrpc';
    body: object;
    shape?: JsonShape;
    read(json: unknown): Answer;
  };
  /** This is `null` if gRPC has no such call. */
  grpc: GrpcCall<Answer> | null;
};

export type GrpcCall<Answer> = {
  path: `/protocol.Wallet/${string}` | `/protocol.WalletSolidity/${string}`;
  /** Lower than the question's `maxBytes`, because bytes are shorter than JSON. */
  maxBytes?: number;
  request: Uint8Array;
  /**
   * Creates a sink that receives the answer's message in chunks; `length` is its size in bytes as claimed by the node. java-tron sends an
   * empty message if the requested object doesn't exist.
   */
  newSink(length?: number): MessageSink<Answer>;
};

export type MessageSink<Answer> = { push(chunk: Uint8Array): void; end(): Answer };

/** Maximum memory to allocate for a message based only on the length that a node claims. */
const MOST_ON_TRUST = 4 * 1024 * 1024;

/** Collects a whole message. Chunks are copied, because a chunk may be only a few bytes of a large socket buffer. */
export function wholeMessage<Answer>(
  read: (message: Uint8Array) => Answer,
): (expected?: number) => MessageSink<Answer> {
  return (expected = 0) => {
    let room = Buffer.allocUnsafe(Math.min(expected, MOST_ON_TRUST));
    let length = 0;
    return {
      push: (chunk) => {
        if (length + chunk.length > room.length) {
          const wider = Buffer.allocUnsafe(Math.max(room.length * 2, length + chunk.length));
          room.copy(wider, 0, 0, length);
          room = wider;
        }
        room.set(chunk, length);
        length += chunk.length;
      },
      end: () => {
        const message = room.subarray(0, length);
        room = Buffer.alloc(0);
        return read(message);
      },
    };
  };
}

/** Whether the question is about the irreversible chain, which java-tron serves on a separate port. */
export function isAboutSolid({ http }: Pick<Question<unknown>, 'http'>): boolean {
  return http.path.startsWith('/walletsolidity/');
}

/** A transport for questions to a node. Rejects with `TransportRefusal`, `AnswerTooLarge`, or a check's error. */
export type Caller = {
  ask<Answer>(question: Question<Answer>, limits: CallLimits): Promise<Answer>;
  close(): Promise<void>;
};

export type CallLimits = { maxBytes: number; signal: AbortSignal; onBytes(count: number): void };

/** Maximum length of a refusal in an error message. */
const SHOWN_CHARACTERS = 200;
/** Maximum pause that a node can request. A wrong header must not silence the node for a day. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

type Headers = Record<string, string | string[] | undefined>;

/**
 * `isLimit`: the node refuses the caller or the request rate, whatever the question is. `wasHungUp`: it closed the connection without an
 * answer.
 */
export type Refusal = {
  reason: string;
  retryAfterMs: number | null;
  wasReached: boolean;
  isLimit: boolean;
  wasHungUp?: boolean;
};

/** A refusal by the node, or by something in front of it. */
export class TransportRefusal extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

/** An error with the code `NODE_REFUSED` for an answer that exceeds the caller's limit. */
export class AnswerTooLarge extends AppError {
  constructor(message: string) {
    super('NODE_REFUSED', message, { retryable: true });
  }
}

/** Wraps an error that occurred after the answer had begun. The node was reached in any case, no matter what went wrong afterwards. */
export function afterReached(error: unknown): Error {
  if (error instanceof TransportRefusal || error instanceof AnswerTooLarge) return error;
  return new TransportRefusal({ reason: reasonOf(error), retryAfterMs: null, wasReached: true, isLimit: false });
}

/**
 * Returns the pause that a node asks for, in milliseconds and bounded, or `null` if it asks for none. It's in `Retry-After`, in seconds or
 * as a date relative to the response's own `Date`. TronGrid puts the pause into the text: `{"Success":false,"Error":"The key exceeds the
 * frequency limit(15), and the query server is suspended for 30s","StatusCode":403}`.
 */
export function readNodePause(headers: Headers, text: string): number | null {
  const header = String(headers['retry-after'] ?? '').trim();
  const reported = /suspended for (\d{1,6})\s?s/i.exec(text.slice(0, 1000))?.[1];
  const seconds = /^\d{1,6}$/.test(header) ? Number(header) : reported === undefined ? null : Number(reported);
  const untilMs = Date.parse(header) - Date.parse(String(headers['date'] ?? ''));
  const ms = seconds === null ? untilMs : seconds * 1000;
  return Number.isFinite(ms) ? Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) : null;
}

/** Returns the beginning of an answer on a single line. */
export function shown(whole: string): string {
  const text = whole.replace(/\s+/g, ' ').trim();
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/**
 * `maxBytes`: a limit for this call, below the question's own limit. `isOptional`: a stranger chose the question, so the node isn't paused
 * if the question may be at fault, for example if the answer is too large, too late or unreadable. `mayBeLarge`: the node isn't blamed for
 * an answer that is too large. `wantsBytes`: use gRPC, even if the node is normally asked over HTTP.
 */
export type AskOptions = {
  timeoutMs?: number;
  maxBytes?: number;
  isOptional?: boolean;
  mayBeLarge?: boolean;
  wantsBytes?: boolean;
};

export type Node = {
  /** The base URL. Its path may be a secret. */
  url: string;
  /** The node's name in logs and evidence, which contains no credentials, key or path. Unique among a pool's nodes. */
  origin: string;
  operator: string;
  /** Whether the node can return raw bytes. */
  hasBytes: boolean;
  /** Whether questions of this kind may be asked now. `bytes` means the separate gRPC API of a node that is normally asked over HTTP. */
  isOpenFor(kind: Substitutable): boolean;
  /** Pauses questions of this kind, because the answers couldn't be used. Each consecutive pause is longer. */
  setAside(kind: Substitutable, reason: string): void;
  /** The requests left for this UTC day, or `null` without a limit. */
  requestsLeft(): number | null;
  /**
   * Returns the answer, or throws `NODE_REFUSED`. If the node is paused or out of budget, throws immediately, without sending a request.
   */
  ask<Answer>(question: Question<Answer>, options?: AskOptions): Promise<Answer>;
};

export type NodeProblem =
  | 'refused'
  | 'unverifiable'
  | 'disagrees'
  | 'contradicts'
  | 'lagging'
  | 'wrong-network'
  | 'incomplete';

export type NodeHealth = {
  /** The node's origin, which contains no secret. */
  url: string;
  operator: string;
  state: 'unknown' | 'healthy' | 'paused' | 'wrong-network' | 'out-of-budget';
  reason: string | null;
  pausedForMs: number;
  /** The number of consecutive failures. */
  failures: number;
  /** Counted since the process started. */
  requests: number;
  refusals: number;
  requestsToday: number;
  /** The daily limit, or `null` without one. */
  requestsPerDay: number | null;
  /** Moving average over the answers, or `null` before the first one. */
  answerMs: number | null;
};

/** Returns each operator's first node, in order of preference, for up to `count` operators. */
export function ofDifferentOperators<Named extends Pick<Node, 'operator'>>(
  nodes: readonly Named[],
  count: number,
): Named[] {
  const operators = new Set<string>();
  return nodes.filter(({ operator }) => {
    if (operators.has(operator) || operators.size >= count) return false;
    operators.add(operator);
    return true;
  });
}

export type Avoidance = ReturnType<typeof createAvoidance>;

/**
 * Remembers an operator whose block can't be judged yet. For a while, other operators are preferred, but the avoided one isn't treated as
 * faulty.
 */
export function createAvoidance(forMs: number) {
  let avoided = '';
  let untilMs = Number.NEGATIVE_INFINITY;
  const isAvoided = ({ operator }: Node) => operator === avoided && performance.now() < untilMs;
  return {
    /** Call this when a node's answer can't be judged. The node's operator replaces the one that was avoided before. */
    avoid: ({ operator }: Node) => {
      avoided = operator;
      untilMs = performance.now() + forMs;
    },
    isAvoided,
    /** Returns the nodes in order of preference, with the avoided operator's nodes at the end. */
    sort: (nodes: readonly Node[]) => {
      const last = nodes.filter(isAvoided);
      return [...nodes.filter((node) => !last.includes(node)), ...last];
    },
  };
}

/**
 * Handles an error from a node that may fail: the pool has already recorded the error, and another node may answer. Unexpected errors are
 * rethrown.
 */
export function orNull(error: unknown): null {
  if (error instanceof AppError) return null;
  throw error;
}

/** Returns each node's URL with its state, for messages to the operator. */
export function describeNodes(pool: { health(): readonly NodeHealth[] }): string {
  const states = pool
    .health()
    .map(({ url, state, reason }) => `${url} is ${state}${reason === null ? '' : ` (${reason})`}`);
  return states.join('; ');
}

export type RecogniseDeps = { db: Sql; network: Network; pool: { setGenesis(id: string | null): void } };

/**
 * Sets the genesis block (block 0) that the pool recognises nodes by. Returns whether it's known; for a private network, that's only after
 * the first start.
 */
export async function recogniseNodes({ db, network, pool }: RecogniseDeps): Promise<boolean> {
  const id = isLocalNetwork(network) ? await findGenesisId(db, network) : GENESIS_BLOCK_IDS[network];
  pool.setGenesis(id);
  return id !== null;
}
