import { expect, test } from 'vitest';
import { runFleetChaos } from '../processes/fleet-chaos.ts';
import { TAKEOVER_LIMIT_MS } from '../processes/takeover.ts';

/** `FLEET_ACTIONS=200 FLEET_SEED=7 npx vitest run --config test/long/long.config.ts process-fleet` */
const ACTIONS = Number(process.env['FLEET_ACTIONS'] ?? 35);
const SEED = Number(process.env['FLEET_SEED'] ?? Date.now() % 1_000_000);

test(
  `seven processes over one database, killed and paused ${ACTIONS} times: the books equal the chain, and a watcher is followed within 10 s (seed ${SEED})`,
  async () => {
    const { takeovers, deliveredAfterLeaseMs, violations, ...counts } = await runFleetChaos({
      seed: SEED,
      actions: ACTIONS,
    });
    const leases = takeovers.map(({ leaseMs }) => Math.round(leaseMs));
    process.stdout.write(
      `\nfleet, seed ${SEED}, ${ACTIONS} actions: ${JSON.stringify(counts)}\n` +
        `watcher's lease taken over after ms: ${leases.join(', ')}\n` +
        `first block after ms: ${takeovers.map(({ progressMs }) => Math.round(progressMs)).join(', ')}\n` +
        `webhooks of killed senders delivered ms after their lease: ${deliveredAfterLeaseMs.map(Math.round).join(', ')}\n` +
        `violations: ${violations.length}\n`,
    );
    expect(violations).toEqual([]);
    expect(Math.max(...leases)).toBeLessThan(TAKEOVER_LIMIT_MS);
  },
  120_000 + ACTIONS * 60_000,
);
