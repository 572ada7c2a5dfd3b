import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import { createNodeClient } from '../../../core/chain/nodes/client.ts';
import { headerAt } from '../../../core/chain/nodes/questions.ts';
import { readBlockId } from '../../../core/chain/proof/prove-block.ts';
import { adviceOn, alarmRow } from '../../../core/domain/alarm-kinds.ts';
import { say } from '../../../core/domain/message.ts';
import { isLocalNetwork, keyMode, NETWORKS, type Network, nodesVariable } from '../../../core/domain/network.ts';
import { type NodeSpec, nodeOrigin } from '../../../core/domain/node.ts';
import { DAY_MS } from '../../../core/domain/time.ts';
import { findWatchedNetworks } from '../../../core/payments/watched-networks.ts';
import { reasonOf } from '../../../core/runtime/reason-of.ts';
import { findGenesisId } from '../../../core/store/chain/cursor.ts';
import { findChainStatus } from '../../../core/store/chain/status.ts';
import { showStatus } from '../subjects/chain.ts';
import {
  atStake,
  type Block,
  check,
  type DoctorNetwork,
  type Finding,
  failed,
  good,
  type Look,
  type NodeReport,
  schemaCheck,
  skipped,
  spell,
  warning,
  worstOf,
} from './check.ts';

/** Two consecutive requests fit into the time that a check may take. */
const NODE_MS = 2500;

/**
 * Requests four headers from each node on each network. It doesn't use the pool, because the pool leaves out faulty nodes. Never throws.
 */
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
  if (spec === undefined) throw new Error('a node has no client');
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
    throw new Error(`it did not return ${number === undefined ? 'a newest block' : `block ${number}`}`);
  return readBlockId(shown);
}

/** Another check reports the reason, so it isn't repeated here. */
function noNodes({ settings: { networkProblem } }: Look): Finding {
  if (networkProblem === null) return skipped('no network is configured here');
  return skipped('the nodes aren\'t known: see the "nodes-answer" check');
}

const nodesAnswer = check('nodes-answer', async (look) => {
  const reports = await look.askNodes();
  const findings = reports.map(({ network, origin, problem }) => {
    if (problem === null) return good(`${origin} responds`);
    // Distinguishes an outage of one node from an outage of all nodes.
    const others = reports.filter((other) => other.network === network && other.problem === null);
    const says = others.length === 0 ? `${problem}, and no other ${network} node responds either` : problem;
    const fix = `Check that the node is running and that this machine can reach it, or add another node to ${nodesVariable(network)}.`;
    return others.length === 0 ? failed(says, fix) : warning(says, fix);
  });
  const { networkProblem } = look.settings;
  return worstOf(findings, networkProblem === null ? noNodes(look) : skipped(networkProblem));
});

const nodesGenesis = check('nodes-genesis', async (look) => {
  const findings: Finding[] = [];
  for (const { network, origin, genesisId } of await look.askNodes()) {
    if (genesisId === null) {
      findings.push(skipped(`${origin} didn't return its first block`));
      continue;
    }
    const expected = isLocalNetwork(network)
      ? await look.readIfThere((tx) => findGenesisId(tx, network))
      : GENESIS_BLOCK_IDS[network];
    if (expected === null)
      findings.push(skipped(`the first ${network} block isn't known until the service has started once`));
    else if (genesisId === expected) findings.push(good(`${origin} belongs to ${network}`));
    else {
      const says = `${origin} belongs to another network: its first block is ${genesisId}`;
      findings.push(failed(says, `Remove the node from ${nodesVariable(network)}, or correct its DNS name or proxy.`));
    }
  }
  return worstOf(findings, noNodes(look));
});

const nodesOperators = check('nodes-operators', async (look) => {
  const findings = look.settings.networks.map(({ network, nodes, agreement }) =>
    judgeOperators({ network, nodes, agreement }),
  );
  return worstOf(findings, noNodes(look));
});

