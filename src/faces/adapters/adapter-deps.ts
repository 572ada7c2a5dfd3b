import type { MicroUsdt } from '../../core/domain/money.ts';
import type { Network } from '../../core/domain/network.ts';
import type { OrderDeps } from '../../core/payments/create-order.ts';
import type { LimitReached } from '../../core/payments/unpaid-gate.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import type { Logger } from '../../core/runtime/log.ts';
import type { RateLimit, TokenBuckets } from '../web/rate-limit.ts';

type Concerned = { projectId: string; network: Network };

export type AdapterDeps = OrderDeps & {
  publicUrl(): string;
  /** Decrypts the adapters' secrets. Without a key ring, no adapter accepts orders. */
  keyRing: KeyRing | null;
  log: Logger;
  /** Whether callbacks for projects on test networks may be sent to this machine, and over http. */
  localTargets: boolean;
  /** One bucket per client network. Each rejected request uses a token. */
  failureBuckets: TokenBuckets;
  /** One bucket per adapter. */
  keyBuckets: TokenBuckets;
  rateLimit: RateLimit;
  onAmountRefused(refusal: Concerned & { requestedMicro: MicroUsdt }): Promise<void>;
  onUnpaidRefused(refusal: Concerned & LimitReached): Promise<void>;
};

/**
 * The limit on rejected requests per client network. A shop's server may send many orders at the same time, and each of them holds a token
 * until its signature is verified.
 */
export const ADAPTER_FAILURES: RateLimit = { perSecond: 20, burst: 200 };
