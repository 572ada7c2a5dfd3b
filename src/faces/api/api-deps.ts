import type { UnixMs } from '../../core/domain/time.ts';
import type { OrderDeps } from '../../core/payments/create-invoice.ts';
import type { AddressGuard } from '../../core/payments/manifest/address-guard.ts';
import type { Logger } from '../../core/runtime/log.ts';
import type { Database } from '../../core/store/db/database.ts';
import type { Authenticator } from '../web/authenticate.ts';
import type { TokenBuckets } from '../web/rate-limit.ts';
import type { AmountRefusal, UnpaidRefusal } from './amount-refusals.ts';
import type { EventWaits } from './event-waits.ts';

export type ApiDeps = Pick<OrderDeps, 'gate' | 'relief' | 'watched' | 'deadlineClock'> & {
  db: Database;
  publicUrl(): string;
  authenticator: Authenticator;
  /** One bucket per key. */
  keyBuckets: TokenBuckets;
  rateLimit: { perSecond: number; burst: number };
  now(): UnixMs;
  steadyNow(): UnixMs;
  random(bytes: number): Uint8Array;
  randomBelow(n: number): number;
  /** Called when no payable amount is free. */
  onAmountRefused(refusal: AmountRefusal): Promise<void>;
  /** Called when the project has reached a limit on unpaid invoices. */
  onUnpaidRefused(refusal: UnpaidRefusal): Promise<void>;
  /** Returns the proof that an address is in the signed manifest. */
  proofOf: AddressGuard['proofOf'];
  waits: EventWaits;
  log: Logger;
};
