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
  return skipped('the nodes are not known: see the check "nodes-answer"');
}

export const nodesAnswer: Check = {
  name: 'nodes-answer',
  look: async (look) => {
    const reports = await look.askNodes();
    const findings = reports.map(({ network, origin, problem }) => {
      if (problem === null) return good(`${origin} answers`);
      // Another one answers meanwhile.
      const others = reports.filter((other) => other.network === network && other.problem === null);
      const says = others.length === 0 ? `${problem}, and no other node of ${network} does` : problem;
      const fix = `See whether the node runs and is reached from here, or take another one into ${variableOf(network)}.`;
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
      if (expected === null) findings.push(skipped(`the first block of ${network} is known after the first start`));
      else if (genesisId === expected) findings.push(good(`${origin} is of ${network}`));
      else {
        const says = `${origin} is a node of another network: its first block is ${genesisId}`;
        findings.push(failed(says, `Take it out of ${variableOf(network)}, or correct what stands behind its name.`));
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
    const says = `all nodes of ${network} are of one operator, who alone decides what was paid`;
    const fix = `Add a node of another operator to ${variableOf(network)}.`;
    return atStake({ isLive: keyMode(network) === 'live' }, says, fix);
  }
  if (agreement === 1) {
    const says = `${network}: one of ${operators} operators is believed`;
    return warning(says, 'Unset QUITTANCE_AGREEMENT, or set it to 2: then one alone cannot make up a payment.');
  }
  if (operators === agreement) {
    const says = `${network}: ${agreement} of ${operators} operators must agree, so if one is away, payments by contracts wait`;
    return isLocalNetwork(network) || agreement < 3
      ? good(says)
      : warning(says, `Add a node of a further operator to ${variableOf(network)}.`);
  }
  return good(`${network}: ${agreement} of ${operators} operators must agree`);
}

/** A request of the watcher must be done within a block time, and there are two or three a block. */
const SLOW_MS = 1000;

export const nodesLatency: Check = {
  name: 'nodes-latency',
  look: async (look) => {
    const findings = (await look.askNodes()).map(({ network, origin, answerMs }) => {
      if (answerMs === null) return skipped(`${origin} did not answer`);
      const says = `${origin} takes ${answerMs} ms`;
      const fix = `Put a nearer node first in ${variableOf(network)}: blocks come every 3 s.`;
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
      if (head === null) return skipped(`${origin} shows no newest block`);
      const newest = Math.max(
        ...reports.flatMap((other) => (other.network === network ? (other.head?.number ?? []) : [])),
      );
      const behind = newest - head.number;
      if (behind <= LATE_BLOCKS) return good(`${origin} is at block ${head.number}`);
      const fix = 'See whether it is still catching up, or hangs. Quittance asks the others meanwhile.';
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
        if (requestsPerDay === null) findings.push(good(`${origin} has no limit of a day`));
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
  const fix = `Ask its operator for more (daily=), or add a node to ${variableOf(network)}.`;
  const says = `${origin}: ${used} of ${most} requests of today are used`;
  if (used >= most) return failed(`${says}, and it rests until midnight (UTC)`, fix);
  if (used > most * MUCH_SHARE) return warning(says, fix);
  if (most < FOLLOWING)
    return warning(`${origin} takes ${most} requests a day, and following a chain ${FOLLOWING}`, fix);
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
  if (first === undefined || shown.length < 2) return skipped(`fewer than two nodes of ${network} can be compared`);
  const other = shown.find(({ id }) => id !== first.id);
  if (other === undefined) return good(`the nodes of ${network} show the same block ${first.number}`);
  const says = `block ${first.number} of ${network} is ${first.id} at ${first.origin} and ${other.id} at ${other.origin}, and both call it irreversible`;
  return failed(
    says,
    'One of them is of another network, or lies: compare the block with an explorer, and take that node out.',
  );
}
