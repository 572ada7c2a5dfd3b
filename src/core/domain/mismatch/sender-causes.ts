import { exactly, type Finding, type MismatchFacts } from './finding.ts';

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
