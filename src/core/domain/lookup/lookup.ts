import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { assertNever } from '../assert-never.ts';
import { type ContractState, STATE_EFFECTS } from '../contract-event.ts';
import type { InvoiceStatus } from '../invoice.ts';
import { rankCauses } from '../mismatch/rank-causes.ts';
import { CAUSES, type Cause } from '../mismatch.ts';
import { absolute, formatAmount, type MicroUsdt, microUsdt } from '../money.ts';
import { toIso, type UnixMs, unixMs } from '../time.ts';
import type { LinkedNetwork, OtherChain } from './pasted.ts';

/** The ledger's facts about a transaction in relation to this invoice. */
export type LedgerFacts = InBlock & ({ kind: 'matched' } | { kind: 'duplicate' } | { kind: 'sighted'; txId: string });

/** A node's facts about a transaction, regardless of any invoice. Amounts are greater than 0. */
export type TransactionFacts =
  /**
   * `used-up`: no more requests are allowed for this link, or for all links together, at the moment. `too-large`: the transaction exceeds
   * the size limit.
   */
  | { kind: 'unavailable'; why: 'for-now' | 'used-up' | 'too-large' }
  | { kind: 'not-found' }
  /**
   * `result`: the value in the block, which isn't SUCCESS. `payer`: if the USDT contract itself refused the transfer, the account whose
   * USDT would have moved, and whether the contract reports it as frozen now.
   */
  | (InBlock & { kind: 'failed'; result: string; payer: { account: AccountHex; isFrozen: boolean } | null })
  | (InBlock & {
      kind: 'done';
      /** USDT transfers, in order. */
      usdt: readonly { to: AccountHex; amountMicro: MicroUsdt }[];
      otherTokens: readonly { contract: AccountHex; to: AccountHex }[];
      trx: { to: AccountHex; amountSun: bigint } | null;
      /** Whether it transferred one of the chain's native tokens. */
      isTrc10: boolean;
      /** Whether it called the USDT contract itself, which moves nothing but USDT. */
      isUsdtCall: boolean;
    });

type InBlock = { blockNumber: number; blockTime: UnixMs };

/** The one invoice that the payer is asking about. */
export type LookupInvoice = {
  account: AccountHex;
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  status: InvoiceStatus;
  createdAt: UnixMs;
  /** A payment must be in a block after this time. */
  payableAfter: UnixMs;
  /** The time of the first block where the transaction was seen with exactly this transfer. A fork may have moved it since then. */
  firstSeenAt: UnixMs | null;
  /** The transaction that paid the invoice, or the first one that is about to pay it. */
  payingTxId: string | null;
  /** Whether this transaction has ever been seen as the invoice's payment, in any block. */
  wasSighted: boolean;
  /** The height up to which transfers in irreversible blocks are recorded, or `null` if there's none yet. */
  solidNumber: number | null;
  /** The newest examined block, which is never below the solid block. */
  head: { number: number; time: UnixMs } | null;
  isPaused: boolean;
};

type Placed = { blockNumber: number; blockTime: string };
type Exact = Placed & { amount: string };
type Differing = Placed & { arrived: string; expected: string; by: string; likely: LikelyMistake | null };

/**
 * The answer as the API sends it. Amounts are decimal strings with six decimals, times are ISO 8601, and addresses and contracts start with
 * `T`.
 */
export type LookupAnswer =
  | ({ code: 'paid' } & Exact)
  /** `earlierTransaction`: another exact transfer that arrived earlier and will pay the invoice. In that case this one pays nothing. */
  | ({ code: 'confirming'; confirmations: number; required: number; earlierTransaction: string | null } & Exact)
  | ({ code: 'exact_but_already_paid'; paidBy: string | null } & Exact)
  /** The transfer will pay once Quittance has recorded its block, unless there's an `earlierTransaction` (see above). */
  | ({ code: 'exact_not_yet_examined'; earlierTransaction: string | null } & Exact)
  /**
   * A node shows the transaction in an examined block that isn't irreversible. Quittance hasn't found it there, or not enough nodes have
   * shown it yet.
   */
  | ({ code: 'exact_not_confirmed'; checkAgainSeconds: number } & Exact)
  /** A node shows the transaction in a recorded block, but Quittance didn't find it among the block's transfers. */
  | ({ code: 'exact_not_recorded' } & Exact)
  /**
   * The transaction was on the chain before the invoice was created, so it doesn't pay it. `amount` is the amount that arrived, and
   * `blockTime` is the time of the first block in which it was seen.
   */
  | ({ code: 'before_invoice'; invoiceCreatedAt: string } & Exact)
  | ({ code: 'short' } & Differing)
  | ({ code: 'over' } & Differing)
  | ({ code: 'other_address'; to: string; amount: string } & Placed)
  | ({ code: 'other_token'; contract: string } & Placed)
  /** `wasSighted`: the transaction was this invoice's payment until its block was orphaned. */
  | (FailedAnswer & { wasSighted: boolean })
  /** `amountTrx` is set if TRX was sent; `toAddress` says whether it was sent to the invoice's address. */
  | ({ code: 'no_usdt_transfer'; moved: Moved; amountTrx: string | null; toAddress: boolean } & Placed)
  /** The transaction isn't on the chain yet, or never will be, because transfers inside an exchange have no transaction. */
  | { code: 'not_found'; checkAgainSeconds: number }
  /** The transaction was this invoice's payment, but its block was orphaned. It's waiting to be mined again. */
  | { code: 'orphaned'; checkAgainSeconds: number }
  /** The link leads to a TRON network other than the invoice's. */
  | { code: 'other_network'; network: LinkedNetwork }
  | { code: 'not_tron'; looksLike: OtherChain }
  | { code: 'not_a_transaction_id'; looksLike: 'address' | 'part-of-an-id' | 'link' | 'other'; characters: number }
  | { code: 'unavailable'; checkAgainSeconds: number };

