import type { UnixMs } from '../domain/time.ts';
import type { OrderDeps } from '../payments/create-order.ts';
import type { AddressGuard } from '../payments/manifest/address-guard.ts';
import type { Logger } from '../runtime/log.ts';
import type { Database } from '../store/db/database.ts';
import type { Authenticator } from '../web/authenticate.ts';
import type { TokenBuckets } from '../web/token-bucket.ts';
import type { AmountRefusal } from './amount-refusals.ts';
import type { EventWaits } from './event-waits.ts';
import type { UnpaidRefusal } from './unpaid-refusals.ts';

export type ApiDeps = Pick<OrderDeps, 'gate' | 'relief' | 'watched' | 'deadlineClock'> & {
  db: Database;
  publicUrl(): string;
  authenticator: Authenticator;
  /** A bucket for each key. */
  keyBuckets: TokenBuckets;
  rateLimit: { perSecond: number; burst: number };
  now(): UnixMs;
  steadyNow(): UnixMs;
  random(bytes: number): Uint8Array;
  randomBelow(n: number): number;
  /** No payable amount was free. */
  onAmountRefused(refusal: AmountRefusal): Promise<void>;
  /** The project has as many unpaid invoices as it may have. */
  onUnpaidRefused(refusal: UnpaidRefusal): Promise<void>;
  /** Shows that an address is vouched for. */
  proofOf: AddressGuard['proofOf'];
  /** Requests that wait for events. */
  waits: EventWaits;
  log: Logger;
};
