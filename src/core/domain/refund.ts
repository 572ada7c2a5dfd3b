import type { MicroUsdt } from './money.ts';

export type Refundable = { from: string; amountMicro: MicroUsdt; blockNumber: number };

/**
 * A transfer from an address in the same project. `refundOf` is the transfer that this one already refunds; `stands` means that the chain
 * doesn't contradict it.
 */
export type SentBack = {
  to: string;
  amountMicro: MicroUsdt;
  blockNumber: number;
  stands: boolean;
  refundOf: string | null;
};

/** Why none of the transfers is the refund. Describes the nearest miss. */
export type NoRefund<Sent extends SentBack = SentBack> =
  | { kind: 'none-left' }
  | { kind: 'denied' }
  | { kind: 'other-recipient'; recipients: readonly string[] }
  | { kind: 'other-amount'; differenceMicro: bigint }
  | { kind: 'too-early'; sent: Sent }
  | { kind: 'taken'; refundOf: string };

/**
 * Finds the refund among one transaction's outgoing transfers. The refund must go to the original sender, have exactly the same amount, be
 * in a later block, and not already be another transfer's refund. Returns the first one if there are several.
 */
export function findRefund<Sent extends SentBack>(
  came: Refundable,
  left: readonly Sent[],
): { kind: 'found'; sent: Sent } | NoRefund<Sent> {
  if (left.length === 0) return { kind: 'none-left' };
  const standing = left.filter(({ stands }) => stands);
  if (standing.length === 0) return { kind: 'denied' };
  const toSender = standing.filter(({ to }) => to === came.from);
  if (toSender.length === 0) return { kind: 'other-recipient', recipients: [...new Set(standing.map(({ to }) => to))] };
  const exact = toSender.filter(({ amountMicro }) => amountMicro === came.amountMicro);
  const [first] = toSender;
  if (exact.length === 0 && first !== undefined) {
    return { kind: 'other-amount', differenceMicro: first.amountMicro - came.amountMicro };
  }
  const later = exact.filter(({ blockNumber }) => blockNumber > came.blockNumber);
  const [early] = exact;
  if (later.length === 0 && early !== undefined) return { kind: 'too-early', sent: early };
  const sent = later.find(({ refundOf }) => refundOf === null);
  return sent === undefined ? { kind: 'taken', refundOf: later[0]?.refundOf ?? '' } : { kind: 'found', sent };
}
