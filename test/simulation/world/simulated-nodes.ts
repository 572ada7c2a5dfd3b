import { type Fault, faultsAt, hasFault } from '@quittance/devnet/faults/faults';
import { REFUSALS } from '@quittance/devnet/faults/refusals';
import { fallSick, type Sickness } from '@quittance/devnet/node/node-answers';
import {
  type Deadline,
  type NodeClient,
  type NodeClientOptions,
  type Outcome,
  startDeadline,
} from '../../../src/core/chain/nodes/client.ts';
import { readAnswer } from '../../../src/core/chain/nodes/http-client.ts';
import { BadMessage } from '../../../src/core/chain/nodes/message-reader.ts';
import {
  AnswerTooLarge,
  type GrpcCall,
  type Question,
  readNodePause,
  TransportRefusal,
} from '../../../src/core/chain/nodes/node.ts';
import { AppError } from '../../../src/core/domain/errors.ts';
import { type NodeSpec, showsBytes, unlimitedNode } from '../../../src/core/domain/node.ts';
import type { Random } from '../engine/random.ts';
import type { SimulatedProcess } from '../engine/simulated-process.ts';
import { createBlindness } from './blindness.ts';
import type { Shape } from './plan.ts';
import { jsonAnswer, messageAnswer } from './simulated-answers.ts';
import type { SimulatedChain } from './simulated-chain.ts';

/** A node of the simulated network, with its own operator. */
type SimulatedNode = { spec: NodeSpec; faults: readonly Fault[]; setFaults(...faults: readonly Fault[]): void };

export type SimulatedNodes = ReturnType<typeof createSimulatedNodes>;

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** The most that a node shows of a block's infos at once, in proportion to the megabytes that a stranger can fill on a real chain. */
const MOST_BYTES: Readonly<Record<string, number>> = { '/wallet/gettransactioninfobyblocknum': 96 * 1024 };
/** How much arrives at once: messages in odd pieces, and slow answers in a few. */
const MESSAGE_PIECE_BYTES = 777;
const SLOW_PIECES = 8;
/** Statuses of a node that refuses the client or its rate. `error-200` is RESOURCE_EXHAUSTED in gRPC. */
const LIMITS = [401, 403, 429];

