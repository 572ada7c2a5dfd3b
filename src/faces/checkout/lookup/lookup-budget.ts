import type { Network } from '../../../core/domain/network.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { createTokenBuckets, type RateLimit } from '../../web/rate-limit.ts';

/** The node request budget for look-ups. One unit pays for a look-up of two requests. */
export type LookupBudget = {
  /** Uses one unit for a link on that network and the client's network. Returns false if no unit is left for them. */
  take(network: Network, checkoutToken: string, client: string): boolean;
};

/**
 * The default of QUITTANCE_LOOKUPS_PER_MINUTE. It allows at most 17,340 requests a day. Together with the watcher's 75,000, this is less
 * than the 100,000 that a TronGrid key allows.
 */
const PER_MINUTE = 6;
/** A burst may use the budget of this many minutes. */
const BURST_MINUTES = 5;
/** The limit for a link: ten transactions in a burst, and after that as often as the page tells payers to check again. */
const LINK: RateLimit = { perSecond: 1 / 60, burst: 10 };
/**
 * The limit within which a link or client counts as one that hasn't asked recently: two look-ups at first, and later one every ten minutes.
 */
const FIRST: RateLimit = { perSecond: 1 / 600, burst: 2 };

/**
 * Distributes the requests to nodes. The first half is shared by all clients, and a single client can use at most half of it, however many
 * links it has. The second half is reserved for links and clients that haven't asked recently. This way, clients that keep asking can't
 * lock out a newcomer, not even together.
 */
export function createLookupBudget(now: () => UnixMs, perMinute: number = PER_MINUTE): LookupBudget {
  const half: RateLimit = { perSecond: perMinute / 120, burst: (perMinute * BURST_MINUTES) / 2 };
  const share: RateLimit = { perSecond: half.perSecond / 2, burst: Math.max(LINK.burst, half.burst / 2) };
  const limited = (limit: RateLimit) => {
    const buckets = createTokenBuckets(limit);
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
