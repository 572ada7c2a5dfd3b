import { readAnswer, readRetryAfter } from '../../../src/chain/node-answer.ts';
import type { NodeClient, NodeClientOptions, Outcome } from '../../../src/chain/node-client.ts';
import { type Fault, faultsAt, hasFault } from '../../../src/devnet/faults.ts';
import { answerRequest, fallSick } from '../../../src/devnet/node-answers.ts';
import { ParameterError } from '../../../src/devnet/parameters.ts';
import { REFUSALS } from '../../../src/devnet/refusals.ts';
import { AppError } from '../../../src/domain/errors.ts';
import type { NodeSpec } from '../../../src/domain/node.ts';
import type { Random } from '../engine/random.ts';
import type { SimulatedProcess } from '../engine/simulated-process.ts';
import { createBlindness } from './blindness.ts';
import type { SimulatedChain } from './simulated-chain.ts';

/** A node of the simulated network, with an operator of its own. */
type SimulatedNode = { spec: NodeSpec; faults: readonly Fault[]; setFaults(...faults: readonly Fault[]): void };

export type SimulatedNodes = ReturnType<typeof createSimulatedNodes>;

const TIMEOUT_MS = 10_000;

/** Nodes that answer what the devnet's ledger says, through the faults they have, and are asked without sockets. */
export function createSimulatedNodes({
  chain,
  count,
  random,
}: {
  chain: SimulatedChain;
  count: number;
  random: Random;
}) {
  const blindness = createBlindness({ nowMs: chain.now, headTimeMs: () => chain.ledger.head().header.timestamp });
  const { ledger } = chain;
  const counts = { requests: 0 };
  const sicknesses = new Map<string, ReturnType<typeof fallSick>>();
  const nodes: SimulatedNode[] = Array.from({ length: count }, (_, index) => {
    const url = `http://node-${index}.test/secret-path-canary-${index}`;
    const node: SimulatedNode = {
      spec: {
        url,
        operator: `operator-${index}`,
        apiKey: `node-key-canary-${index}`,
        requestsPerSecond: null,
        requestsPerDay: null,
      },
      faults: [],
      setFaults: (...faults) => {
        node.faults = faults;
        sicknesses.set(url, fallSick(ledger, faults));
        blindness.look(nodes);
      },
    };
    sicknesses.set(url, fallSick(ledger, []));
    return node;
  });

  const textOf = (url: string, path: string, body: object): string => {
    const sickness = sicknesses.get(url);
    if (sickness === undefined) throw new Error(`there is no node ${url}`);
    try {
      return JSON.stringify(answerRequest({ ledger, now: chain.now, sickness }, path, body as never));
    } catch (error) {
      if (!(error instanceof ParameterError)) throw error;
      return JSON.stringify({ Error: `class java.lang.IllegalArgumentException : ${error.message}` });
    }
  };
  /** The nodes as a process asks them. */
  const clientsOf =
    (process: SimulatedProcess) =>
    ({ url, origin = url, timeoutMs = TIMEOUT_MS }: NodeClientOptions): NodeClient => ({
      ...{ url, origin, close: async () => undefined },
      post: async (path, body, { timeoutMs: limitMs = timeoutMs, onOutcome = () => undefined } = {}) => {
        counts.requests += 1;
        const latencyMs = random.chance(0.01) ? random.between(500, 4000) : random.between(5, 80);
        const refuse = (reason: string, outcome: Partial<Extract<Outcome, { kind: 'refused' }>>): never => {
          const mayBeTheQuestion = true;
          onOutcome({
            kind: 'refused',
            reason,
            retryAfterMs: null,
            mayBeTheQuestion,
            ...outcome,
          });
          throw new AppError('NODE_REFUSED', `${origin}${path}: ${reason}`, { retryable: true });
        };
        const faults = faultsAt(sicknesses.get(url)?.faults ?? [], path);
        const hangs = hasFault(faults, 'hang') || hasFault(faults, 'slow-drip');
        await process.arrive(hangs ? limitMs : Math.min(limitMs, latencyMs));
        if (hangs || latencyMs > limitMs) refuse(`no whole answer before the timeout of ${limitMs} ms`, {});
        if (hasFault(faults, 'reset')) refuse('the connection was reset', { mayBeTheQuestion: false });
        const refusal = faults.map(({ kind }) => REFUSALS.get(kind)).find((found) => found !== undefined);
        const whole = refusal?.body ?? textOf(url, path, body);
        const text = hasFault(faults, 'truncated') ? whole.slice(0, whole.length / 2) : whole;
        const status = refusal?.status ?? 200;
        let answer: unknown;
        try {
          answer = readAnswer(status, text);
        } catch (error) {
          const retryAfterMs = readRetryAfter({}, text);
          const mayBeTheQuestion = retryAfterMs === null && ![401, 403, 429].includes(status);
          refuse((error as Error).message, { retryAfterMs, mayBeTheQuestion });
        }
        onOutcome({ kind: 'ok' });
        return answer;
      },
    });
  return { nodes, counts, clientsOf, blindSpans: blindness.spans, specs: nodes.map(({ spec }) => spec) };
}
