import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { RateLimit } from '../../web/refuse-limited.ts';
import { createTokenBuckets } from '../../web/token-bucket.ts';

/** The budget of look-ups for questions to nodes. The unit is a question of two requests. */
export type LookupBudget = {
  /** Takes one for a link of that network and the client's network; false when none is left for them now. */
  take(network: Network, checkoutToken: string, client: string): boolean;
};

/**
 * The default of QUITTANCE_LOOKUPS_PER_MINUTE. It makes 17,340 requests a day at most, which with the watcher's 75,000 stays below
 * the 100,000 that a key of TronGrid has.
 */
const PER_MINUTE = 6;
/** So many minutes' questions may come at once. */
const BURST_MINUTES = 5;
/** The limit of a link: ten transactions at once, then as often as a payer is told to look again. */
const LINK: RateLimit = { perSecond: 1 / 60, burst: 10 };
/** This many of them count as those of a link, or of a client, that has not asked lately. */
const FIRST: RateLimit = { perSecond: 1 / 600, burst: 2 };
const MAX_NAMES = 10_000;

/**
 * Shares out the requests to nodes. Any client may use the first half, and one client a half of that half, however many links it has.
 * The second half is kept for links and clients that have not asked lately, so that those who keep asking, alone or together, leave an
 * answer to a newcomer.
 */
export function createLookupBudget(now: () => UnixMs, perMinute: number = PER_MINUTE): LookupBudget {
  const half: RateLimit = { perSecond: perMinute / 120, burst: (perMinute * BURST_MINUTES) / 2 };
  const share: RateLimit = { perSecond: half.perSecond / 2, burst: Math.max(LINK.burst, half.burst / 2) };
  const limited = ({ perSecond, burst }: RateLimit) => {
    const buckets = createTokenBuckets(perSecond, burst, MAX_NAMES);
    return (name: string) => buckets.take(name, now()).kind === 'pass';
  };
  const [takeOfLink, takeOfClient] = [limited(LINK), limited(share)];
  const [isNewLink, isNewClient] = [limited(FIRST), limited(FIRST)];
  const [takeOfAnyone, takeOfNewcomers] = [limited(half), limited(half)];
  return {
    take: (network, checkoutToken, client) => {
      if (!takeOfLink(checkoutToken) || !takeOfClient(client)) return false;
      const isNewcomer = [isNewLink(checkoutToken), isNewClient(client)].every(Boolean);
      return takeOfAnyone(network) || (isNewcomer && takeOfNewcomers(network));
    },
  };
}
