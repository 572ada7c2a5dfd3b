import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { RateLimit } from '../../web/refuse-limited.ts';
import { createTokenBuckets } from '../../web/token-bucket.ts';

/** The budget of look-ups for questions to nodes. The unit is a question of two requests. */
export type LookupBudget = {
  /** Takes one for a link of that network; false when none is left for it now. */
  take(network: Network, checkoutToken: string): boolean;
};

/**
 * Half of the budget for all links of a network. Both halves make 17,340 requests a day at most, which with the watcher's 75,000
 * stays below the 100,000 that a key of TronGrid has.
 */
const HALF: RateLimit = { perSecond: 0.05, burst: 15 };
/** The limit of a link: ten transactions at once, then as often as a payer is told to look again. */
const LINK: RateLimit = { perSecond: 1 / 60, burst: 10 };
/** This many of them count as those of a link that has not asked lately. */
const FIRST: RateLimit = { perSecond: 1 / 600, burst: 2 };
const MAX_LINKS = 10_000;

/**
 * Shares out the requests to nodes. Any link may use the first half. The second half is kept for links that have not asked lately, so that
 * links that go on asking, alone or together, leave an answer to a newcomer.
 */
export function createLookupBudget(now: () => UnixMs): LookupBudget {
  const limited = ({ perSecond, burst }: RateLimit) => {
    const buckets = createTokenBuckets(perSecond, burst, MAX_LINKS);
    return (name: string) => buckets.take(name, now()).kind === 'pass';
  };
  const [takeOfLink, takeAsNewcomer] = [limited(LINK), limited(FIRST)];
  const [takeOfAnybody, takeOfNewcomers] = [limited(HALF), limited(HALF)];
  return {
    take: (network, checkoutToken) => {
      if (!takeOfLink(checkoutToken)) return false;
      const isNewcomer = takeAsNewcomer(checkoutToken);
      return takeOfAnybody(network) || (isNewcomer && takeOfNewcomers(network));
    },
  };
}
