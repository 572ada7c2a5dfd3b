import type { Cause, CauseCode } from '../mismatch.ts';
import type { MicroUsdt } from '../money.ts';
import { unixMs } from '../time.ts';
import { rankCauses } from './rank-causes.ts';

/** A mistake as a payer is told of it. It is likely and never certain: the chain shows amounts, not intentions. */
export type LikelyMistake =
  /** The requested amount was sent, without the digits that were added to it. */
  | { kind: 'requested_amount' }
  | { kind: 'swapped_digits' }
  /** A fee was taken out of the amount; where more arrived, it was added and then not taken. */
  | { kind: 'fee' }
  | { kind: 'truncated' | 'rounded'; decimals: number }
  /** A digit was mistyped, left out, or is too many. */
  | { kind: 'one_digit' };

export type MistakenAmount = { payableMicro: MicroUsdt; requestedMicro: MicroUsdt; arrivedMicro: MicroUsdt };

/**
 * How the payer's page words a cause; `null`: it has no words for it. The likelihood of each is the operator's, who is told more of
 * them, and of more invoices.
 */
export const KINDS: Readonly<Record<CauseCode, LikelyMistake['kind'] | null>> = {
  FEE_DEDUCTED: 'fee',
  OVERPAID: 'fee',
  ROUNDED: 'rounded',
  TRUNCATED: 'truncated',
  ONE_DIGIT_WRONG: 'one_digit',
  DIGIT_MISSING: 'one_digit',
  DIGIT_ADDED: 'one_digit',
  DIGITS_SWAPPED: 'swapped_digits',
  REQUESTED_AMOUNT: 'requested_amount',
  POINT_MISPLACED: null,
  PAID_TWICE: null,
  SUM_OF_INVOICES: null,
  PART_OF_INVOICE: null,
  OTHER_ADDRESS: null,
  DUST: null,
  LOOK_ALIKE_SENDER: null,
  OWN_DEPOSIT: null,
  SELF_TRANSFER: null,
  UNKNOWN: null,
};

/** An invoice and a sender of which nothing counts but the amounts: the payer names the invoice, so that one was meant. */
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

/** The likeliest cause by one invoice's amounts alone; `null` where none is likelier than all others together, or without words. */
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

function wordCause({ code, evidence }: Cause): LikelyMistake | null {
  const kind = KINDS[code];
  if (kind === null) return null;
  return kind === 'rounded' || kind === 'truncated' ? { kind, decimals: Number(evidence['decimals']) } : { kind };
}
