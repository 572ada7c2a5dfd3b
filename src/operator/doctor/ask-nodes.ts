import { headerAt } from '../../chain/nodes/ask-block.ts';
import { createNodeClient } from '../../chain/nodes/client.ts';
import { readBlockId } from '../../chain/proof/prove-block.ts';
import type { Network } from '../../domain/network.ts';
import { type NodeSpec, nodeOrigin } from '../../domain/node.ts';
import type { UnixMs } from '../../domain/time.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import type { DoctorNetwork } from './doctor-settings.ts';

type Block = { number: number; id: string; time: UnixMs };

/**
 * What a node said. `problem`: why it said nothing of use. `atCommon`: its block at the greatest height that all nodes of the network call
 * irreversible.
 */
export type NodeReport = {
  network: Network;
  spec: NodeSpec;
  origin: string;
  problem: string | null;
  genesisId: string | null;
  head: Block | null;
  solid: Block | null;
  atCommon: Block | null;
  /** Of the fastest of its answers. */
  answerMs: number | null;
};

/** Twice this, one after the other, is less than a check may take. */
const NODE_MS = 2500;

/** Asks each node of each network for four headers, past the pool, which leaves out one that is wrong. Never fails. */
export async function askNodes(networks: readonly DoctorNetwork[]): Promise<NodeReport[]> {
  const reports = await Promise.all(networks.map(askNetwork));
  return reports.flat();
}

async function askNetwork({ network, nodes }: DoctorNetwork): Promise<NodeReport[]> {
  const clients = nodes.map((spec) => createNodeClient({ spec, timeoutMs: NODE_MS }));
  try {
    const reports = await Promise.all(clients.map((client, index) => askNode(network, nodes[index], client)));
    const solid = reports.flatMap((report) => report.solid?.number ?? []);
    if (solid.length < 2) return reports;
    const common = Math.min(...solid);
    return await Promise.all(
      reports.map(async (report, index) => {
        const client = clients[index];
        if (report.solid === null || client === undefined) return report;
        return { ...report, atCommon: await readHeader(client, 'any', common).catch(() => null) };
      }),
    );
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

type Client = ReturnType<typeof createNodeClient>;

async function askNode(network: Network, spec: NodeSpec | undefined, client: Client): Promise<NodeReport> {
  if (spec === undefined) throw new Error('there is a client for each node');
  const times: number[] = [];
  const timed = async (ask: Promise<Block>) => {
    const sentMs = performance.now();
    const block = await ask;
    times.push(performance.now() - sentMs);
    return block;
  };
  const sides = [readHeader(client, 'any', 0), readHeader(client, 'any'), readHeader(client, 'solid')] as const;
  const [genesis, head, solid] = await Promise.allSettled(sides.map(timed));
  const shownBy = (settled: PromiseSettledResult<Block> | undefined) =>
    settled?.status === 'fulfilled' ? settled.value : null;
  const refused = [genesis, head, solid].find((settled) => settled?.status === 'rejected');
  return {
    ...{ network, spec, origin: nodeOrigin(spec.url) },
    problem: refused?.status === 'rejected' ? reasonOf(refused.reason) : null,
    genesisId: shownBy(genesis)?.id ?? null,
    ...{ head: shownBy(head), solid: shownBy(solid), atCommon: null },
    answerMs: times.length === 0 ? null : Math.round(Math.min(...times)),
  };
}

async function readHeader(client: Client, side: 'any' | 'solid', number?: number): Promise<Block> {
  const shown = await client.ask(headerAt(side, number), { timeoutMs: NODE_MS, steadyShare: 1 });
  if (shown === null)
    throw new Error(`it does not have ${number === undefined ? 'a newest block' : `block ${number}`}`);
  return readBlockId(shown);
}
