import { MISTAKES } from '../../../domain/mismatch/mistakes.ts';
import type { MicroUsdt } from '../../../domain/money.ts';

/** A transfer of a story: its amount, and how long after the order it came. */
type StoryTransfer = { kind: 'matched' | 'duplicate' | 'unmatched'; amountMicro: bigint; afterMs: number };
/** What becomes of an order: how it ends, and the money that comes. */
export type Story = { status: 'PAID' | 'EXPIRED'; transfers: StoryTransfer[] };

const MINUTE_MS = 60_000;
export const LIFETIME_MS = 30 * MINUTE_MS;

/** How many of a hundred orders go each way. A shop has about as many, only fewer of the rare ones. */
const SHARES = {
  paid: 60,
  expired: 22,
  late: 3,
  twice: 3,
  'a fee of 1 taken out': 4,
  'rounded to 2 decimals': 3,
  'one wrong digit': 2,
  'point one place too far right': 1,
  stray: 2,
} as const;
type StoryName = keyof typeof SHARES;

/** Tells the story of an order. `random` returns 0 … 1, evenly. */
export function tellStory(payable: MicroUsdt, random: () => number): Story {
  const name = draw(random);
  const soonMs = Math.round((0.5 + 14 * random()) * MINUTE_MS);
  const paid: StoryTransfer = { kind: 'matched', amountMicro: payable, afterMs: soonMs };
  if (name === 'paid') return { status: 'PAID', transfers: [paid] };
  if (name === 'expired') return { status: 'EXPIRED', transfers: [] };
  if (name === 'late') return { status: 'PAID', transfers: [{ ...paid, afterMs: LIFETIME_MS + soonMs }] };
  if (name === 'twice') {
    const again = { kind: 'duplicate', amountMicro: payable, afterMs: soonMs + 2 * MINUTE_MS } as const;
    return { status: 'PAID', transfers: [paid, again] };
  }
  const amountMicro = name === 'stray' ? BigInt(1 + Math.floor(random() * 50)) * 1_000_000n : mistaken(name, payable);
  return { status: 'EXPIRED', transfers: [{ kind: 'unmatched', amountMicro, afterMs: soonMs }] };
}

function draw(random: () => number): StoryName {
  let left = random() * 100;
  for (const [name, share] of Object.entries(SHARES)) {
    left -= share;
    if (left < 0) return name as StoryName;
  }
  return 'paid';
}

/** What a payer sends by mistake who should send this; never the amount itself, and never nothing. */
function mistaken(name: StoryName, payable: bigint): bigint {
  const amounts = MISTAKES.find((mistake) => mistake.name === name)?.of({ amount: payable, decimals: 6 }) ?? [];
  return amounts.find((amount) => amount > 0n && amount !== payable) ?? payable + 1n;
}
