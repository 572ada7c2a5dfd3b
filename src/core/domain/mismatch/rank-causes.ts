import type { Cause, NearInvoice } from '../mismatch.ts';
import { absolute } from '../money.ts';
import { HOUR_MS, type UnixMs } from '../time.ts';
import { feeDeducted, overpaid } from './fee-errors.ts';
import {
  exactly,
  type Finding,
  hasTail,
  type MismatchFacts,
  type Slip,
  type SlipRule,
  type Suspect,
} from './finding.ts';
import {
  fractionOfInvoice,
  otherAddress,
  paidTwice,
  partWithSiblings,
  siblingSums,
  sumsOfInvoices,
  type Weighed,
} from './payment-patterns.ts';
import { pointMisplaced, requestedAmount, roundedOrTruncated } from './rounding-errors.ts';
import { typingError, typingOrigins } from './typing-errors.ts';

/** More causes or invoices than this wouldn't help anyone. */
const MAX_CAUSES = 5;
const MAX_INVOICES = 5;
/** Causes with a smaller share of all explanations are left out. */
const WORTH_SHOWING = 0.01;
/** Invoices that explain a transfer at least half as well as the best one count as equally near. */
const EQUALLY_NEAR = 0.5;

/** `high`: all other causes together have at most 3 %, and all other invoices less than a tenth. */
const HIGH = { cause: 0.97, invoice: 0.92 };
/** `medium`: the cause is likelier than all others combined, and there are at most about six candidate invoices. */
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
 * Explains why an unmatched transfer doesn't fit any invoice. Returns 1 to 5 likely causes, each only once, with the likeliest first. Every
 * rule weighs how likely its mistake is and how plausible the invoice is. The confidence depends on the weight of all other explanations.
 */
export function rankCauses(facts: MismatchFacts): Cause[] {
  const { from, to, amountMicro } = facts.transfer;
  if (from === to) return [selfTransfer(from, amountMicro)];
  const findings = findingsOf(facts);
  const total = sum(findings);
  const codes = new Set(findings.map(({ code }) => code));
  return [...codes]
    .map((each) => findings.filter(({ code }) => code === each))
    .map((ofCode) => ({ ofCode: sortByWeight(ofCode, facts.transfer.amountMicro), share: sum(ofCode) / total }))
    .sort((a, b) => b.share - a.share)
    .filter(({ share }, index) => index === 0 || share >= WORTH_SHOWING)
    .slice(0, MAX_CAUSES)
    .map(({ ofCode, share }) => toCause(ofCode, share, facts.transfer));
}

/** This cause is certain, so no others are weighed. */
function selfTransfer(sender: string, amountMicro: bigint): Cause {
  const explanation = `${exactly(amountMicro)} arrived from the receiving address itself (${sender}). A transfer to its own sender adds no money, so it pays no invoice.`;
  return { code: 'SELF_TRANSFER', confidence: 'high', explanation, evidence: { sender }, invoices: [] };
}

export function findingsOf(facts: MismatchFacts): Finding[] {
  const weighed = weigh(facts);
  const meant = weighed.reduce((total, { share }) => total + share, 0);
  return [...invoiceFindings(facts, weighed), ...senderCauses(facts), unknown(facts.transfer.amountMicro, 1 - meant)];
}

/** A payer who accidentally pays an order twice usually does so soon. */
const SOON_MS = 86_400_000;

/** Ranks a duplicate's causes. The amount shows which invoice was paid again, and the sender may suggest further causes. */
export function rankDuplicate(facts: MismatchFacts, repeated: Suspect): Cause[] {
  const { amountMicro, from, at } = facts.transfer;
  if (repeated.paid === null) return [replacement(facts, repeated)];
  const isSameSender = repeated.paid.from === from;
  // A round amount is a repetition if it arrives soon afterwards from the same sender. If it arrives later, it may be for another order. If
  // the sender is an exchange, it sends on behalf of many people.
  const isSoon = at - repeated.paid.at < SOON_MS;
  const first: Cause = {
    code: 'PAID_TWICE',
    confidence: (isSameSender && isSoon) || hasTail(repeated) ? 'high' : 'medium',
    explanation: `${exactly(amountMicro)} arrived: exactly the amount of invoice ${repeated.externalId}, which another transfer had already paid${isSameSender ? ', from the same sender' : ''}.`,
    evidence: { times: 2, payableAmount: exactly(repeated.payableMicro), ...(isSameSender ? { sender: from } : {}) },
    invoices: [toNear(repeated, amountMicro)],
  };
  const others = senderCauses(facts).filter(({ code }) => code !== 'DUST');
  return [first, ...others.map((finding) => toCause([finding], 0, facts.transfer))];
}