/** `result` is the value on the chain: `OUT_OF_ENERGY`, `REVERT`, `OUT_OF_TIME` … */
type FailedAnswer = { code: 'failed'; why: FailureReason; result: string } & Placed;

/** The answers that are the same for every invoice. */
export type GeneralAnswer =
  | FailedAnswer
  | Extract<LookupAnswer, { code: 'other_address' | 'other_token' | 'no_usdt_transfer' | 'not_found' | 'unavailable' }>;

type FailureReason = 'out_of_energy' | 'out_of_time' | 'reverted' | 'other' | StateReason;
/** A USDT contract state in which the transfer would fail again. */
type StateReason = (typeof STATE_EFFECTS)[ContractState]['lookUp'];
/** `unknown` means that the logs show no token transfer, but a called contract may have moved TRX, which lookups don't check. */
type Moved = 'trx' | 'trc10' | 'other_token' | 'nothing' | 'unknown';

/** With 27 producers, a block becomes irreversible when 19 of them have built on it. */
const REQUIRED_CONFIRMATIONS = 19;
/** Wallets show an id before the network has put the transaction into a block. */
const NOT_FOUND_AGAIN_SECONDS = 60;
/**
 * Nodes that refused requests are paused for a few seconds, and the requests for a link are limited per minute. A transaction's size never
 * changes.
 */
const UNAVAILABLE_AGAIN_SECONDS = { 'for-now': 5, 'used-up': 60, 'too-large': 600 } as const;
/** It takes a minute until 19 producers have built on a block. By then, Quittance has confirmed or recorded a real transfer. */
const NOT_CONFIRMED_AGAIN_SECONDS = 60;

/**
 * Explains a transaction to an invoice's payer. The answer depends only on public facts about the transaction and on this invoice, so it
 * doesn't reveal whether the transaction paid another invoice. If there are several transfers, the answer describes the one that fits best.
 */
export function answerLookup(invoice: LookupInvoice, facts: LedgerFacts | TransactionFacts): LookupAnswer {
  if (facts.kind === 'not-found' && invoice.wasSighted) {
    return { code: 'orphaned', checkAgainSeconds: NOT_FOUND_AGAIN_SECONDS };
  }
  switch (facts.kind) {
    case 'matched':
      return { code: 'paid', ...exactly(invoice, facts) };
    case 'duplicate':
      return { code: 'exact_but_already_paid', ...exactly(invoice, facts), paidBy: invoice.payingTxId };
    case 'sighted':
      return answerDetected(invoice, facts);
    case 'done':
      return answerDone(invoice, facts);
    case 'unavailable':
    case 'not-found':
      return answerUnread(facts);
    case 'failed':
      return { ...answerFailed(facts, invoice.isPaused), wasSighted: invoice.wasSighted };
    default:
      return assertNever(facts);
  }
}

/** The answer if no invoice is given. It describes the transfer to one of our addresses, or the largest of several such transfers. */
export type UnclaimedAnswer = GeneralAnswer | ({ code: 'to_your_address'; to: string; amount: string } & Placed);

/** Explains a transaction that the ledger has no record of. `isOurs` says which accounts are the installation's own. */
export function answerUnclaimed(
  facts: TransactionFacts,
  isOurs: (account: AccountHex) => boolean,
  isPaused: boolean,
): UnclaimedAnswer {
  if (facts.kind === 'failed') return answerFailed(facts, isPaused);
  if (facts.kind !== 'done') return answerUnread(facts);
  const byAmount = facts.usdt.toSorted((left, right) => (left.amountMicro > right.amountMicro ? -1 : 1));
  const here = byAmount.find(({ to }) => isOurs(to));
  if (here === undefined) return answerElsewhere(facts, isOurs, byAmount[0] ?? null);
  const [to, amount] = [accountToAddress(here.to), formatAmount(here.amountMicro)];
  return { code: 'to_your_address', ...placed(facts), to, amount };
}

