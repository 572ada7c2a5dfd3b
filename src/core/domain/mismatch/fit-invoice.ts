import type { Cause } from '../mismatch.ts';
import type { MismatchFacts } from './facts.ts';
import { plausibility } from './plausibility.ts';
import { alreadyPaid, confidenceOf, EQUALLY_NEAR, findingsOf, otherInvoices, sum, toNear } from './rank-causes.ts';

/**
 * How an unmatched or duplicate transfer may have been meant for one invoice. `share` (from 0 to 1) is the weight of this explanation among
 * all explanations; `rivals` is the number of other invoices that explain the transfer equally well or better.
 */
export type Fit = { cause: Cause; share: number; rivals: number };

/** If another cause has high confidence, less than this is left for the others. */
const WORTH_SHOWING = 0.05;

/**
 * Compares a transfer with one invoice, which must be among the facts. Returns the likeliest cause that refers to this invoice, or `null`
 * if no cause is worth showing. An old invoice is as likely as a new one here, because someone is asking about it. The confidence doesn't
 * depend on this question.
 */
export function fitInvoice(facts: MismatchFacts, invoiceId: string): Fit | null {
  const { amountMicro, at } = facts.transfer;
  const invoice = facts.invoices.find(({ id }) => id === invoiceId);
  if (invoice === undefined) return null;
  const findings = findingsOf(facts);
  const names = (finding: (typeof findings)[number]) => finding.invoices.some(({ id }) => id === invoiceId);
  const [own] = findings.filter(names).sort((a, b) => b.weight - a.weight);
  if (own === undefined) return null;
  const best = findings.reduce((most, { weight }) => Math.max(most, weight), 0);
  const wasPaid = invoice.paid !== null && invoice.paid.at <= at;
  if (own.weight / (wasPaid ? 1 : plausibility(invoice, at)) < best * WORTH_SHOWING) return null;
  const others = findings.filter((finding) => finding.invoices.length > 0 && !names(finding));
  const near = others.filter(({ weight }) => weight >= own.weight * EQUALLY_NEAR);
  const rivals = new Set(near.flatMap(({ invoices }) => invoices.map(({ id }) => id))).size;
  const isBeaten = near.some(({ weight }) => weight * EQUALLY_NEAR > own.weight);
  const ofCode = sum(findings.filter(({ code }) => code === own.code));
  const total = sum(findings);
  const beside =
    rivals === 0
      ? ''
      : `; ${otherInvoices(rivals)} ${rivals === 1 ? 'fits' : 'fit'} ${isBeaten ? 'as well or better' : 'about as well'}`;
  return {
    cause: {
      code: own.code,
      confidence: confidenceOf(own, ofCode / total, own.weight / ofCode),
      explanation: `${own.explanation}${alreadyPaid(own, at)}${beside}.`,
      evidence: { ...own.evidence, ...(rivals > 0 ? { equallyNear: rivals + 1 } : {}) },
      invoices: own.invoices.map((one) => toNear(one, amountMicro)),
    },
    share: own.weight / total,
    rivals,
  };
}
