import { encodeId } from './ids.ts';
import type { InvoiceStatus } from './invoice.ts';
import type { MicroUsdt } from './money.ts';

/** Why a transfer fits no invoice: the machine-readable reason that every unmatched or duplicate transfer has. */
export const CAUSE_CODES = [
  'FEE_DEDUCTED',
  'ROUNDED',
  'TRUNCATED',
  'ONE_DIGIT_WRONG',
  'DIGITS_SWAPPED',
  'DIGIT_MISSING',
  'DIGIT_ADDED',
  'POINT_MISPLACED',
  'PAID_TWICE',
  'REQUESTED_AMOUNT',
  'SUM_OF_INVOICES',
  'PART_OF_INVOICE',
  'OTHER_ADDRESS',
  'OVERPAID',
  'DUST',
  'LOOK_ALIKE_SENDER',
  'OWN_DEPOSIT',
  'SELF_TRANSFER',
  'UNKNOWN',
] as const;

export type CauseCode = (typeof CAUSE_CODES)[number];

/** An invoice to which a cause refers. `id` is a UUID; `differenceMicro` is the amount that arrived minus the payable amount. */
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
