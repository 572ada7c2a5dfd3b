const ONE_USDT = 1_000_000n;
const DECIMALS = 6;

/** How many decimals people round to: cents first, then less, and for amounts below a cent more. */
const ROUNDINGS = [2, 1, 0, 3, 4, 5];

/** What arrives when an amount is not sent as it was asked for; null when the amount leaves no room for the mistake. */
export const MISTAKEN_AMOUNTS = {
  /** 1 USDT less, or half of a smaller amount. */
  less: (amountMicro: bigint): bigint | null => {
    const left = amountMicro > ONE_USDT ? amountMicro - ONE_USDT : amountMicro >> 1n;
    return left > 0n ? left : null;
  },
  /** The first of the usual roundings (half up) that changes the amount and leaves something of it. */
  rounded: (amountMicro: bigint): bigint | null =>
    ROUNDINGS.map((decimals) => roundTo(amountMicro, decimals)).find(
      (rounded) => rounded > 0n && rounded !== amountMicro,
    ) ?? null,
  /** The last digit that counts is one higher; a 9 is one lower. */
  oneDigitWrong: (amountMicro: bigint): bigint => {
    const { digits, zeros } = significant(amountMicro);
    const last = digits.at(-1) ?? '0';
    return BigInt(digits.slice(0, -1) + String(Number(last) + (last === '9' ? -1 : 1)) + zeros);
  },
  /** The last two neighbours that differ change places: 25.000014 → 25.000041, and 25 → 52. */
  digitsSwapped: (amountMicro: bigint): bigint | null => {
    const { digits, zeros } = significant(amountMicro);
    for (let at = digits.length - 1; at > 0; at -= 1) {
      const [left = '', right = ''] = digits.slice(at - 1, at + 1);
      if (left !== right) return BigInt(digits.slice(0, at - 1) + right + left + digits.slice(at + 1) + zeros);
    }
    return null;
  },
} as const;

function roundTo(amountMicro: bigint, decimals: number): bigint {
  const unit = 10n ** BigInt(DECIMALS - decimals);
  return ((amountMicro + unit / 2n) / unit) * unit;
}

/** The digits without the zeros at the end, which nobody types. */
function significant(amountMicro: bigint): { digits: string; zeros: string } {
  const all = amountMicro.toString();
  const digits = all.replace(/0+$/, '');
  return { digits, zeros: all.slice(digits.length) };
}
