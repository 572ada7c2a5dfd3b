import { AppError } from '../../domain/errors.ts';
import type { Node, NodeHealth, NodeProblem } from './node.ts';
import { createNodeIdentity } from './node-identity.ts';
import { createNodeLine, type NodeLineOptions } from './node-line.ts';

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
  restorePause(remembered: { failures: number; pausedForMs: number; reason: string | null }): void;
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
  const identity = createNodeIdentity({ ...options, ask: line.ask, onFailure: line.report });
  const isUsable = () => line.isOpen() && !identity.isWrong();
  const stateOf = (): NodeHealth['state'] => {
    if (identity.isWrong()) return 'wrong-network';
    if (budget.isExhausted()) return 'out-of-budget';
    if (pause.remainingMs() > 0) return 'paused';
    return seen.isWell && identity.isRecognised() ? 'healthy' : 'unknown';
  };
  const ask: Node['ask'] = async (question, call) => {
    if (!identity.isWrong()) return line.ask(question, call);
    throw new AppError('NODE_REFUSED', `${origin} was not asked: the node is of another network`, { retryable: true });
  };
  const isRecognised = () => {
    if (pause.takeLong(LONG_PAUSE_MS)) identity.doubt();
    return identity.isRecognised();
  };
  return {
    node: {
      ...{ url: spec.url, origin, operator: spec.operator, ask },
      ...{ hasBytes: line.hasBytes, isOpenFor: line.isOpenFor, setAside: line.setAside },
      requestsLeft: budget.requestsLeft,
    },
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
    restorePause: ({ reason, ...remembered }) => {
      pause.restore(remembered);
      seen.reason ??= reason;
    },
    setGenesis: identity.setGenesis,
    health: () => {
      const { requests, refusals, answerMs, reason } = seen;
      return {
        url: origin,
        operator: spec.operator,
        state: stateOf(),
        reason: identity.wrongReason() ?? reason,
        pausedForMs: Math.ceil(pause.remainingMs()),
        failures: pause.failures(),
        requests,
        refusals,
        requestsToday: budget.requestsToday(),
        requestsPerDay: spec.requestsPerDay,
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