function answerUnread(
  facts: Extract<TransactionFacts, { kind: 'unavailable' | 'not-found' }>,
): Extract<GeneralAnswer, { code: 'unavailable' | 'not_found' }> {
  return facts.kind === 'unavailable'
    ? { code: 'unavailable', checkAgainSeconds: UNAVAILABLE_AGAIN_SECONDS[facts.why] }
    : { code: 'not_found', checkAgainSeconds: NOT_FOUND_AGAIN_SECONDS };
}

function answerFailed(facts: Failed, isPaused: boolean): FailedAnswer {
  return { code: 'failed', ...placed(facts), why: whyFailed(facts, isPaused), result: facts.result };
}

function answerDetected(invoice: LookupInvoice, facts: Extract<LedgerFacts, { kind: 'sighted' }>): LookupAnswer {
  const exact = exactly(invoice, facts);
  if (invoice.status === 'PAID') return { code: 'exact_but_already_paid', ...exact, paidBy: invoice.payingTxId };
  const headNumber = invoice.head?.number ?? facts.blockNumber;
  return {
    code: 'confirming',
    ...exact,
    confirmations: Math.min(REQUIRED_CONFIRMATIONS, Math.max(1, headNumber - facts.blockNumber + 1)),
    required: REQUIRED_CONFIRMATIONS,
    earlierTransaction: invoice.payingTxId === facts.txId ? null : invoice.payingTxId,
  };
}

function answerDone(invoice: LookupInvoice, facts: Done): LookupAnswer {
  const here = nearest(
    invoice,
    facts.usdt.filter(({ to }) => to === invoice.account),
  );
  if (here !== null) return answerAmount(invoice, facts, here.amountMicro);
  return answerElsewhere(facts, (to) => to === invoice.account, nearest(invoice, facts.usdt));
}

type Done = Extract<TransactionFacts, { kind: 'done' }>;
type Failed = Extract<TransactionFacts, { kind: 'failed' }>;

/** Returns the answer if no USDT arrived here. `elsewhere` is a USDT transfer to someone else. */
function answerElsewhere(
  facts: Done,
  isHere: (account: AccountHex) => boolean,
  elsewhere: Done['usdt'][number] | null,
): Exclude<GeneralAnswer, FailedAnswer> {
  const token = facts.otherTokens.find(({ to }) => isHere(to));
  if (token !== undefined) {
    return { code: 'other_token', ...placed(facts), contract: accountToAddress(token.contract) };
  }
  if (elsewhere !== null) {
    const { to, amountMicro } = elsewhere;
    return {
      code: 'other_address',
      ...placed(facts),
      to: accountToAddress(to),
      amount: formatAmount(amountMicro),
    };
  }
  const { trx } = facts;
  return {
    code: 'no_usdt_transfer',
    ...placed(facts),
    moved: whatMoved(facts),
    // One sun is a millionth of a TRX, just as one micro-USDT is a millionth of a USDT.
    amountTrx: trx && formatAmount(microUsdt(trx.amountSun)),
    toAddress: trx !== null && isHere(trx.to),
  };
}

function whatMoved({ trx, isTrc10, otherTokens, isUsdtCall }: Done): Moved {
  if (trx !== null) return 'trx';
  if (isTrc10) return 'trc10';
  if (otherTokens.length > 0) return 'other_token';
  return isUsdtCall ? 'nothing' : 'unknown';
}

function answerAmount(invoice: LookupInvoice, facts: InBlock, arrivedMicro: MicroUsdt): LookupAnswer {
  const { payableMicro } = invoice;
  const isExact = arrivedMicro === payableMicro;
  // It's probably the payment for another order, because the payer couldn't know this invoice's address and amount at that time.
  const came = (isExact ? invoice.firstSeenAt : null) ?? facts.blockTime;
  if (came <= invoice.payableAfter) {
    const amount = formatAmount(arrivedMicro);
    const times = { blockTime: toIso(came), invoiceCreatedAt: toIso(invoice.createdAt) };
    return { code: 'before_invoice', blockNumber: facts.blockNumber, amount, ...times };
  }
  if (isExact) return answerExact(invoice, facts);
  const isShort = arrivedMicro < payableMicro;
  return {
    code: isShort ? 'short' : 'over',
    ...placed(facts),
    arrived: formatAmount(arrivedMicro),
    expected: formatAmount(payableMicro),
    by: formatAmount(microUsdt(absolute(payableMicro - arrivedMicro))),
    likely: likelyMistake({ ...invoice, arrivedMicro }),
  };
}

