import type { Suspect } from '../../src/core/domain/mismatch/finding.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';

/** When the invoice of `suspectOf` is created. It expires half an hour later. */
export const CREATED_AT = unixMs(1_800_000_000_000);

/** Returns an open invoice `order-1` for this amount, in micro-USDT. */
export function suspectOf(requestedMicro: bigint, payableMicro: bigint, more: Partial<Suspect> = {}): Suspect {
  return {
    id: '00000000-0000-7000-8000-000000000001',
    externalId: 'order-1',
    status: 'PENDING',
    requestedMicro: microUsdt(requestedMicro),
    payableMicro: microUsdt(payableMicro),
    address: 'THere',
    createdAt: CREATED_AT,
    payableAfter: unixMs((more.createdAt ?? CREATED_AT) - 3000),
    expiresAt: unixMs(CREATED_AT + 30 * 60_000),
    paid: null,
    ...more,
  };
}
