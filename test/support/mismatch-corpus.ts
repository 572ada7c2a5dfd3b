import { createHash } from 'node:crypto';
import type { MismatchFacts, Sender, Sibling, Suspect } from '../../src/core/domain/mismatch/finding.ts';
import { searchRanges } from '../../src/core/domain/mismatch/search-ranges.ts';
import type { CauseCode } from '../../src/core/domain/mismatch.ts';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import {
  below,
  makeShop,
  pick,
  randomAddress,
  SHOP_NAMES,
  type Shop,
  type ShopName,
  SURCHARGE_MICRO,
} from './mismatch-shops.ts';
import { createRandom, type Random } from './random.ts';

/**
 * A transfer that was sent by a known mistake. `accepted` holds the true cause, and another one only if both describe the same event, as
 * explained at the generator. `meant` are the ids of the invoices that the payer meant.
 */
export type Case = { shop: ShopName; label: CauseCode; accepted: CauseCode[]; meant: string[]; facts: MismatchFacts };

/** The payer's mistake; null if the invoice leaves no room for it. */
type Mistake = {
  amountMicro: bigint;
  accepted?: CauseCode[];
  meant?: Suspect[];
  from?: string;
  to?: string;
  sender?: Partial<Sender>;
  siblings?: Sibling[];
} | null;
type MakeMistake = (random: Random, invoice: Suspect, shop: Shop) => Mistake;

const ONE_USDT = 1_000_000n;

/** An amount as people type it, with all six decimals. */
function typed(amountMicro: bigint): string {
  return formatAmount(microUsdt(amountMicro));
}

/** A wallet's reading of a typed amount: it cuts off a seventh decimal. */
function read(text: string): bigint {
  const [integer = '0', fraction = ''] = text.split('.');
  return BigInt(integer + fraction.slice(0, 6).padEnd(6, '0'));
}

/** Mostly typical fees, and occasionally another round one. */
function anyFee(random: Random): bigint {
  const typical = [
    1_000_000n,
    1_000_000n,
    1_000_000n,
    500_000n,
    800_000n,
    1_500_000n,
    2_000_000n,
    3_000_000n,
    5_000_000n,
  ];
  return random() < 0.85 ? pick(random, typical) : BigInt(1 + below(random, 40)) * 100_000n;
}

/** An amount without decimals is typed without zeros: 25, not 25.000000. */
function typedPlaces(invoice: Suspect): string {
  return typed(invoice.payableMicro).replace(/\.?0+$/, '');
}

/** Whether an extra or missing digit among the last decimals gives the same amount as one wrong digit or a swap. */
function isSmallerSlip({ payableMicro }: Suspect, amountMicro: bigint): boolean {
  const [meant, wrong] = [typed(payableMicro), typed(amountMicro)];
  if (meant.length !== wrong.length) return false;
  const differing = [...meant].flatMap((digit, at) => (digit === wrong.charAt(at) ? [] : [at]));
  const [first = 0, last = 0] = [differing[0], differing.at(-1)];
  const isSwap = meant.charAt(first) === wrong.charAt(last) && meant.charAt(last) === wrong.charAt(first);
  return differing.length <= 1 || (differing.length === 2 && last - first === 1 && isSwap);
}

