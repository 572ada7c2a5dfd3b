import { assertNever } from '../../../core/domain/assert-never.ts';
import type { GeneralAnswer, LookupAnswer } from '../../../core/domain/lookup/lookup.ts';
import { asTyped } from '../../../core/domain/money.ts';
import { type Html, html, plainText } from '../../web/html.ts';
import { type Page, STATES, stateOf } from '../page/page-state.ts';
import { ltr, renderMerchant, trimZeros } from '../page/pieces.ts';
import { renderSupport } from '../page/render-document.ts';
import { NETWORK_NAMES } from '../page/wallets.ts';
import { type Words, wordsOf } from '../words/words.ts';

/** Explains a transaction that was looked up: its meaning for this invoice, the likely reason, and the next step. */
export function renderAnswer(page: Page, answer: LookupAnswer): Html {
  const isWaiting = STATES[stateOf(page)].pay === 'open';
  const reminder = isWaiting && PAYS_NOTHING.has(answer.code) ? html`<p>${page.words.say('stillWaits')}</p>` : null;
  const whatItIs = renderWhatItIs(page, answer);
  // If the text tells the payer to contact the merchant, show the contact.
  const { brand } = page.invoice;
  const isKnown = (brand.supportContact ?? brand.returnUrl) !== null;
  const asksMerchant = whatItIs.html.includes(renderMerchant(brand).html);
  return html`${whatItIs}${reminder}${isKnown && asksMerchant ? renderSupport(page) : null}`;
}

/** In these cases no money has reached this invoice, so the payer still has to pay it. */
const PAYS_NOTHING: ReadonlySet<LookupAnswer['code']> = new Set([
  'before_invoice',
  'other_address',
  'other_token',
  'no_usdt_transfer',
  'other_network',
  'not_tron',
]);

function renderWhatItIs(page: Page, answer: LookupAnswer): Html {
  const { words, invoice } = page;
  const { say, count, time } = words;
  const merchant = renderMerchant(invoice.brand);
  const again = (seconds: number) => words.duration(seconds * 1000);
  switch (answer.code) {
    case 'paid':
      return good(say('answerPaid', { amount: ltr(asTyped(answer.amount)), block: ltr(answer.blockNumber) }));
    case 'confirming':
      return answer.earlierTransaction === null
        ? good(
            say('answerConfirming', {
              amount: ltr(asTyped(answer.amount)),
              block: ltr(answer.blockNumber),
              built: ltr(answer.confirmations),
              required: ltr(answer.required),
            }),
          )
        : bad(say('answerSecond', { merchant, transaction: ltr(answer.earlierTransaction) }));
    case 'exact_not_yet_examined':
      return answer.earlierTransaction === null
        ? good(say('answerNotExamined', { block: ltr(answer.blockNumber) }))
        : bad(say('answerSecond', { merchant, transaction: ltr(answer.earlierTransaction) }));
    case 'exact_but_already_paid':
      return answer.paidBy === null
        ? bad(say('answerAlreadyPaidOther', { merchant }))
        : bad(say('answerAlreadyPaid', { merchant, transaction: ltr(answer.paidBy) }));
    case 'exact_not_confirmed':
      return bad(say('answerNotConfirmed', { duration: again(answer.checkAgainSeconds) }));
    case 'exact_not_recorded':
      return bad(say('answerNotRecorded', { merchant }));
    case 'before_invoice':
      return bad(
        say('answerBeforeInvoice', {
          time: time(answer.blockTime),
          created: time(answer.invoiceCreatedAt),
          merchant,
        }),
      );
    case 'short':
    case 'over': {
      const { arrived, by, expected } = answer;
      const values = {
        ...{ arrived: ltr(asTyped(arrived)), by: ltr(trimZeros(by)), expected: ltr(asTyped(expected)) },
        merchant,
      };
      const likely = answer.likely === null ? null : html`<p>${renderLikely(words, answer.code, answer.likely)}</p>`;
      return html`${bad(say(answer.code === 'short' ? 'answerShort' : 'answerOver', values))}${likely}`;
    }
    case 'failed':
      return html`${renderGeneral(words, merchant, answer)}${renderNextTry(page, answer)}`;
    case 'other_address':
    case 'other_token':
    case 'no_usdt_transfer':
    case 'not_found':
    case 'unavailable':
      return renderGeneral(words, merchant, answer);
    case 'orphaned':
      return bad(say('answerOrphaned'));
    case 'other_network': {
      const { [answer.network]: network, [invoice.network]: expected } = NETWORKS;
      return bad(say('answerOtherNetwork', { network: ltr(network), expected: ltr(expected) }));
    }
    case 'not_tron':
      return bad(say('answerNotTron', { chain: CHAINS[answer.looksLike] }));
    case 'not_a_transaction_id':
      return bad(
        answer.looksLike === 'part-of-an-id' ? count('answerIsPart', answer.characters) : say(NO_ID[answer.looksLike]),
      );
    default:
      return assertNever(answer);
  }
}

