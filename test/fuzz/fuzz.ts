import fc from 'fast-check';
import { exchanges } from './exchanges.ts';
import type { OpenApi } from './openapi.ts';
import { createOracle, type Oracle } from './oracle.ts';
import { readResponses, type WireResponse } from './read-responses.ts';
import { send } from './send.ts';
import { type Exchange, fillNames, type Names, type Shot, showBytes } from './shot.ts';

export type FuzzTarget = {
  port: number;
  document: OpenApi;
  names: Names;
  /** Appears in everything of the other project. */
  canary: string;
  /** A judge other than that of the API's own port. */
  oracle?: Oracle;
};

export type FuzzOptions = {
  /** With five requests each, on average. */
  connections: number;
  seed: number;
  /** From a failure reported with its seed: only the failing exchange is sent. */
  path?: string;
  hangMs?: number;
  /** Whether to shrink a failure; reporting it as it was found takes less time. */
  isShrinking?: boolean;
};

export type Figures = {
  /** The requests sent. After an answer that closes a connection, the server reads no more. */
  requests: number;
  answers: number;
  connections: number;
  byKind: Map<string, number>;
  byStatus: Map<string, number>;
  /** The paths of invoices and endpoints that were acknowledged with 201. */
  acknowledged: Set<string>;
};

/** Parallel connections. */
const LANES = 8;

/**
 * Sends generated exchanges over several parallel connections. The same seed sends the same bytes. A failure is shrunk, and thrown with its
 * seed, path and exact bytes.
 */
export async function fuzz(target: FuzzTarget, options: FuzzOptions): Promise<Figures> {
  const figures: Figures = {
    ...{
      requests: 0,
      answers: 0,
      connections: 0,
      byKind: new Map(),
      byStatus: new Map(),
      acknowledged: new Set(),
    },
  };
  const oracle = target.oracle ?? createOracle(target.document, target.names, target.canary);
  const run = (exchange: Exchange) => runExchange(target, oracle, exchange, figures, options);
  const arbitrary = exchanges(target.document);
  const lanes = options.path === undefined ? LANES : 1;
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      const seed = options.seed + lane;
      const numRuns = Math.ceil(options.connections / lanes);
      const path = options.path === undefined ? {} : { path: options.path };
      const endOnFailure = options.isShrinking === false;
      const report = await fc.check(fc.asyncProperty(arbitrary, run), { seed, numRuns, endOnFailure, ...path });
      if (!report.failed) return;
      const found = report.errorInstance instanceof Error ? report.errorInstance.message : String(report.errorInstance);
      throw new Error(`fuzz seed ${seed}, path ${report.counterexamplePath}: ${found}`);
    }),
  );
  return figures;
}

async function runExchange(
  { port, names }: FuzzTarget,
  oracle: Oracle,
  exchange: Exchange,
  figures: Figures,
  { hangMs }: FuzzOptions,
): Promise<void> {
  const { shots, ending } = exchange;
  const template = shots.map(({ text }) => text).join('') + (ending.kind === 'wild' ? ending.text : '');
  const whole = fillNames(template, names);
  const text = ending.kind === 'leaves' ? whole.slice(0, ending.afterBytes) : whole;
  const cuts = exchange.cuts.map((cut) => Math.floor((text.length * cut) / 1000));
  const until = { close: 'await-close', wild: 'probe', leaves: 'leave' } as const;
  const how = ending.kind === 'leaves' && ending.hard ? 'reset' : until[ending.kind];
  let received = '';
  try {
    const sent = await send(port, { text, cuts, until: how, ...(hangMs === undefined ? {} : { hangMs }) });
    received = sent.bytes.toString('latin1');
    count(figures.byKind, ending.kind === 'wild' ? `ended by ${ending.what.split(':')[0]}` : `ended: ${ending.kind}`);
    const methods = [...shots.map(({ method }) => method), ...Array<string>(2).fill('GET')];
    const responses = readResponses(sent.bytes, methods, ending.kind !== 'close');
    note(figures, shots, responses);
    figures.connections += 1;
    judgeAll(oracle, exchange, responses);
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${what}\nrequests: ${shots.map(({ kind, method }) => `${kind} (${method})`).join(', ')}; ${JSON.stringify({ ...ending, text: undefined })}; cut at ${JSON.stringify(cuts)}\nsent: ${showBytes(template)}\ncame: ${showBytes(received, 3000)}`,
    );
  }
}

function note(figures: Figures, shots: readonly Shot[], responses: readonly WireResponse[]): void {
  figures.requests += shots.length;
  figures.answers += responses.length;
  for (const { kind } of shots) count(figures.byKind, kind);
  for (const [index, response] of responses.entries()) {
    const { status, headers } = response;
    count(figures.byStatus, String(status));
    if (status === 201 && index < shots.length) figures.acknowledged.add(headers.get('location') ?? '');
  }
}

/** Each answer belongs to the request at its position, and each request has one, until an answer says that it's the last. */
function judgeAll(oracle: Oracle, { shots, ending }: Exchange, responses: readonly WireResponse[]): void {
  for (const [index, response] of responses.entries()) {
    const shot = shots[index];
    if (shot === undefined) oracle.judgeAny(response);
    else oracle.judge(shot, response, index === 0);
    if (response.closes && index + 1 < responses.length) throw new Error('there is an answer behind the last one');
  }
  if (
    oracle.isComplete &&
    ending.kind === 'close' &&
    responses.length < shots.length &&
    responses.at(-1)?.closes !== true
  ) {
    throw new Error(`${shots.length} requests have ${responses.length} answers`);
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
