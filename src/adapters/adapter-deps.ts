import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { OrderDeps } from '../payments/create-order.ts';
import type { LimitReached } from '../payments/unpaid-gate.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { RateLimit } from '../web/refuse-limited.ts';
import type { TokenBuckets } from '../web/token-bucket.ts';

type Concerned = { projectId: string; network: Network };

export type AdapterDeps = OrderDeps & {
  publicUrl(): string;
  /** Opens the secrets of adapters; without it none takes an order. */
  keyRing: KeyRing | null;
  log: Logger;
  /** Whether projects of test networks may be told on this machine itself, and by http. */
  localTargets: boolean;
  /** A bucket for each client network, of which what is wrong takes a token. */
  failureBuckets: TokenBuckets;
  /** A bucket for each adapter. */
  keyBuckets: TokenBuckets;
  rateLimit: RateLimit;
  onAmountRefused(refusal: Concerned & { requestedMicro: MicroUsdt }): Promise<void>;
  onUnpaidRefused(refusal: Concerned & LimitReached): Promise<void>;
};

/** What is wrong, of each client network. A shop's server makes many orders at once, each of which has a token until its signature is verified. */
export const ADAPTER_FAILURES: RateLimit = { perSecond: 20, burst: 200 };
