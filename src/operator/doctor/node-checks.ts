import { isLocalNetwork, keyMode, type Network } from '../../domain/network.ts';
import { nodeOrigin } from '../../domain/node.ts';
import { findGenesisId } from '../../store/chain/cursor.ts';
import { findChainStatus } from '../../store/chain/status.ts';
import { GENESIS_BLOCK_IDS } from '../../tron/genesis.ts';
import type { NodeReport } from './ask-nodes.ts';
import { atStake, type Check, type Finding, failed, good, type Look, skipped, warning, worstOf } from './check.ts';
import type { DoctorNetwork } from './doctor-settings.ts';

const variableOf = (network: Network) => `QUITTANCE_${network.toUpperCase()}_NODES`;

/** Why they are not known is told once. */
function noNodes({ settings: { networkProblem } }: Look): Finding {
  if (networkProblem === null) return skipped('no network is configured here');
  return skipped('the nodes aren\'t known: see the check "nodes-answer"');
}

export const nodesAnswer: Check = {
  name: 'nodes-answer',
  look: async (look) => {
    const reports = await look.askNodes();
    const findings = reports.map(({ network, origin, problem }) => {
      if (problem === null) return good(`${origin} answers`);
      // Another one answers meanwhile.
      const others = reports.filter((other) => other.network === network && other.problem === null);
      const says = others.length === 0 ? `${problem}, and no other node of ${network} answers either` : problem;
      const fix = `Check that the node runs and can be reached from here, or add another node to ${variableOf(network)}.`;
      return others.length === 0 ? failed(says, fix) : warning(says, fix);
    });
    const { networkProblem } = look.settings;
    return worstOf(findings, networkProblem === null ? noNodes(look) : skipped(networkProblem));
  },
};

export const nodesGenesis: Check = {
  name: 'nodes-genesis',
  look: async (look) => {
    const reports = (await look.askNodes()).filter(({ genesisId }) => genesisId !== null);
    const findings: Finding[] = [];
    for (const { network, origin, genesisId } of reports) {
      const expected = isLocalNetwork(network)
        ? await look.readIfThere((tx) => findGenesisId(tx, network))
        : GENESIS_BLOCK_IDS[network];
      if (expected === null) findings.push(skipped(`the first block of ${network} isn't known before the first start`));
      else if (genesisId === expected) findings.push(good(`${origin} belongs to ${network}`));
      else {
        const says = `${origin} belongs to another network: its first block is ${genesisId}`;
        findings.push(failed(says, `Remove it from ${variableOf(network)}, or correct its DNS name or proxy.`));
      }
    }
    return worstOf(findings, noNodes(look));
  },
};

export const nodesOperators: Check = {
  name: 'nodes-operators',
  look: async (look) => {
    const findings = look.settings.networks.map(({ network, nodes, agreement }) =>
      judgeOperators({ network, nodes, agreement }),
    );
    return worstOf(findings, noNodes(look));
  },
};

function judgeOperators({ network, nodes, agreement }: DoctorNetwork): Finding {
  const operators = new Set(nodes.map(({ operator }) => operator)).size;
  if (isLocalNetwork(network) && operators === 1) return good(`${network} is local: one operator is enough`);
  if (operators === 1) {
    const says = `all nodes of ${network} belong to one operator, who alone decides which invoices are paid`;
    const fix = `Add a node of another operator to ${variableOf(network)}.`;
    return atStake({ isLive: keyMode(network) === 'live' }, says, fix);
  }
  if (agreement === 1) {
    const says = `${network}: the answer of one of ${operators} operators is enough`;
    return warning(
      says,
      "Unset QUITTANCE_AGREEMENT, or set it to 2, so that a single operator can't invent a payment.",
    );
  }
  if (operators === agreement) {
    const says = `${network}: ${agreement} of ${operators} operators must agree, so payments by contracts wait while one is down`;
    return isLocalNetwork(network) || agreement < 3
      ? good(says)
      : warning(says, `Add a node of another operator to ${variableOf(network)}.`);
  }
  return good(`${network}: ${agreement} of ${operators} operators must agree`);
}

/** A request of the watcher must be done within a block time, and there are two or three a block. */
const SLOW_MS = 1000;

export const nodesLatency: Check = {
  name: 'nodes-latency',
  look: async (look) => {
    const findings = (await look.askNodes()).map(({ network, origin, answerMs }) => {
      if (answerMs === null) return skipped(`${origin} didn't answer`);
      const says = `${origin} answers in ${answerMs} ms`;
      const fix = `Put a faster node first in ${variableOf(network)}: a block is produced every 3 s.`;
      return answerMs > SLOW_MS ? warning(says, fix) : good(says);
    });
    return worstOf(findings, noNodes(look));
  },
};

/** A minute of the real network. */
const LATE_BLOCKS = 20;

export const nodesFresh: Check = {
  name: 'nodes-fresh',
  look: async (look) => {
    const reports = await look.askNodes();
    const findings = reports.map(({ network, origin, head }) => {
      if (head === null) return skipped(`${origin} returned no newest block`);
      const newest = Math.max(
        ...reports.flatMap((other) => (other.network === network ? (other.head?.number ?? []) : [])),
      );
      const behind = newest - head.number;
      if (behind <= LATE_BLOCKS) return good(`${origin} is at block ${head.number}`);
      const fix = 'Check whether the node is still catching up or hangs. Quittance uses the other nodes meanwhile.';
      return warning(`${origin} is ${behind} blocks behind another node`, fix);
    });
    return worstOf(findings, noNodes(look));
  },
};

/** Following a chain at its head takes that many requests a day. */
const FOLLOWING = 75_000;
const MUCH_SHARE = 0.8;

export const nodesBudget: Check = {
  name: 'nodes-budget',
  look: async (look) => {
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
  },
};
const DAY_MS = 86_400_000;

type Budget = { network: Network; origin: string; used: number; most: number };

function judgeBudget({ network, origin, used, most }: Budget): Finding {
  const fix = `Ask its operator for a higher limit (daily=), or add a node to ${variableOf(network)}.`;
  const says = `${origin}: ${used} of ${most} of today's requests are used`;
  if (used >= most) return failed(`${says}, so Quittance doesn't use it until midnight UTC`, fix);
  if (used > most * MUCH_SHARE) return warning(says, fix);
  if (most < FOLLOWING)
    return warning(`${origin} allows ${most} requests a day, but following a chain needs ${FOLLOWING}`, fix);
  return good(says);
}

export const nodesAgree: Check = {
  name: 'nodes-agree',
  look: async (look) => {
    const reports = await look.askNodes();
    const findings = look.settings.networks.map(({ network }) =>
      judgeAgreement(
        network,
        reports.filter((report) => report.network === network),
      ),
    );
    return worstOf(findings, noNodes(look));
  },
};

function judgeAgreement(network: Network, reports: readonly NodeReport[]): Finding {
  const shown = reports.flatMap(({ origin, atCommon }) => (atCommon === null ? [] : [{ origin, ...atCommon }]));
  const [first] = shown;
  if (first === undefined || shown.length < 2) return skipped(`${network} has fewer than two nodes to compare`);
  const other = shown.find(({ id }) => id !== first.id);
  if (other === undefined) return good(`the nodes of ${network} return the same block ${first.number}`);
  const says = `block ${first.number} of ${network} is ${first.id} at ${first.origin} and ${other.id} at ${other.origin}, and both nodes call it irreversible`;
  return failed(
    says,
    'One of the nodes belongs to another network, or lies. Compare the block with a block explorer, and remove the wrong node.',
  );
}
