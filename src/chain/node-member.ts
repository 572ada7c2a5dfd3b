import { AppError } from '../domain/errors.ts';
import { createNodeIdentity } from './node-identity.ts';
import { createNodeLine, type NodeLineOptions } from './node-line.ts';

/**
 * `maxBytes`: of the answer; 4 MiB unless said otherwise. `isOptional`: a stranger chose what is asked for, so that the node is
 * not paused for what may be the doing of the question: an answer that is too large, too late or unreadable.
 */
type PostOptions = { timeoutMs?: number; maxBytes?: number; isOptional?: boolean };

/** A node as those see it who ask. */
export type Node = {
  /** Base URL; its path may be a secret. */
  url: string;
  /** For logs and evidence: without credentials, key and path; different for each node of a pool. */
  origin: string;
  operator: string;
  /** Parsed JSON, or throws `NODE_REFUSED`. A node that is paused or out of its budget refuses at once, unasked. */
  post(path: string, body: object, options?: PostOptions): Promise<unknown>;
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
  /** The node's origin, which holds no secret. */
  url: string;
  operator: string;
  state: 'unknown' | 'healthy' | 'paused' | 'wrong-network' | 'out-of-budget';
  reason: string | null;
  pausedForMs: number;
  /** Since the start of the process. */
  requests: number;
  refusals: number;
  requestsToday: number;
  /** A moving average over answers; null before the first. */
  answerMs: number | null;
};

/** A node of a pool with its budget, its pauses and what is known of its network. */
export type NodeMember = {
  node: Node;
  /** Neither paused, nor out of budget, nor of the wrong network. */
  isUsable(): boolean;
  isRecognised(): boolean;
  isOnTrial(): boolean;
  /** Starts a check of its network where one is due; the check under way, or null. */
  recognise(): Promise<boolean> | null;
  report(problem: NodeProblem, reason: string): void;
  praise(): void;
  shortenPause(maxMs: number): void;
  setGenesis(id: string | null): void;
  health(): NodeHealth;
  showMetrics(): void;
  close(): Promise<void>;
};

/** After a pause this long a node has to say again which network it is of, before others wait for its answers. */
const LONG_PAUSE_MS = 2000;

export function createNodeMember(options: NodeLineOptions): NodeMember {
  const { spec, origin, network, metrics } = options;
  const line = createNodeLine(options);
  const { pause, budget, seen } = line;
  const identity = createNodeIdentity({ ...options, ask: line.post, onFailure: line.report });
  const isUsable = () => line.isOpen() && !identity.isWrong();
  const stateOf = (): NodeHealth['state'] => {
    if (identity.isWrong()) return 'wrong-network';
    if (budget.isExhausted()) return 'out-of-budget';
    if (pause.remainingMs() > 0) return 'paused';
    return seen.isWell && identity.isRecognised() ? 'healthy' : 'unknown';
  };
  const post: Node['post'] = async (path, body, call) => {
    if (!identity.isWrong()) return line.post(path, body, call);
    throw new AppError('NODE_REFUSED', `${origin}${path} was not asked: the node is of another network`, {
      retryable: true,
    });
  };
  const isRecognised = () => {
    if (pause.takeLong(LONG_PAUSE_MS)) identity.doubt();
    return identity.isRecognised();
  };
  return {
    node: { url: line.url, origin, operator: spec.operator, post },
    isUsable,
    isRecognised,
    isOnTrial: () => pause.failures() > 0 && seen.inFlight > 0,
    recognise: () => (line.isOpen() && !isRecognised() ? identity.check() : null),
    report: (problem, reason) => {
      if (problem === 'wrong-network') identity.markWrong(reason);
      else line.report(`${problem}: ${reason}`);
    },
    praise: line.praise,
    shortenPause: pause.shorten,
    setGenesis: identity.setGenesis,
    health: () => {
      const { requests, refusals, answerMs, reason } = seen;
      return {
        url: origin,
        operator: spec.operator,
        state: stateOf(),
        reason: identity.wrongReason() ?? reason,
        pausedForMs: Math.ceil(pause.remainingMs()),
        requests,
        refusals,
        requestsToday: budget.requestsToday(),
        answerMs,
      };
    },
    showMetrics: () => {
      metrics.nodePaused.set({ network, node: origin }, isUsable() ? 0 : 1);
      metrics.nodeBudgetUsed.set({ network, node: origin }, budget.usedShare() ?? 0);
    },
    close: async () => {
      await line.close();
      await identity.settled();
    },
  };
}