/** Nodes that answer from the devnet's ledger through their faults, and are queried without sockets. */
export function createSimulatedNodes({
  chain,
  shape: { nodeCount, languages },
  random,
}: {
  chain: SimulatedChain;
  shape: Pick<Shape, 'nodeCount' | 'languages'>;
  random: Random;
}) {
  const blindness = createBlindness({ nowMs: chain.now, headTimeMs: () => chain.ledger.head().header.timestamp });
  const { ledger } = chain;
  const counts = { requests: 0, byMessage: 0, tooLarge: 0 };
  const sicknesses = new Map<string, Sickness>();
  const nodes: SimulatedNode[] = Array.from({ length: nodeCount }, (_, index) => {
    const language = languages[index] ?? 'json';
    const place = `node-${index}.test/secret-path-canary-${index}`;
    const url = `${language === 'grpc' ? 'grpc' : 'http'}://${place}`;
    const grpc = language === 'twin' ? { url: `grpc://${place}`, solidityUrl: `grpc://${place}` } : null;
    const node: SimulatedNode = {
      spec: unlimitedNode(url, `operator-${index}`, { apiKey: `node-key-canary-${index}`, grpc }),
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

  /** Returns a process's clients of the nodes. */
  const clientsOf =
    (process: SimulatedProcess) =>
    ({ spec, origin = spec.url, timeoutMs = TIMEOUT_MS }: NodeClientOptions): NodeClient => ({
      ...{ origin, hasBytes: showsBytes(spec), hasTwin: spec.grpc !== null, hasJsonRpc: spec.jsonRpcUrl !== null },
      close: async () => undefined,
      ask: async (question, { timeoutMs: askedMs = timeoutMs, wantsBytes = false, ...call } = {}) => {
        const isGrpc = spec.url.startsWith('grpc') || (wantsBytes && spec.grpc !== null);
        const message = isGrpc ? question.grpc : null;
        const isMessage = message !== null;
        const { path } = message ?? question.http;
        const limitMs = Math.max(askedMs, question.timeoutMs ?? 0);
        counts.requests += 1;
        if (isMessage) counts.byMessage += 1;
        const latencyMs = random.chance(0.01) ? random.between(500, 4000) : random.between(5, 80);
        const refuse = (reason: string, outcome: Partial<Extract<Outcome, { kind: 'refused' }>>): never => {
          const usual = { retryAfterMs: null, mayBeTheQuestion: true, late: null, isTooLarge: false };
          call.onOutcome?.({ kind: 'refused', reason, ...usual, ...outcome });
          const message = `${origin}${path}: ${reason}`;
          if (outcome.isTooLarge === true) throw new AnswerTooLarge(message);
          throw new AppError('NODE_REFUSED', message, { retryable: true });
        };
        const sickness = sicknesses.get(spec.url);
        if (sickness === undefined) throw new Error(`there is no node ${spec.url}`);
        const faults = faultsAt(sickness.faults, question.http.path);
        const hangs = hasFault(faults, 'hang') || hasFault(faults, 'slow-drip');
        await process.arrive(hangs ? limitMs : Math.min(limitMs, latencyMs));
        if (hangs || latencyMs > limitMs) {
          refuse(`no complete response before the timeout of ${limitMs} ms`, { late: 'silent' });
        }
        if (hasFault(faults, 'reset')) refuse('the connection was reset', { mayBeTheQuestion: false });
        const refusal = faults.map(({ kind }) => REFUSALS.get(kind)).find((found) => found !== undefined);
        if (refusal !== undefined && (isMessage || refusal.status !== 200)) {
          const retryAfterMs = readNodePause({}, refusal.body);
          const isLimit = LIMITS.includes(refusal.status) || (isMessage && hasFault(faults, 'error-200'));
          refuse(`status ${refusal.status}: ${refusal.body}`, {
            retryAfterMs,
            mayBeTheQuestion: retryAfterMs === null && !isLimit,
          });
        }
        const most = MOST_BYTES[question.http.path] ?? Number.POSITIVE_INFINITY;
        const maxBytes = Math.min(call.maxBytes ?? most, question.maxBytes ?? MAX_BYTES, most);
        const deadline = startDeadline(limitMs, 5);
        try {
          const node = { ledger, now: chain.now, sickness };
          const asked = { question, faults, maxBytes, arrive: process.arrive, deadline };
          const answer = isMessage
            ? await askByMessage(asked, message, messageAnswer(node, faults, message))
            : await askByJson(asked, refusal?.body ?? jsonAnswer(node, faults, question.http));
          call.onOutcome?.({ kind: 'ok' });
          return answer;
        } catch (error) {
          if (deadline.signal.aborted) return refuse(deadline.reason(), { late: deadline.lateness() });
          const { retryAfterMs = null } = error instanceof TransportRefusal ? error.refusal : {};
          const isTooLarge = error instanceof AnswerTooLarge;
          if (isTooLarge) counts.tooLarge += 1;
          return refuse((error as Error).message, {
            retryAfterMs,
            mayBeTheQuestion: retryAfterMs === null,
            isTooLarge,
          });
        } finally {
          deadline.clear();
        }
      },
    });
  return { nodes, counts, clientsOf, blindSpans: blindness.spans, specs: nodes.map(({ spec }) => spec) };
}

type Asked<Answer> = {
  question: Question<Answer>;
  faults: readonly Fault[];
  maxBytes: number;
  arrive: SimulatedProcess['arrive'];
  deadline: Deadline;
};

function askByJson<Answer>(asked: Asked<Answer>, text: string): Promise<Answer> {
  const whole = Buffer.from(hasFault(asked.faults, 'truncated') ? text.slice(0, text.length / 2) : text);
  const limits = { maxBytes: asked.maxBytes, onBytes: asked.deadline.extend };
  return readAnswer(asked.question, arriving(asked, whole, whole.length), limits, {});
}

async function askByMessage<Answer>(
  asked: Asked<Answer>,
  call: GrpcCall<Answer>,
  message: Uint8Array,
): Promise<Answer> {
  const { faults, maxBytes, deadline } = asked;
  if (message.length > maxBytes) throw new AnswerTooLarge(`the response has ${message.length} bytes`);
  const sink = call.newSink();
  const isCut = hasFault(faults, 'truncated');
  const arrived = Buffer.from(isCut ? message.subarray(0, message.length >> 1) : message);
  for await (const piece of arriving(asked, arrived, MESSAGE_PIECE_BYTES)) {
    deadline.extend(piece.length);
    sink.push(piece);
  }
  if (isCut) throw new BadMessage('the response ends too early');
  return sink.end();
}

/** Yields an answer as it arrives: at once, or as slowly as its node is. */
async function* arriving({ faults, arrive, deadline }: Asked<unknown>, whole: Buffer, pieceBytes: number) {
  const slow = faults.find(({ kind }) => kind === 'slow-large-answer');
  const bytes = slow === undefined ? pieceBytes : Math.ceil(whole.length / SLOW_PIECES);
  for (let at = 0; at < whole.length; at += bytes) {
    const piece = whole.subarray(at, at + bytes);
    if (slow?.bytesPerSecond !== undefined) await arrive((piece.length / slow.bytesPerSecond) * 1000);
    if (deadline.signal.aborted) throw new Error('the deadline passed');
    yield piece;
  }
}
