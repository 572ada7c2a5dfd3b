import type { Cause, CauseCode, NearInvoice } from '../mismatch.ts';
import type { MismatchFacts, Suspect } from './facts.ts';
import { feeDeducted, overpaid } from './fee-slips.ts';
import { exactly, type Finding, type Slip, type SlipRule } from './finding.ts';
import { plausibility } from './plausibility.ts';
import { pointMisplaced, requestedAmount, roundedOrTruncated } from './rounding-slips.ts';
import { senderCauses, unknown } from './sender-causes.ts';
import { typingOrigins, typingSlip } from './typing-slips.ts';
import {
  fractionOfInvoice,
  otherAddress,
  paidTwice,
  partWithSiblings,
  siblingSums,
  sumsOfInvoices,
  type Weighed,
} from './whole-payments.ts';

/** Causes and invoices beyond these help nobody. */
const MAX_CAUSES = 5;
const MAX_INVOICES = 5;
/** A cause below this share of all that explains the transfer is left out. */
const WORTH_TELLING = 0.01;
/** Invoices that explain a transfer at least half as well as the best are equally near. */
const EQUALLY_NEAR = 0.5;

/** `high`: all other causes together have 3 %, and all other invoices less than a tenth. */
const HIGH = { cause: 0.97, invoice: 0.92 };
/** `medium`: likelier than all else together, and not more than about six invoices to choose from. */
const MEDIUM = { cause: 0.5, invoice: 0.15 };

const AMOUNT_RULES: readonly SlipRule[] = [
  roundedOrTruncated,
  pointMisplaced,
  feeDeducted,
  overpaid,
  paidTwice,
  fractionOfInvoice,
];

/**
 * Why an unmatched transfer fits no invoice: likely causes, the likeliest first, 1 … 5, each once. Every rule weighs how likely a
 * payer makes its slip and how plausible the invoice is; the confidence comes from what is left for all other explanations.
 */
export function rankCauses(facts: MismatchFacts): Cause[] {
  const { amountMicro } = facts.transfer;
  const findings = [...invoiceFindings(facts), ...senderCauses(facts), unknown(amountMicro)];
  const total = sum(findings);
  const byCode = new Map<CauseCode, Finding[]>();
  for (const finding of findings) byCode.set(finding.code, [...(byCode.get(finding.code) ?? []), finding]);
  return [...byCode.values()]
    .map((ofCode) => ({ ofCode: ofCode.sort((a, b) => b.weight - a.weight), share: sum(ofCode) / total }))
    .sort((a, b) => b.share - a.share)
    .filter(({ share }, index) => index === 0 || share >= WORTH_TELLING)
    .slice(0, MAX_CAUSES)
    .map(({ ofCode, share }) => toCause(ofCode, share, amountMicro));
}

/** Of a duplicate, the amount itself says what it repeats; who sent it may say more. */
export function rankDuplicate(facts: MismatchFacts, repeated: Suspect): Cause[] {
  const { amountMicro, from } = facts.transfer;
  const isSameSender = repeated.paid?.from === from;
  // A round amount may come again by chance; one with a tail, or from the same sender, hardly.
  const hasTail = amountMicro !== repeated.requestedMicro;
  const first: Cause = {
    code: 'PAID_TWICE',
    confidence: isSameSender || hasTail ? 'high' : 'medium',
    explanation: `${exactly(amountMicro)} arrived: exactly the amount of invoice ${repeated.externalId}, which another transfer had paid${isSameSender ? ', of the same sender' : ''}.`,
    evidence: { times: 2, payableAmount: exactly(repeated.payableMicro), ...(isSameSender ? { sender: from } : {}) },
    invoices: [toNear(repeated, amountMicro)],
  };
  const others = senderCauses(facts).filter(({ code }) => code !== 'DUST');
  return [first, ...others.map((finding) => toCause([finding], 0, amountMicro))];
}

function sum(findings: readonly Finding[]): number {
  return findings.reduce((total, { weight }) => total + weight, 0);
}

function invoiceFindings(facts: MismatchFacts): Finding[] {
  const { transfer, invoices, siblings } = facts;
  const { amountMicro, at, to } = transfer;
  const plausible = invoices
    .map((invoice) => ({ invoice, plausibility: plausibility(invoice, at) }))
    .filter((candidate) => candidate.plausibility > 0);
  // Who might have been meant at all: the more there are, the less an amount near one of them says.
  const all = Math.max(
    1,
    plausible.reduce((total, candidate) => total + candidate.plausibility, 0),
  );
  const weighed: Weighed[] = plausible.map((candidate) => ({
    invoice: candidate.invoice,
    share: candidate.plausibility / all,
  }));
  const origins = typingOrigins(amountMicro);
  const sums = siblingSums(siblings, at);
  const slipsOf = (invoice: Suspect): Slip[] => {
    if (invoice.address !== to) return otherAddress(invoice, amountMicro);
    const requested = requestedAmount(invoice, amountMicro);
    if (requested.length > 0) return requested;
    const origin = origins.get(invoice.payableMicro);
    return [
      ...(origin === undefined ? [] : [typingSlip(invoice, amountMicro, origin)]),
      ...AMOUNT_RULES.flatMap((rule) => rule(invoice, amountMicro)),
      ...partWithSiblings(invoice, amountMicro, sums),
    ];
  };
  const ofOne = weighed.flatMap(({ invoice, share }) =>
    slipsOf(invoice).map((slip) => ({ ...slip, weight: slip.weight * share, invoices: [invoice] })),
  );
  return [...ofOne, ...sumsOfInvoices(weighed, amountMicro)];
}

/** Makes one cause of the findings of one code, the best first. */
function toCause(ofCode: readonly Finding[], share: number, amountMicro: bigint): Cause {
  const [best] = ofCode as [Finding, ...Finding[]];
  const near = ofCode.filter(({ weight }) => weight >= best.weight * EQUALLY_NEAR);
  const named = new Map(near.flatMap(({ invoices }) => invoices).map((invoice) => [invoice.id, invoice]));
  const others = near.length - 1;
  return {
    code: best.code,
    confidence: confidenceOf(best, share, best.weight / sum(ofCode)),
    explanation: `${best.explanation}${alsoNear(others)}.`,
    evidence: { ...best.evidence, ...(others > 0 ? { equallyNear: near.length } : {}) },
    invoices: [...named.values()].slice(0, MAX_INVOICES).map((invoice) => toNear(invoice, amountMicro)),
  };
}

/** Of very many only some were looked at, so their number is not told. */
const MANY = 50;

function alsoNear(others: number): string {
  if (others === 0) return '';
  if (others === 1) return '; 1 other invoice fits about as well';
  return `; ${others > MANY ? `more than ${MANY}` : others} other invoices fit about as well`;
}

function confidenceOf({ atMost }: Finding, causeShare: number, bestShare: number): Cause['confidence'] {
  const reaches = (level: typeof HIGH) => causeShare >= level.cause && bestShare >= level.invoice;
  if (atMost === 'low' || !reaches(MEDIUM)) return 'low';
  return atMost === undefined && reaches(HIGH) ? 'high' : 'medium';
}

function toNear(invoice: Suspect, amountMicro: bigint): NearInvoice {
  const { id, externalId, status, payableMicro } = invoice;
  return { id, externalId, status, payableMicro, differenceMicro: amountMicro - payableMicro };
}