function judgeOperators({ network, nodes, agreement }: DoctorNetwork): Finding {
  const operators = new Set(nodes.map(({ operator }) => operator)).size;
  if (isLocalNetwork(network) && operators === 1) return good(`${network} is local: one operator is enough`);
  if (operators === 1) {
    const says = `all ${network} nodes belong to one operator, so this operator alone decides which invoices are paid`;
    const fix = `Add a node from another operator to ${nodesVariable(network)}.`;
    return atStake({ isLive: keyMode(network) === 'live' }, says, fix);
  }
  if (agreement === 1) {
    const says = `${network}: a response from one of ${operators} operators is enough`;
    return warning(
      says,
      'Unset QUITTANCE_AGREEMENT, or set it to 2. Otherwise, a single operator can invent payments.',
    );
  }
  if (operators === agreement) {
    const says = `${network}: ${agreement} of ${operators} operators must agree, so payments by contracts wait while an operator is down`;
    return isLocalNetwork(network) || agreement < 3
      ? good(says)
      : warning(says, `Add a node from another operator to ${nodesVariable(network)}.`);
  }
  return good(`${network}: ${agreement} of ${operators} operators must agree`);
}

/** The watcher's requests must be finished within one block time, and each block needs two or three. */
const SLOW_MS = 1000;

const nodesLatency = check('nodes-latency', async (look) => {
  const findings = (await look.askNodes()).map(({ network, origin, answerMs }) => {
    if (answerMs === null) return skipped(`${origin} didn't respond`);
    const says = `${origin} responds in ${answerMs} ms`;
    const fix = `Put a faster node first in ${nodesVariable(network)}: a block is produced every 3 s.`;
    return answerMs > SLOW_MS ? warning(says, fix) : good(says);
  });
  return worstOf(findings, noNodes(look));
});

/** This is one minute on the real network. */
const LATE_BLOCKS = 20;

const nodesFresh = check('nodes-fresh', async (look) => {
  const reports = await look.askNodes();
  const findings = reports.map(({ network, origin, head }) => {
    if (head === null) return skipped(`${origin} returned no newest block`);
    const newest = Math.max(
      ...reports.flatMap((other) => (other.network === network ? (other.head?.number ?? []) : [])),
    );
    const behind = newest - head.number;
    if (behind <= LATE_BLOCKS) return good(`${origin} is at block ${head.number}`);
    const fix =
      'Check whether the node is still catching up or has hung. Until it recovers, Quittance uses the other nodes.';
    return warning(`${origin} is ${behind} blocks behind another node`, fix);
  });
  return worstOf(findings, noNodes(look));
});

/** How many requests per day are needed to follow a chain's head. */
const FOLLOWING = 75_000;
const MUCH_SHARE = 0.8;

const nodesBudget = check('nodes-budget', async (look) => {
  const findings: Finding[] = [];
  for (const { network, nodes } of look.settings.networks) {
    const found = await look.readIfThere((tx) => findChainStatus(tx, network));
    const today = Math.floor(look.now() / DAY_MS);
    const isOfToday = found !== null && Math.floor(found.updatedAt / DAY_MS) === today;
    for (const { url, requestsPerDay } of nodes) {
      const origin = nodeOrigin(url);
      if (requestsPerDay === null) findings.push(good(`${origin} has no daily limit`));
      else {
        const used = isOfToday ? (found.status.nodes.find((node) => node.url === origin)?.requestsToday ?? 0) : 0;
        findings.push(judgeBudget({ network, origin, used, most: requestsPerDay }));
      }
    }
  }
  return worstOf(findings, noNodes(look));
});

type Budget = { network: Network; origin: string; used: number; most: number };

function judgeBudget({ network, origin, used, most }: Budget): Finding {
  const fix = `Ask the node's operator for a higher limit (daily=), or add a node to ${nodesVariable(network)}.`;
  const says = `${origin}: ${used} of ${most} requests used today`;
  if (used >= most) return failed(`${says}, so Quittance doesn't use it until midnight UTC`, fix);
  if (used > most * MUCH_SHARE) return warning(says, fix);
  if (most < FOLLOWING)
    return warning(`${origin} allows ${most} requests a day, but following a chain requires ${FOLLOWING}`, fix);
  return good(says);
}

const nodesAgree = check('nodes-agree', async (look) => {
  const reports = await look.askNodes();
  const findings = look.settings.networks.map(({ network }) =>
    judgeAgreement(
      network,
      reports.filter((report) => report.network === network),
    ),
  );
  return worstOf(findings, noNodes(look));
});

