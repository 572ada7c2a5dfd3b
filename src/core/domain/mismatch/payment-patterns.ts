import { absolute } from '../money.ts';
import { DAY_MS, type UnixMs } from '../time.ts';
import { asked, exactly, type Finding, hasTail, type Sibling, type Slip, type Suspect, shortly } from './finding.ts';

const OTHER_ADDRESS_PRIOR = 0.05;
const TWICE_PRIOR = 0.04;
const FRACTION_PRIOR = 0.02;
const SIBLING_PRIOR = 0.06;
const SUM_PRIOR = 0.04;
/** The weight's factor if the requested amounts explain the transfer, but the payable amounts don't. */
const WITHOUT_TAIL = 0.3;

const FRACTIONS = [
  { parts: 2n, name: 'half', weight: 0.6 },
  { parts: 3n, name: 'a third', weight: 0.2 },
  { parts: 4n, name: 'a quarter', weight: 0.2 },
] as const;

/** Parts of one payment arrive within two days of each other. */
const SIBLINGS_WITHIN_MS = 2 * DAY_MS;
/** When looking for three parts, Quittance considers at most this many other transfers, which form 45 pairs. */
const MAX_PAIRED_SIBLINGS = 10;
const PAIR_WEIGHT = 0.2;

/** Explains the payable amount of an invoice at another one of the project's addresses. */
export function otherAddress(invoice: Suspect, amountMicro: bigint): Slip[] {
  if (amountMicro !== invoice.payableMicro) return [];
  return [
    {
      code: 'OTHER_ADDRESS',
      weight: OTHER_ADDRESS_PRIOR,
      evidence: { expectedAddress: invoice.address },
      explanation: `${exactly(amountMicro)} arrived: exactly ${asked(invoice)}, but that invoice must be paid to ${invoice.address}`,
    },
  ];
}

/** Explains a transfer of twice an invoice's amount. */
export function paidTwice(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { payableMicro, requestedMicro, externalId } = invoice;
  if (amountMicro === payableMicro * 2n) {
    return [
      {
        code: 'PAID_TWICE',
        weight: TWICE_PRIOR,
        evidence: { times: 2, payableAmount: exactly(payableMicro) },
        explanation: `${exactly(amountMicro)} arrived: twice ${asked(invoice)} in one transfer`,
        ...(hasTail(invoice) ? {} : { atMost: 'medium' }),
      },
    ];
  }
  if (amountMicro !== requestedMicro * 2n) return [];
  return [
    {
      code: 'PAID_TWICE',
      weight: TWICE_PRIOR * WITHOUT_TAIL,
      evidence: { times: 2, requestedAmount: exactly(requestedMicro) },
      explanation: `${exactly(amountMicro)} arrived: twice the requested ${shortly(requestedMicro)} of invoice ${externalId}`,
      atMost: 'medium',
    },
  ];
}

/** Explains a half, a third or a quarter of the payable amount (rounded to a micro-USDT) or of the requested amount (exactly). */
export function fractionOfInvoice(invoice: Suspect, amountMicro: bigint): Slip[] {
  for (const { parts, name, weight } of FRACTIONS) {
    const isOfPayable = absolute(amountMicro * parts - invoice.payableMicro) < parts;
    if (!isOfPayable && amountMicro * parts !== invoice.requestedMicro) continue;
    return [
      {
        code: 'PART_OF_INVOICE',
        weight: FRACTION_PRIOR * weight * (isOfPayable ? 1 : WITHOUT_TAIL),
        evidence: { part: `1/${parts}` },
        explanation: `${exactly(amountMicro)} arrived: ${name} of ${isOfPayable ? asked(invoice) : `the requested ${shortly(invoice.requestedMicro)} of invoice ${invoice.externalId}`}`,
        atMost: isOfPayable ? 'medium' : 'low',
      },
    ];
  }
  return [];
}

/** The sum of one or two other transfers from the same sender. */
type SiblingSum = { totalMicro: bigint; parts: readonly bigint[]; weight: number };

export function siblingSums(siblings: readonly Sibling[], at: UnixMs): SiblingSum[] {
  const near = siblings.filter((sibling) => absolute(BigInt(sibling.at - at)) <= SIBLINGS_WITHIN_MS);
  const weight = 1 / Math.max(1, near.length);
  const sums: SiblingSum[] = near.map(({ amountMicro }) => ({ totalMicro: amountMicro, parts: [amountMicro], weight }));
  const paired = near.slice(0, MAX_PAIRED_SIBLINGS).map(({ amountMicro }) => amountMicro);
  paired.forEach((first, index) => {
    for (const second of paired.slice(index + 1)) {
      sums.push({ totalMicro: first + second, parts: [first, second], weight: weight * PAIR_WEIGHT });
    }
  });
  return sums;
}

