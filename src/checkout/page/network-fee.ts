import { isBlind, type Page } from './page-state.ts';

/** What a transfer of USDT uses: to an address that holds some, and to one that does not. */
const ENERGY = { usual: 64_000, first: 130_000 };
/** The watcher asks once an hour. */
const STALE_MS = 3 * 60 * 60_000;
/** As much as is believed of a node. */
const MAX_SUN = 1000;

/** About how much TRX a transfer costs whoever has no energy: `6.4` and `13`. `sun`: the price of a unit of energy. */
export type NetworkFee = { sun: number; usual: string; first: string };

/** `null` where the price is not known, or is old, or nothing is seen of the chain. */
export function networkFeeOf({ invoice, now }: Page): NetworkFee | null {
  if (isBlind(invoice, now)) return null;
  // {"sun":100,"at":1764000000000}; whoever can write to the database could have put anything there.
  const { sun, at } = Object(invoice.energyPrice) as { sun?: unknown; at?: unknown };
  if (!isCount(sun) || !isCount(at) || sun === 0 || sun > MAX_SUN || Math.abs(now - at) > STALE_MS) return null;
  return { sun, usual: trx(ENERGY.usual * sun), first: trx(ENERGY.first * sun) };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Rounded up to a tenth: who has a little more than enough is not stopped. */
function trx(sun: number): string {
  const tenths = Math.ceil(sun / 100_000);
  return tenths % 10 === 0 ? String(tenths / 10) : (tenths / 10).toFixed(1);
}