const MISTAKES: Record<CauseCode, MakeMistake> = {
  FEE_DEDUCTED: (random, { payableMicro, requestedMicro }) => {
    const kind = random();
    if (kind < 0.7) return { amountMicro: payableMicro - anyFee(random) };
    if (kind < 0.8 && requestedMicro !== payableMicro) return { amountMicro: requestedMicro - ONE_USDT };
    const share = pick(random, [10n, 50n, 100n]);
    return { amountMicro: payableMicro - (payableMicro * share) / 10_000n };
  },
  // If rounding and cutting off give the same amount, they are the same event, and either name is right.
  ROUNDED: (random, { payableMicro, requestedMicro }) => {
    const unit = 10n ** BigInt(6 - pick(random, [0, 1, 2, 3, 4, 5]));
    const up = random() < 0.2;
    const amountMicro = ((payableMicro + (up ? unit - 1n : unit / 2n)) / unit) * unit;
    if (amountMicro === requestedMicro) return null;
    return { amountMicro, accepted: amountMicro < payableMicro ? ['TRUNCATED'] : [] };
  },
  TRUNCATED: (random, { payableMicro, requestedMicro }) => {
    const unit = 10n ** BigInt(6 - pick(random, [0, 1, 3, 4, 5]));
    const amountMicro = (payableMicro / unit) * unit;
    if (amountMicro === requestedMicro) return null;
    const isRounding = [1n, 10n, 100n, 1000n].some(
      (more) => ((payableMicro + (unit * more) / 2n) / (unit * more)) * unit * more === amountMicro,
    );
    return { amountMicro, accepted: isRounding ? ['ROUNDED'] : [] };
  },
  ONE_DIGIT_WRONG: (random, invoice) => {
    const text = typedPlaces(invoice);
    const at = below(random, text.length);
    if (text.charAt(at) === '.') return null;
    const other = String((Number(text.charAt(at)) + 1 + below(random, 9)) % 10);
    const wrong = text.slice(0, at) + other + text.slice(at + 1);
    return wrong.startsWith('0') ? null : { amountMicro: read(wrong) };
  },
  DIGITS_SWAPPED: (random, invoice) => {
    const text = typedPlaces(invoice);
    const at = below(random, text.length - 1);
    const [left, right] = [text.charAt(at), text.charAt(at + 1)];
    if (left === '.' || right === '.' || left === right) return null;
    const wrong = text.slice(0, at) + right + left + text.slice(at + 2);
    return wrong.startsWith('0') ? null : { amountMicro: read(wrong) };
  },
  DIGIT_MISSING: (random, invoice) => {
    const text = typedPlaces(invoice);
    // Leaving out the last decimal is the same as cutting it off.
    const at = below(random, text.includes('.') ? text.length - 1 : text.length);
    if (text.charAt(at) === '.') return null;
    const wrong = text.slice(0, at) + text.slice(at + 1);
    if (/^(0[0-9]|\.|$)/.test(wrong) || isSmallerSlip(invoice, read(wrong))) return null;
    return { amountMicro: read(wrong) };
  },
  DIGIT_ADDED: (random, invoice) => {
    const text = typedPlaces(invoice);
    const at = below(random, text.length);
    const digit = random() < 0.6 && text.charAt(at) !== '.' ? text.charAt(at) : String(1 + below(random, 9));
    const amountMicro = read(text.slice(0, at) + digit + text.slice(at));
    return isSmallerSlip(invoice, amountMicro) ? null : { amountMicro };
  },
  POINT_MISPLACED: (random, { payableMicro }) => {
    const kind = random();
    if (kind < 0.3) return { amountMicro: payableMicro * ONE_USDT };
    const factor = pick(random, [10n, 100n]);
    return { amountMicro: kind < 0.7 ? payableMicro * factor : payableMicro / factor };
  },
  PAID_TWICE: (_random, { payableMicro }) => ({ amountMicro: payableMicro * 2n }),
  REQUESTED_AMOUNT: (_random, { payableMicro, requestedMicro }) =>
    requestedMicro === payableMicro ? null : { amountMicro: requestedMicro },
  SUM_OF_INVOICES: (random, invoice, shop) => {
    const others = openAt(shop, invoice.address).filter(({ payableMicro }) => payableMicro !== invoice.payableMicro);
    if (others.length === 0) return null;
    const meant = [invoice, pick(random, others)];
    if (random() < 0.2 && others.length > 1) meant.push(pick(random, others));
    if (new Set(meant).size < meant.length) return null;
    return { amountMicro: meant.reduce((sum, { payableMicro }) => sum + payableMicro, 0n), meant };
  },
  PART_OF_INVOICE: (random, { payableMicro }, shop) => {
    const part = BigInt(1 + below(random, Number(payableMicro / ONE_USDT))) * ONE_USDT;
    const isFirst = random() < 0.5;
    const [amountMicro, otherMicro] = isFirst ? [part, payableMicro - part] : [payableMicro - part, part];
    const siblings = [{ amountMicro: otherMicro, at: unixMs(shop.now - 120_000) }];
    // A payment reduced by a fee and then topped up is both: a fee and a part.
    return { amountMicro, siblings, accepted: isFirst ? [] : ['FEE_DEDUCTED'] };
  },
  OTHER_ADDRESS: (random, { payableMicro, address }, shop) => {
    const others = shop.addresses.filter((other) => other !== address);
    return others.length === 0 ? null : { amountMicro: payableMicro, to: pick(random, others) };
  },
  OVERPAID: (random, { payableMicro }) => ({ amountMicro: payableMicro + anyFee(random) }),
  DUST: (random) => ({
    amountMicro: random() < 0.6 ? BigInt(1 + below(random, 10)) : BigInt(1 + below(random, 9_999)),
  }),
  LOOK_ALIKE_SENDER: (random) => {
    const known = randomAddress(random);
    const from = known.slice(0, 4) + randomAddress(random).slice(4, 30) + known.slice(30);
    const amountMicro = random() < 0.7 ? BigInt(1 + below(random, 20_000)) : BigInt(1 + below(random, 900_000));
    return { amountMicro, from, sender: { resembles: known } };
  },
  OWN_DEPOSIT: (random) => {
    const amountMicro = BigInt(1 + below(random, 500)) * pick(random, [ONE_USDT, 10n * ONE_USDT, 10_000n]);
    const sender = pick(random, [{ isOurs: true }, { hasDeposited: true }]);
    return { amountMicro, sender };
  },
  // A transfer unrelated to this shop: another address's money, or an amount with all its decimals.
  UNKNOWN: (random) => ({
    amountMicro: BigInt(5_000_000 + below(random, 2_000_000_000)) * 10n + BigInt(1 + below(random, 9)),
  }),
  // Applies whatever invoice the amount resembles.
  SELF_TRANSFER: (_random, { payableMicro, address }) => ({
    ...{ amountMicro: payableMicro - ONE_USDT, from: address, to: address },
    meant: [],
  }),
};

