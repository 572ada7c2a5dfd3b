import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';

/** `time`: that of now by the chain if it is live, else of its newest examined block. */
export type ChainClock = { time: number; isLive: boolean; headTime: UnixMs; solidTime: UnixMs };

type Chain = { network: Network; headTime: UnixMs; solidTime: UnixMs; isCatchingUp: boolean };
type Sight = { headTime: number; ms: number };

/** Whether a chain goes on as time does shows within so long. */
const SPAN_MS = 30_000;
const KEPT_MS = 60_000;
/** Blocks come every 3 s, and are looked for every 5. */
const MOST_DRIFT_MS = 10_000;

/**
 * Watches how the times of chains go on. While a watcher catches up they go faster than time, and where it sees nothing they stand; when a
 * chain goes on as time does, its newest block is one of now, unless all nodes show one of before at its own pace.
 */
export function createChainClock(monotonicMs: () => number): { note(chains: readonly Chain[]): ChainClock | null } {
  const sights = new Map<Network, Sight[]>();
  const noteOne = ({ network, headTime, solidTime, isCatchingUp }: Chain): ChainClock => {
    const ms = monotonicMs();
    const before = isCatchingUp ? [] : (sights.get(network) ?? []);
    const seen = [...before.filter((sight) => ms - sight.ms <= KEPT_MS), { headTime, ms }];
    sights.set(network, seen);
    const first = seen[0] as Sight;
    const isLive = ms - first.ms >= SPAN_MS && Math.abs(headTime - first.headTime - (ms - first.ms)) <= MOST_DRIFT_MS;
    // Since it was examined time went on.
    const sinceMs = ms - (seen.find((sight) => sight.headTime === headTime)?.ms ?? ms);
    return { time: isLive ? headTime + sinceMs : headTime, isLive, headTime, solidTime };
  };
  return {
    note: (chains) => {
      const noted = chains.map(noteOne);
      // What is verified was made before: the latest of several is the nearest to now.
      return noted.reduce<ChainClock | null>(
        (best, each) => (best === null || isBetter(each, best) ? each : best),
        null,
      );
    },
  };
}

function isBetter(one: ChainClock, other: ChainClock): boolean {
  return one.isLive === other.isLive ? one.time > other.time : one.isLive;
}