/** Returns the answer for an exact transfer that isn't in the ledger. */
function answerExact(invoice: LookupInvoice, facts: InBlock): LookupAnswer {
  const exact = exactly(invoice, facts);
  if (invoice.solidNumber !== null && facts.blockNumber <= invoice.solidNumber) {
    return { code: 'exact_not_recorded', ...exact };
  }
  if (invoice.status === 'PAID') return { code: 'exact_but_already_paid', ...exact, paidBy: invoice.payingTxId };
  const isAboveHead = invoice.head === null || facts.blockNumber > invoice.head.number;
  if (!isAboveHead) {
    return { code: 'exact_not_confirmed', ...exact, checkAgainSeconds: NOT_CONFIRMED_AGAIN_SECONDS };
  }
  return { code: 'exact_not_yet_examined', ...exact, earlierTransaction: invoice.payingTxId };
}

/** Returns the transfer whose amount is nearest to the payable amount, or the first of several. */
function nearest<Transfer extends { amountMicro: MicroUsdt }>(
  { payableMicro }: LookupInvoice,
  transfers: readonly Transfer[],
): Transfer | null {
  const distance = ({ amountMicro }: Transfer) => absolute(amountMicro - payableMicro);
  return transfers.reduce<Transfer | null>(
    (best, each) => (best === null || distance(each) < distance(best) ? each : best),
    null,
  );
}

/** A frozen payer takes precedence, because any further attempt from that wallet would fail as well. */
function whyFailed({ result, payer }: Failed, isPaused: boolean): FailureReason {
  if (payer?.isFrozen) return STATE_EFFECTS.frozen.lookUp;
  if (payer !== null && isPaused) return STATE_EFFECTS.paused.lookUp;
  switch (result) {
    case 'OUT_OF_ENERGY':
      return 'out_of_energy';
    case 'OUT_OF_TIME':
      return 'out_of_time';
    case 'REVERT':
      return 'reverted';
    default:
      return 'other';
  }
}

function exactly({ payableMicro }: LookupInvoice, facts: InBlock): Exact {
  return { ...placed(facts), amount: formatAmount(payableMicro) };
}

function placed({ blockNumber, blockTime }: InBlock): Placed {
  return { blockNumber, blockTime: toIso(blockTime) };
}

/** A mistake as payers see it. It's likely but never certain, because the chain shows amounts, not intentions. */
export type LikelyMistake =
  /** The payer sent the requested amount, without the digits that were added to it. */
  | { kind: 'requested_amount' }
  | { kind: 'swapped_digits' }
  /** A fee was deducted from the amount. If more arrived, the payer added a fee that wasn't deducted. */
  | { kind: 'fee' }
  | { kind: 'truncated' | 'rounded'; decimals: number }
  /** One digit is wrong, missing or extra. */
  | { kind: 'one_digit' };

type MistakenAmount = { payableMicro: MicroUsdt; requestedMicro: MicroUsdt; arrivedMicro: MicroUsdt };

/**
 * These stand-ins for an invoice and a sender are enough, because only the amounts matter. The payer chose the invoice, so we know which
 * one they meant.
 */
const AT = unixMs(1);
const NAMED = {
  id: '',
  externalId: '',
  status: 'PENDING',
  address: '',
  createdAt: AT,
  payableAfter: unixMs(0),
  expiresAt: AT,
  paid: null,
} as const;
const SENDER = { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null } as const;

/**
 * Returns the likeliest mistake, judging only by the amounts of one invoice. Returns `null` if no mistake is likelier than all others
 * together, or if the page can't describe it.
 */
export function likelyMistake({ payableMicro, requestedMicro, arrivedMicro }: MistakenAmount): LikelyMistake | null {
  if (arrivedMicro === payableMicro) return null;
  const [cause] = rankCauses({
    transfer: { amountMicro: arrivedMicro, from: 'payer', to: NAMED.address, at: AT },
    policy: 'tail',
    invoices: [{ ...NAMED, payableMicro, requestedMicro }],
    siblings: [],
    sender: SENDER,
  });
  return cause === undefined || cause.confidence === 'low' ? null : wordCause(cause);
}

/** Operators see more causes, with their likelihood, and more invoices. */
function wordCause({ code, evidence }: Cause): LikelyMistake | null {
  const { payer: kind } = CAUSES[code];
  if (kind === undefined) return null;
  return kind === 'rounded' || kind === 'truncated' ? { kind, decimals: Number(evidence['decimals']) } : { kind };
}
