import { formatAmount, type MicroUsdt } from './money.ts';

/** What may have happened to an amount on its way. It is likely and never certain: the chain shows amounts, not intentions. */
export type LikelyMistake =
  /** The requested amount was sent, without the digits that were added to it. */
  | { kind: 'requested_amount' }
  | { kind: 'swapped_digits' }
  /** A usual fee was taken out of the amount; of what arrived above it: added to it, and then not taken. */
  | { kind: 'fee' }
  | { kind: 'truncated' | 'rounded'; decimals: number }
  | { kind: 'one_digit' };

export type MistakenAmount = { payableMicro: MicroUsdt; requestedMicro: MicroUsdt; arrivedMicro: MicroUsdt };

/** Withdrawal fees of exchanges, in micro-USDT: fixed ones as published for TRC-20 over the years, and one per cent. */
const FEES_MICRO: readonly bigint[] = [
  200_000n,
  300_000n,
  500_000n,
  800_000n,
  1_000_000n,
  1_200_000n,
  1_500_000n,
  1_600_000n,
  2_000_000n,
  2_500_000n,
  3_000_000n,
  3_500_000n,
  4_000_000n,
  5_000_000n,
];
const PERCENT = 100n;
/** USDT has six decimals. */
const MAX_DECIMALS = 6;

/**
 * The most likely way from one invoice's payable amount to what arrived, by this invoice's amounts alone; `null` when none is
 * likely. What hardly happens by chance goes first.
 */
export function likelyMistake(amounts: MistakenAmount): LikelyMistake | null {
  const { payableMicro, requestedMicro, arrivedMicro } = amounts;
  if (arrivedMicro === payableMicro) return null;
  if (arrivedMicro === requestedMicro) return { kind: 'requested_amount' };
  const digits = compareDigits(payableMicro, arrivedMicro);
  if (digits === 'swapped') return { kind: 'swapped_digits' };
  if (isFee(amounts)) return { kind: 'fee' };
  for (let decimals = MAX_DECIMALS - 1; decimals >= 0; decimals--) {
    const step = 10n ** BigInt(MAX_DECIMALS - decimals);
    const below = payableMicro - (payableMicro % step);
    if (below === arrivedMicro) return { kind: 'truncated', decimals };
    if (below + step === arrivedMicro && (payableMicro % step) * 2n >= step) return { kind: 'rounded', decimals };
  }
  return digits === 'one' ? { kind: 'one_digit' } : null;
}

/** Whether what arrived differs by a usual fee from the payable amount, or from the requested amount where that was sent. */
function isFee({ payableMicro, requestedMicro, arrivedMicro }: MistakenAmount): boolean {
  return [payableMicro, requestedMicro].some((sentMicro) => {
    const differenceMicro = sentMicro > arrivedMicro ? sentMicro - arrivedMicro : arrivedMicro - sentMicro;
    const percentMicro = sentMicro - (sentMicro * (PERCENT - 1n)) / PERCENT;
    return FEES_MICRO.includes(differenceMicro) || (arrivedMicro < sentMicro && differenceMicro === percentMicro);
  });
}

/** Whether two amounts differ by one digit, or by two neighbours in each other's place. */
function compareDigits(payableMicro: MicroUsdt, arrivedMicro: MicroUsdt): 'one' | 'swapped' | null {
  const [expected, arrived] = [digitsOf(payableMicro), digitsOf(arrivedMicro)];
  const length = Math.max(expected.length, arrived.length);
  const [left, right] = [expected.padStart(length, '0'), arrived.padStart(length, '0')];
  const places = [...left].flatMap((digit, place) => (digit === right[place] ? [] : [place]));
  const [first = 0, second = 0] = places;
  if (places.length === 1) return 'one';
  const isSwapped = second === first + 1 && left[first] === right[second] && left[second] === right[first];
  return places.length === 2 && isSwapped ? 'swapped' : null;
}

function digitsOf(amountMicro: MicroUsdt): string {
  return formatAmount(amountMicro).replace('.', '');
}