/** The recorded payment was annulled, but its invoice stays `PAID`. So this transfer is probably the real payment, not a second one. */
function replacement({ transfer: { amountMicro } }: MismatchFacts, paid: Suspect): Cause {
  return {
    code: 'UNKNOWN',
    confidence: 'low',
    explanation: `${exactly(amountMicro)} arrived: exactly the amount of invoice ${paid.externalId}, whose recorded payment was annulled. This transfer is probably its payment.`,
    evidence: { payableAmount: exactly(paid.payableMicro) },
    invoices: [toNear(paid, amountMicro)],
  };
}

/** Sorts the likeliest causes first, and equally likely ones by their distance from the invoice's amount. */
function sortByWeight(findings: readonly Finding[], amountMicro: bigint): Finding[] {
  const distance = ({ invoices: [invoice] }: Finding) =>
    invoice === undefined ? 0n : absolute(amountMicro - invoice.payableMicro);
  return findings.toSorted((a, b) => b.weight - a.weight || Number(distance(a) - distance(b)));
}

export function sum(findings: readonly Finding[]): number {
  return findings.reduce((total, { weight }) => total + weight, 0);
}

/**
 * Weighs how likely each invoice is to have been meant. The more invoices there are, the less an amount near one of them proves. The shares
 * add up to at most 1.
 */
function weigh({ transfer, invoices }: MismatchFacts): Weighed[] {
  const plausible = invoices
    .map((invoice) => ({ invoice, share: plausibility(invoice, transfer.at) }))
    .filter(({ share }) => share > 0);
  const all = Math.max(
    1,
    plausible.reduce((total, { share }) => total + share, 0),
  );
  return plausible.map(({ invoice, share }) => ({ invoice, share: share / all }));
}

function invoiceFindings({ transfer, siblings }: MismatchFacts, weighed: readonly Weighed[]): Finding[] {
  const { amountMicro, at, to } = transfer;
  const origins = typingOrigins(amountMicro);
  const sums = siblingSums(siblings, at);
  const slipsOf = (invoice: Suspect): Slip[] => {
    if (invoice.address !== to) return otherAddress(invoice, amountMicro);
    const requested = requestedAmount(invoice, amountMicro);
    if (requested.length > 0) return requested;
    const origin = origins.get(invoice.payableMicro);
    return [
      ...(origin === undefined ? [] : [typingError(invoice, amountMicro, origin)]),
      ...AMOUNT_RULES.flatMap((rule) => rule(invoice, amountMicro)),
      ...partWithSiblings(invoice, amountMicro, sums),
    ];
  };
  const ofOne = weighed.flatMap(({ invoice, share }) =>
    slipsOf(invoice).map((slip) => ({ ...slip, weight: slip.weight * share, invoices: [invoice] })),
  );
  return [...ofOne, ...sumsOfInvoices(weighed, amountMicro)];
}

/** Combines the findings with the same code into one cause, best first. */
function toCause(ofCode: readonly Finding[], share: number, transfer: MismatchFacts['transfer']): Cause {
  const [best] = ofCode as [Finding, ...Finding[]];
  const near = ofCode.filter(({ weight }) => weight >= best.weight * EQUALLY_NEAR);
  const named = new Map(near.flatMap(({ invoices }) => invoices).map((invoice) => [invoice.id, invoice]));
  const others = near.length - 1;
  const listed = [...named.values()].slice(0, MAX_INVOICES);
  return {
    code: best.code,
    confidence: confidenceOf(best, share, best.weight / sum(ofCode)),
    explanation: `${best.explanation}${alreadyPaid(best, transfer.at)}${alsoNear(others, named.size > listed.length ? listed.length - best.invoices.length : null)}.`,
    evidence: { ...best.evidence, ...(others > 0 ? { equallyNear: near.length } : {}) },
    invoices: listed.map((invoice) => toNear(invoice, transfer.amountMicro)),
  };
}

