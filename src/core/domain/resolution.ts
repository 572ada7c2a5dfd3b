import type { MicroUsdt } from './money.ts';

/** The ways an operator can resolve an unmatched or duplicate transfer. None of them changes an invoice's status. */
export const RESOLUTIONS = ['refunded', 'fulfilled-manually', 'own-deposit', 'kept'] as const;

export type ResolutionKind = (typeof RESOLUTIONS)[number];

/** Former names of resolutions. Quittance still accepts them as input, and they occur in older rows and events. */
export const FORMER_RESOLUTIONS: Readonly<Record<string, ResolutionKind>> = {
  'credited-outside': 'fulfilled-manually',
  ignored: 'kept',
};

/**
 * If the newest decision about a transfer refers to an invoice and is one of these, the invoice is settled, so its page no longer asks for
 * a payment.
 */
export const SETTLING: readonly ResolutionKind[] = ['fulfilled-manually'];

/** Returns the resolution with this current or former name, or `null` if there's none. */
export function readResolution(text: string): ResolutionKind | null {
  return (
    RESOLUTIONS.find((kind) => kind === text) ??
    (Object.hasOwn(FORMER_RESOLUTIONS, text) ? (FORMER_RESOLUTIONS[text] ?? null) : null)
  );
}

/** The database schema's limit, in characters. */
const MAX_NOTE = 2000;

/** Returns why a note is refused, or `null`. A note is a single line, so that it fits every table and file. */
export function noteProblem(note: string): string | null {
  const length = [...note].length;
  if (length > MAX_NOTE) return `has ${length} characters: use at most ${MAX_NOTE}`;
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(note))
    return 'contains a control character, such as a line break: write it on one line';
  return null;
}

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
