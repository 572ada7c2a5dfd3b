import { CAUSES, type Cause } from '../mismatch.ts';
import type { MicroUsdt } from '../money.ts';
import { unixMs } from '../time.ts';
import { rankCauses } from './rank-causes.ts';

/** A mistake as payers see it. It's likely but never certain, because the chain shows amounts, not intentions. */
export type LikelyMistake =
  /** The payer sent the requested amount, without the digits that were added to it. */
  | { kind: 'requested_amount' }
  | { kind: 'swapped_digits' }
  /** A fee was deducted from the amount. If more arrived, the payer added a fee that wasn't deducted. */
  | { kind: 'fee' }
  | { kind: 'truncated' | 'rounded'; decimals: number }
  /** One digit is wrong, missing or extra. */
  | { kind: 'one_digit' };

export type MistakenAmount = { payableMicro: MicroUsdt; requestedMicro: MicroUsdt; arrivedMicro: MicroUsdt };

/**
 * These stand-ins for an invoice and a sender are enough, because only the amounts matter. The payer chose the invoice, so we know which
 * one they meant.
 */
const AT = unixMs(1);
const NAMED = {
  id: '',
  externalId: '',
  status: 'PENDING',
  address: '',
  createdAt: AT,
  payableAfter: unixMs(0),
  expiresAt: AT,
  paid: null,
} as const;
const SENDER = { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null } as const;

/**
 * Returns the likeliest mistake, judging only by the amounts of one invoice. Returns `null` if no mistake is likelier than all others
 * together, or if the page can't describe it.
 */
export function likelyMistake({ payableMicro, requestedMicro, arrivedMicro }: MistakenAmount): LikelyMistake | null {
  if (arrivedMicro === payableMicro) return null;
  const [cause] = rankCauses({
    transfer: { amountMicro: arrivedMicro, from: 'payer', to: NAMED.address, at: AT },
    policy: 'tail',
    invoices: [{ ...NAMED, payableMicro, requestedMicro }],
    siblings: [],
    sender: SENDER,
  });
  return cause === undefined || cause.confidence === 'low' ? null : wordCause(cause);
}

/** Operators see more causes, with their likelihood, and more invoices. */
function wordCause({ code, evidence }: Cause): LikelyMistake | null {
  const { payer: kind } = CAUSES[code];
  if (kind === undefined) return null;
  return kind === 'rounded' || kind === 'truncated' ? { kind, decimals: Number(evidence['decimals']) } : { kind };
}
