import { MOST_MS } from '../../domain/clocks.ts';
import { isLocalNetwork } from '../../domain/network.ts';
import { atStake, type Check, failed, good, skipped, spell, warning } from './check.ts';

/** When the last security update of each release of Node.js comes (github.com/nodejs/Release); uneven ones live for half a year. */
const NODE_ENDS: Readonly<Record<number, string>> = {
  ...{ 18: '2025-04-30', 19: '2023-06-01', 20: '2026-04-30', 21: '2024-06-01', 22: '2027-04-30' },
  ...{ 23: '2025-06-01', 24: '2028-04-30', 25: '2026-06-01' },
};
const SOON_MS = 90 * 86_400_000;

export const configuration: Check = {
  name: 'configuration',
  look: async ({ settings: { warnings } }) =>
    warnings.length === 0
      ? good('the settings are consistent')
      : warning(warnings.join('; '), 'Correct these variables: see docs/configuration.md.'),
};

export const nodeRelease: Check = {
  name: 'node-release',
  look: async (look) => {
    const { nodeVersion, now } = look;
    const ends = NODE_ENDS[Number.parseInt(nodeVersion, 10)];
    const fix = 'Upgrade to a supported Node.js LTS release, such as 24.';
    if (ends === undefined)
      return good(`Node.js ${nodeVersion}, which is newer than the releases that this version knows`);
    const leftMs = Date.parse(ends) - now();
    if (leftMs < 0) return atStake(look, `Node.js ${nodeVersion} has had no security updates since ${ends}`, fix);
    if (leftMs < SOON_MS) return warning(`Node.js ${nodeVersion} gets security updates only until ${ends}`, fix);
    return good(`Node.js ${nodeVersion} gets security updates until ${ends}`);
  },
};

const CLOCKS = 'Correct the clocks of the machines, and keep them synchronised with chrony or systemd-timesyncd.';

export const clockDatabase: Check = {
  name: 'clock-database',
  needs: 'database',
  look: async ({ ping }) => {
    const { ownAt, databaseAt } = await ping();
    const apartMs = ownAt - databaseAt;
    if (Math.abs(apartMs) < MOST_MS) return good("this machine's clock agrees with the database's");
    const way = apartMs < 0 ? 'behind' : 'ahead of';
    return failed(`this machine's clock is ${spell(apartMs)} ${way} the database's`, CLOCKS);
  },
};

/** Blocks come every 3 s. */
const OLD_MS = 60_000;

export const clockChain: Check = {
  name: 'clock-chain',
  look: async ({ now, askNodes }) => {
    const heads = (await askNodes())
      .filter(({ network }) => !isLocalNetwork(network))
      .flatMap(({ head }) => head ?? []);
    if (heads.length === 0)
      return skipped('no node of a public network returned a block, and a local network has its own time');
    const newest = Math.max(...heads.map(({ time }) => time));
    const aheadMs = now() - newest;
    if (aheadMs < -MOST_MS) {
      return failed(`this machine's clock is ${spell(aheadMs)} behind the newest block`, CLOCKS);
    }
    if (aheadMs > OLD_MS) {
      const says = `by this machine's clock, the newest block of all nodes is ${spell(aheadMs)} old: either the clock is ahead, or all nodes are behind`;
      return failed(says, `${CLOCKS} If the clocks are right, add a node of another operator.`);
    }
    return good("this machine's clock agrees with the newest block");
  },
};