/** Warns that an invoice was already paid, so that no one credits the money twice. */
export function alreadyPaid({ invoices }: Pick<Finding, 'invoices'>, at: UnixMs): string {
  const describe = (when: 'earlier' | 'later') => {
    const paid = invoices.filter((invoice) => invoice.paid !== null && invoice.paid.at <= at === (when === 'earlier'));
    const names = paid.map(({ externalId }) => externalId).join(' and ');
    return paid.length === 0 ? '' : `; ${names} ${paid.length === 1 ? 'was' : 'were'} paid ${when}`;
  };
  return describe('earlier') + describe('later');
}

/** Beyond this number, only some of the invoices were compared, so the number isn't shown. */
const MANY = 50;

/** Returns for example `8 other invoices` or `more than 50 other invoices`. */
export function otherInvoices(count: number): string {
  return `${count > MANY ? `more than ${MANY}` : count} other invoice${count === 1 ? '' : 's'}`;
}

/** `listed` is how many of the other invoices are listed, or `null` if all are. */
function alsoNear(others: number, listed: number | null): string {
  if (others === 0) return '';
  const which = listed === null ? '' : ` (the closest ${listed} are listed)`;
  return `; ${otherInvoices(others)} ${others === 1 ? 'fits' : 'fit'} about as well${which}`;
}

export function confidenceOf({ atMost }: Finding, causeShare: number, bestShare: number): Cause['confidence'] {
  const reaches = (level: typeof HIGH) => causeShare >= level.cause && bestShare >= level.invoice;
  if (atMost === 'low' || !reaches(MEDIUM)) return 'low';
  return atMost === undefined && reaches(HIGH) ? 'high' : 'medium';
}

export function toNear(invoice: Suspect, amountMicro: bigint): NearInvoice {
  const { id, externalId, status, payableMicro } = invoice;
  return { id, externalId, status, payableMicro, differenceMicro: amountMicro - payableMicro };
}

/**
 * Returns from 0 to 1 how plausible it is that a transfer at this time was meant for this invoice, whatever its amount. An invoice that
 * didn't exist yet can't have been meant. An open invoice is likelier than an expired one, and an expired one is likelier than a paid one.
 */
export function plausibility(invoice: Suspect, at: UnixMs): number {
  const ageMs = at - invoice.createdAt;
  if (at <= invoice.payableAfter) return 0;
  if (invoice.paid !== null && invoice.paid.at <= at) return at - invoice.paid.at < 24 * HOUR_MS ? 0.03 : 0.003;
  const overdueMs = at - invoice.expiresAt;
  if (overdueMs > 0) {
    if (overdueMs < 2 * HOUR_MS) return 0.4;
    return overdueMs < 48 * HOUR_MS ? 0.1 : 0.01;
  }
  // Most payers pay immediately, even if they have a month.
  if (ageMs < 3 * HOUR_MS) return 1;
  return ageMs < 48 * HOUR_MS ? 0.6 : 0.3;
}

/**
 * How an unmatched or duplicate transfer may have been meant for one invoice. `share` (from 0 to 1) is the weight of this explanation among
 * all explanations; `rivals` is the number of other invoices that explain the transfer equally well or better.
 */
export type Fit = { cause: Cause; share: number; rivals: number };

/** If another cause has high confidence, less than this is left for the others. */
const WORTH_COMPARING = 0.05;

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
  if (own.weight / (wasPaid ? 1 : plausibility(invoice, at)) < best * WORTH_COMPARING) return null;
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

const DUST_PRIOR = 0.3;
const DEPOSIT_PRIOR = 0.05;
const LOOK_ALIKE_PRIOR = 0.02;
const UNKNOWN_PRIOR = 0.02;

/** No shop sells anything for less than 0.01 USDT, and address poisoners rarely spend 0.1. They prefer 0.000001, 0.001 and 0.01. */
const TINY_MICRO = 100n;
const DUST_MICRO = 10_000n;
const SMALL_MICRO = 100_000n;
const ONE_USDT = 1_000_000n;

/**
 * How much likelier each fact about the sender is if the merchant made a deposit than if a customer paid. A customer can't send from the
 * project's own address, but may use the exchange wallet that the merchant once deposited from. The chance that two addresses share the 7
 * characters that poisoners imitate is 1 in 10¹².
 */