/** Renders the answers that are the same for all invoices. */
function renderGeneral(words: Words, merchant: Html, answer: GeneralAnswer): Html {
  const { say } = words;
  const again = (seconds: number) => words.duration(seconds * 1000);
  switch (answer.code) {
    case 'other_address':
      return bad(say('answerOtherAddress', { amount: ltr(asTyped(answer.amount)), to: ltr(answer.to), merchant }));
    case 'other_token':
      return bad(say('answerOtherToken', { contract: ltr(answer.contract), merchant }));
    case 'failed':
      return html`${bad(say('answerFailed'))}<p>${say(FAILURES[answer.why], { result: ltr(answer.result) })}</p>`;
    case 'no_usdt_transfer':
      return bad(renderNoUsdt(words, answer, merchant));
    case 'not_found':
      return bad(say('answerNotFound', { duration: again(answer.checkAgainSeconds), merchant }));
    case 'unavailable':
      return bad(say('answerUnavailable', { duration: again(answer.checkAgainSeconds) }));
    default:
      return assertNever(answer);
  }
}

/** Describes a general answer in English and without markup, as on a payment page. */
export function describeForPayer(answer: GeneralAnswer): string {
  return plainText(renderGeneral(wordsOf('en'), html`the merchant`, answer));
}

/** Renders the answer for a payer who sends too many requests. */
export function renderLimited({ words }: Page, seconds: number): Html {
  return bad(words.say('answerLimited', { duration: words.duration(seconds * 1000) }));
}

/** The `✓` shows the meaning as well, because some people can't see the colour. */
function good(text: Html): Html {
  return html`<p class="good">✓ ${text}</p>`;
}

function bad(text: Html): Html {
  return html`<p class="notice">${text}</p>`;
}

/** The names that TronLink uses. */
const NETWORKS = { ...NETWORK_NAMES, nile: 'TRON Nile Testnet', shasta: 'TRON Shasta Testnet' };

const CHAINS = {
  ethereum: 'Ethereum',
  bsc: 'BNB Smart Chain',
  polygon: 'Polygon',
  solana: 'Solana',
  ton: 'TON',
} as const;

const NO_ID = { address: 'answerIsAddress', link: 'answerIsLink', other: 'answerIsOther' } as const;

type Likely = NonNullable<Extract<LookupAnswer, { code: 'short' | 'over' }>['likely']>;

function renderLikely({ say, count }: Words, code: 'short' | 'over', likely: Likely): Html {
  if (likely.kind === 'fee') return say(code === 'short' ? 'likelyFee' : 'likelyFeeAdded');
  if (likely.kind === 'rounded') return count('likelyRounded', likely.decimals);
  if (likely.kind === 'truncated') return count('likelyTruncated', likely.decimals);
  return say(LIKELY[likely.kind]);
}

const LIKELY = {
  requested_amount: 'likelyRequested',
  one_digit: 'likelyDigit',
  swapped_digits: 'likelySwapped',
} as const;

const FAILURES = {
  out_of_energy: 'failedEnergy',
  out_of_time: 'failedTime',
  reverted: 'failedReverted',
  payer_frozen: 'failedFrozen',
  paused: 'failedPaused',
  other: 'failedOther',
} as const;

/** Until a block is irreversible, a fork may let the transaction succeed. `data-may-send` is for the script. */
const FINAL_AFTER_MS = 60_000;

/** Renders a sentence that says whether the payer may send the money again. They must not while another payment exists, or before the failure is final. */
function renderNextTry(page: Page, { blockNumber, why, wasSighted }: Extract<LookupAnswer, { code: 'failed' }>) {
  const { words, invoice } = page;
  const { say } = words;
  const state = stateOf(page);
  // A payment whose block was replaced usually reappears. But if it was this transaction, it reappeared and failed.
  const isOtherAwaited = state === 'replaced' && !wasSighted;
  if (state === 'seen' || state === 'paid' || isOtherAwaited) return html`<p>${say('failedOtherFound')}</p>`;
  if (STATES[state].pay === null) return null;
  // The reason already says what to do next, which isn't to send the money again.
  if (why === 'payer_frozen' || why === 'paused') return null;
  if (blockNumber > (invoice.solidNumber ?? 0)) {
    return html`<p>${say('failedNotFinal', { duration: words.duration(FINAL_AFTER_MS) })}</p>`;
  }
  return html`<p data-may-send>${say('failedMaySend')}</p>`;
}

function renderNoUsdt(
  { say }: Words,
  { moved, amountTrx, toAddress }: Extract<LookupAnswer, { code: 'no_usdt_transfer' }>,
  merchant: Html,
): Html {
  switch (moved) {
    case 'trx': {
      const amount = ltr(amountTrx ?? '');
      return toAddress ? say('answerTrxHere', { amount, merchant }) : say('answerTrxElsewhere', { amount });
    }
    case 'trc10':
    case 'other_token':
      return say('answerOtherMoved');
    case 'nothing':
    case 'unknown':
      return say('answerNothingMoved');
    default:
      return assertNever(moved);
  }
}
