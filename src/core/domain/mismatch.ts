import { encodeId } from './ids.ts';
import type { InvoiceStatus } from './invoice.ts';
import type { MicroUsdt } from './money.ts';

type CauseRow = {
  /** The title in the console. */
  title: string;
  /** The kind of `LikelyMistake` that the payer's page describes it as. If it's missing, the payer's page doesn't describe the cause. */
  payer?: 'requested_amount' | 'swapped_digits' | 'fee' | 'truncated' | 'rounded' | 'one_digit';
  /** Whether the transfer can't be a payer's payment. */
  isNoPayment?: true;
};

/** Why a transfer doesn't fit any invoice: the machine-readable reason that every unmatched or duplicate transfer has. */
const ROWS = {
  FEE_DEDUCTED: { title: 'Fee deducted', payer: 'fee' },
  ROUNDED: { title: 'Rounded', payer: 'rounded' },
  TRUNCATED: { title: 'Truncated', payer: 'truncated' },
  ONE_DIGIT_WRONG: { title: 'One digit wrong', payer: 'one_digit' },
  DIGITS_SWAPPED: { title: 'Digits swapped', payer: 'swapped_digits' },
  DIGIT_MISSING: { title: 'Digit missing', payer: 'one_digit' },
  DIGIT_ADDED: { title: 'Extra digit', payer: 'one_digit' },
  POINT_MISPLACED: { title: 'Point misplaced' },
  PAID_TWICE: { title: 'Paid twice' },
  REQUESTED_AMOUNT: { title: 'Tail left out', payer: 'requested_amount' },
  SUM_OF_INVOICES: { title: 'Several invoices at once' },
  PART_OF_INVOICE: { title: 'Part of an invoice' },
  OTHER_ADDRESS: { title: 'To another address' },
  OVERPAID: { title: 'Too much', payer: 'fee' },
  DUST: { title: 'Dust', isNoPayment: true },
  LOOK_ALIKE_SENDER: { title: 'Look-alike sender', isNoPayment: true },
  OWN_DEPOSIT: { title: 'Own deposit', isNoPayment: true },
  SELF_TRANSFER: { title: 'To itself', isNoPayment: true },
  UNKNOWN: { title: 'No cause found' },
} as const satisfies Record<string, CauseRow>;

export type CauseCode = keyof typeof ROWS;

export const CAUSES: Readonly<Record<CauseCode, CauseRow>> = ROWS;

export const CAUSE_CODES = Object.keys(ROWS) as readonly CauseCode[];

/** An invoice that a cause refers to. `id` is a UUID; `differenceMicro` is the amount that arrived minus the payable amount. */
export type NearInvoice = {
  id: string;
  externalId: string;
  status: InvoiceStatus;
  payableMicro: MicroUsdt;
  differenceMicro: bigint;
};

/**
 * A likely cause. It's never certain, because the chain shows amounts, not intentions. `explanation` is one plain English sentence with the
 * figures; `evidence` has the same figures by name, for machines (amounts are decimal strings).
 */
export type Cause = {
  code: CauseCode;
  confidence: 'high' | 'medium' | 'low';
  explanation: string;
  evidence: Record<string, string | number>;
  invoices: NearInvoice[];
};

/**
 * Describes the likeliest cause as the API and events show it: a reason, and the invoice that the transfer was probably meant for. Returns
 * `null` if there's no cause.
 */
export function describeLikeliest(causes: readonly Cause[] | undefined) {
  const [likeliest] = causes ?? [];
  const [nearest] = likeliest?.invoices ?? [];
  return {
    reason: likeliest === undefined ? null : { code: likeliest.code, confidence: likeliest.confidence },
    nearestInvoice: nearest === undefined ? null : nameInvoice(nearest),
  };
}

/** Describes an invoice in lists of transfers. `id` is a UUID. */
export function nameInvoice({ id, externalId, status }: Pick<NearInvoice, 'id' | 'externalId' | 'status'>) {
  return { invoiceId: encodeId('inv', id), externalId, status };
}