function judgeAgreement(network: Network, reports: readonly NodeReport[]): Finding {
  const shown = reports.flatMap(({ origin, atCommon }) => (atCommon === null ? [] : [{ origin, ...atCommon }]));
  const [first] = shown;
  if (first === undefined || shown.length < 2) return skipped(`${network} has fewer than two nodes to compare`);
  const other = shown.find(({ id }) => id !== first.id);
  if (other === undefined) return good(`the ${network} nodes return the same block ${first.number}`);
  const says = `block ${first.number} of ${network} is ${first.id} at ${first.origin} and ${other.id} at ${other.origin}, and both nodes report it as irreversible`;
  return failed(
    says,
    'One of the nodes belongs to another network, or returns false blocks. Check both blocks in a block explorer, and remove the node that returned the incorrect one.',
  );
}

const networksWatched = schemaCheck('networks-watched', async ({ read, now }) => {
  const found = (await read(findWatchedNetworks)).filter(({ takesMoney }) => takesMoney);
  const findings = found.map(({ network, isWatched, isSilent, seenAt }): Finding => {
    if (isWatched) return good(`${network} is watched`);
    const missing =
      seenAt === null ? 'has never had a running watcher' : `has had no running watcher for ${spell(now() - seenAt)}`;
    const says = `${network} has active addresses, but ${missing}`;
    const fix = `Start a process with the watcher role and ${nodesVariable(network)}, or retire the addresses.`;
    return isSilent ? failed(says, fix) : warning(says, fix);
  });
  return worstOf(findings, skipped('no network has an active address'));
});

const chain = schemaCheck('chain', async (look) => {
  const findings: Finding[] = [];
  for (const { network } of look.settings.networks) findings.push(await lookAtChain(look, network));
  return worstOf(findings, skipped("no network is configured here, or its nodes aren't known"));
});

async function lookAtChain({ read, now, actor }: Look, network: (typeof NETWORKS)[number]): Promise<Finding> {
  const { view, state } = await read((tx) => showStatus({ db: tx, now }, actor, { network }));
  const status = say`For details, see "${{ command: 'chain status' }}".`;
  if (view.halt !== null) {
    const fix = say`Find out whether the ledger or the chain is correct. When the problem is resolved, run "${{ command: 'chain resume' }}".`;
    return failed(`${network}: the watcher is halted: ${view.halt.reason}`, fix);
  }
  if (!state.isRunning) return skipped(`no ${network} watcher is running`);
  if (view.watcher?.blind != null) {
    return failed(
      `${network}: the watcher receives no new blocks: ${view.watcher.blind}`,
      say`Check the nodes of this network. ${status}`,
    );
  }
  const [why] = view.behind.why;
  if (why !== undefined) return warning(`${network}: ${why.text}`, status);
  return good(`${network} is recorded up to block ${view.recorded?.number ?? 0}`);
}

const alarms = schemaCheck('alarms', async ({ read, now, actor, settings }) => {
  const findings: Finding[] = [];
  const adviceFor = (kind: string, network: Network) =>
    settings.networks.length === 0 || settings.networks.some((each) => each.network === network)
      ? adviceOn(kind)
      : say`${network} is not in the settings. If no watcher follows it any more, close the alarm: "${{ command: 'chain acknowledge', input: { alarm: kind, network } }}". ${adviceOn(kind)}`;
  for (const network of NETWORKS) {
    const { view } = await read((tx) => showStatus({ db: tx, now }, actor, { network }));
    for (const { kind, subject, raisedAt } of view.alarms) {
      const says = `${kind} on ${network}${subject === '' ? '' : ` (${subject})`}, since ${raisedAt}`;
      findings.push((alarmRow(kind).rank === 2 ? warning : failed)(says, adviceFor(kind, network)));
    }
  }
  return worstOf(findings, good('there are no open alarms'));
});

export const NODE_CHECKS = [
  ...[nodesAnswer, nodesGenesis, nodesOperators, nodesLatency, nodesFresh, nodesBudget, nodesAgree],
  ...[networksWatched, chain, alarms],
];