/** Explains a transfer that equals an invoice's amount together with other transfers from the same sender. */
export function partWithSiblings(invoice: Suspect, amountMicro: bigint, sums: readonly SiblingSum[]): Slip[] {
  const { payableMicro, requestedMicro } = invoice;
  const slips = sums.flatMap(({ totalMicro, parts, weight }): Slip[] => {
    const sumMicro = totalMicro + amountMicro;
    const isExact = sumMicro === payableMicro;
    if (!isExact && sumMicro !== requestedMicro) return [];
    return [
      {
        code: 'PART_OF_INVOICE',
        weight: SIBLING_PRIOR * weight * (isExact ? 1 : WITHOUT_TAIL),
        evidence: { otherParts: parts.map(exactly).join(' + '), sum: exactly(sumMicro) },
        explanation: `${exactly(amountMicro)} arrived: together with ${parts.map(exactly).join(' and ')} from the same sender it is ${isExact ? asked(invoice) : `the requested ${shortly(requestedMicro)} of invoice ${invoice.externalId}`}`,
        ...(isExact && hasTail(invoice) ? {} : { atMost: 'medium' as const }),
      },
    ];
  });
  const [best] = slips.sort((a, b) => b.weight - a.weight);
  return best === undefined ? [] : [best];
}

/** An invoice, and the plausibility that a payer meant it at this time. */
export type Weighed = { invoice: Suspect; share: number };

/** The number of invoices to search for sums of two and of three: 20,000 pairs and 9,880 triples. */
const MAX_PAIRED = 200;
const MAX_TRIPLED = 40;
/** If this many sums match the amount, none of them proves anything. A round amount can match thousands of sums. */
const MAX_SUMS = 200;
const TRIPLE_WEIGHT = 0.3;
const FAR_APART_MS = 3_600_000;
const FAR_APART_WEIGHT = 0.2;

/**
 * Finds two or three invoices whose payable amounts add up to one transfer, at most 200 combinations. Twice the same amount is
 * `PAID_TWICE`, not a sum. Each invoice's share is the probability that the payer meant it at all. Invoices that were created at about the
 * same time are likelier to be paid together.
 */
export function sumsOfInvoices(weighed: readonly Weighed[], amountMicro: bigint): Finding[] {
  const smaller = weighed.filter(({ invoice }) => invoice.payableMicro < amountMicro).sort((a, b) => b.share - a.share);
  const candidates = smaller.slice(0, MAX_PAIRED);
  const byPayable = new Map<bigint, number[]>();
  candidates.forEach(({ invoice: { payableMicro } }, index) => {
    const same = byPayable.get(payableMicro);
    if (same === undefined) byPayable.set(payableMicro, [index]);
    else same.push(index);
  });
  const findings: Finding[] = [];
  const complete = (chosen: readonly Weighed[], restMicro: bigint, afterIndex: number) => {
    for (const index of byPayable.get(restMicro) ?? []) {
      const last = candidates[index];
      if (findings.length >= MAX_SUMS) return;
      if (index > afterIndex && last !== undefined) findings.push(sumFinding([...chosen, last], amountMicro));
    }
  };
  candidates.forEach((first, index) => {
    const restMicro = amountMicro - first.invoice.payableMicro;
    if (restMicro !== first.invoice.payableMicro) complete([first], restMicro, index);
    for (let next = index + 1; next < Math.min(candidates.length, MAX_TRIPLED); next++) {
      const second = candidates[next] as Weighed;
      complete([first, second], restMicro - second.invoice.payableMicro, next);
    }
  });
  return findings;
}

function sumFinding(parts: readonly Weighed[], amountMicro: bigint): Finding {
  const invoices = parts.map(({ invoice }) => invoice);
  const times = invoices.map(({ createdAt }) => createdAt);
  const isApart = Math.max(...times) - Math.min(...times) > FAR_APART_MS;
  const sharesTogether = parts.reduce((product, { share }) => product * share, 1);
  return {
    code: 'SUM_OF_INVOICES',
    // There are n²/2 pairs among n invoices, so each pair counts with twice the product of the shares.
    weight:
      SUM_PRIOR * 2 * sharesTogether * (parts.length > 2 ? TRIPLE_WEIGHT * 3 : 1) * (isApart ? FAR_APART_WEIGHT : 1),
    invoices,
    evidence: { parts: invoices.map(({ payableMicro }) => exactly(payableMicro)).join(' + ') },
    explanation: `${exactly(amountMicro)} arrived: the sum of ${invoices.map(asked).join(' and ')} in one transfer`,
    ...(invoices.some(hasTail) ? {} : { atMost: 'medium' }),
  };
}