export const LABELS = Object.keys(MISTAKES) as CauseCode[];

function openAt(shop: Shop, address: string): Suspect[] {
  return shop.invoices.filter((invoice) => invoice.address === address && invoice.status === 'PENDING');
}

const REDRAWS = 40;

/** Each shop and label has its own random stream, so that a new label doesn't change the cases of another. */
function streamOf(seed: number, ...names: string[]): Random {
  const hash = createHash('sha256')
    .update([seed, ...names].join(' '))
    .digest();
  return createRandom(hash.readUInt32LE());
}

/** Generates labelled cases of every cause in every kind of shop, `perKind` of each if the shop has room for the mistake. */
export function makeCorpus(seed: number, perKind: number): Case[] {
  return SHOP_NAMES.flatMap((name) => {
    const shared = makeShop(streamOf(seed, name), name);
    return LABELS.flatMap((label) => {
      const random = streamOf(seed, name, label);
      return Array.from({ length: perKind }, () => {
        const shop = name === 'one invoice' ? makeShop(random, name) : shared;
        return makeCase(random, shop, label);
      }).flatMap((made) => (made === null ? [] : [made]));
    });
  });
}

function makeCase(random: Random, shop: Shop, label: CauseCode): Case | null {
  for (let draw = 0; draw < REDRAWS; draw++) {
    const isLate = random() < 0.1;
    const payable = shop.invoices.filter(({ status }) => status === 'PENDING' || (isLate && status === 'EXPIRED'));
    const invoice = pick(random, payable);
    const mistake = MISTAKES[label](random, invoice, shop);
    if (mistake === null || mistake.amountMicro <= 0n) continue;
    const to = mistake.to ?? invoice.address;
    // An exact amount is a payment or a duplicate, so no one asks about it.
    if (shop.invoices.some((other) => other.address === to && other.payableMicro === mistake.amountMicro)) continue;
    return {
      shop: shop.name,
      label,
      accepted: [label, ...(mistake.accepted ?? [])],
      meant: (mistake.meant ?? [invoice]).map(({ id }) => id),
      facts: factsAbout(shop, { ...mistake, to, from: mistake.from ?? randomAddress(random) }),
    };
  }
  return null;
}

const NEWEST = 200;

/** Returns the ledger's facts about a transfer: the shop's invoices that the search finds, and the newest unpaid ones. */
export function factsAbout(
  shop: Shop,
  { amountMicro, to, from, sender, siblings = [] }: NonNullable<Mistake> & { to: string; from: string },
): MismatchFacts {
  const transfer = { amountMicro, from, to, at: shop.now };
  const ranges = searchRanges({ transfer, policy: shop.policy, siblings }, SURCHARGE_MICRO);
  const single = new Set(ranges.filter(({ low, high }) => low === high).map(({ low }) => low));
  const wide = ranges.filter(({ low, high }) => low < high);
  const isNear = (micro: bigint) => single.has(micro) || wide.some(({ low, high }) => micro >= low && micro <= high);
  const near = shop.invoices.filter(({ address, payableMicro }) =>
    address === to ? isNear(payableMicro) : payableMicro === amountMicro,
  );
  const newest = shop.invoices
    .filter(({ status }) => status !== 'PAID')
    .sort((a, b) => b.createdAt - a.createdAt)
    .slice(0, NEWEST);
  return {
    transfer,
    policy: shop.policy,
    invoices: [...new Set([...near, ...newest])],
    siblings,
    sender: { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null, ...sender },
  };
}