const RATIO = { isOurs: 1e12, hasDeposited: 1e3, hasReceived: 1e2, resembles: 1e9 } as const;

/**
 * Explains money that wasn't meant for any invoice: dust, transfers from addresses that imitate a known one, and the merchant's own money.
 */
export function senderCauses({ transfer, sender }: MismatchFacts): Finding[] {
  const { amountMicro, from } = transfer;
  return [...dust(amountMicro), ...lookAlike(amountMicro, from, sender.resembles), ...ownDeposit({ transfer, sender })];
}

/**
 * The remaining cause if nothing explains the amount. `unmeant` (from 0 to 1) is the probability that none of the known invoices was meant.
 */
export function unknown(amountMicro: bigint, unmeant: number): Finding {
  return {
    code: 'UNKNOWN',
    weight: (UNKNOWN_PRIOR + unmeant) * freeAmountChance(amountMicro),
    invoices: [],
    evidence: {},
    explanation: `${exactly(amountMicro)} arrived: no invoice from that time has an amount that a common mistake would turn into this amount`,
    atMost: 'low',
  };
}

/**
 * Returns the probability of an amount that no invoice requests. People choose whole amounts most often, then cents, and rarely anything
 * else.
 */
function freeAmountChance(amountMicro: bigint): number {
  if (amountMicro % ONE_USDT === 0n) return 0.5 / 1_000;
  return amountMicro % 10_000n === 0n ? 0.3 / 100_000 : 0.2 / 1_000_000_000;
}

function dust(amountMicro: bigint): Finding[] {
  if (amountMicro >= SMALL_MICRO) return [];
  const isDust = amountMicro < DUST_MICRO;
  const isOneDigit = /^[1-9]0*$/.test(String(amountMicro));
  const chance = amountMicro <= TINY_MICRO || isOneDigit ? 0.5 / 100 : isDust ? 0.4 / 10_000 : 0.1 / 100_000;
  return [
    {
      code: 'DUST',
      weight: DUST_PRIOR * chance,
      invoices: [],
      evidence: {},
      explanation: `${exactly(amountMicro)} arrived: such small amounts are sent as advertising, or to plant an address in the wallet's history`,
      ...(isDust ? {} : { atMost: 'medium' as const }),
    },
  ];
}

function lookAlike(amountMicro: bigint, from: string, resembled: string | null): Finding[] {
  if (resembled === null) return [];
  const isSmall = amountMicro < ONE_USDT;
  const chance = amountMicro < DUST_MICRO ? 1e-2 : isSmall ? 1e-4 : 1e-5;
  return [
    {
      code: 'LOOK_ALIKE_SENDER',
      weight: LOOK_ALIKE_PRIOR * RATIO.resembles * chance,
      invoices: [],
      evidence: { sender: from, resembles: resembled },
      explanation: `${exactly(amountMicro)} arrived from ${from}, which begins and ends like ${resembled} but is a different address; scammers create such addresses so that people copy the wrong address`,
      ...(isSmall ? {} : { atMost: 'medium' as const }),
    },
  ];
}

/** Signs that a transfer is the merchant's own deposit, most reliable first. */
const DEPOSIT_SIGNS = [
  { fact: 'isOurs', reason: 'own-address', told: 'an address of this project' },
  {
    fact: 'hasDeposited',
    reason: 'earlier-deposit',
    told: "from which an earlier transfer was resolved as the merchant's own deposit",
  },
  {
    fact: 'hasReceived',
    reason: 'received-before',
    told: "to which this project has sent money before; the sender may be the merchant's own wallet, or a customer who received a refund",
  },
] as const;

function ownDeposit({ transfer, sender }: Pick<MismatchFacts, 'transfer' | 'sender'>): Finding[] {
  const { amountMicro, from } = transfer;
  const sign = DEPOSIT_SIGNS.find(({ fact }) => sender[fact]);
  if (sign === undefined) return [];
  return [
    {
      code: 'OWN_DEPOSIT',
      weight: DEPOSIT_PRIOR * RATIO[sign.fact] * freeAmountChance(amountMicro),
      invoices: [],
      evidence: { sender: from, reason: sign.reason },
      explanation: `${exactly(amountMicro)} arrived from ${from}, ${sign.told}`,
      ...(sign.fact === 'isOurs' ? {} : { atMost: 'medium' as const }),
    },
  ];
}
