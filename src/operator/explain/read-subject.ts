import { isCheckoutToken } from '../../domain/checkout-token.ts';
import { decodeId } from '../../domain/ids.ts';
import { readTransactionReference } from '../../domain/lookup/transaction-reference.ts';
import { say, type Text } from '../../domain/message.ts';
import { type AccountHex, parseAddress, type TronAddress } from '../../tron/address.ts';

/**
 * The forms of a text that names something. Anything can be an external id, so a caller who finds nothing under the form of the
 * text looks for an external id; `text` is the given text.
 */
export type Subject = { text: string } & (
  | { form: 'invoice'; id: string }
  | { form: 'transaction'; txId: string; hasEthereumPrefix: boolean }
  | { form: 'checkout'; token: string }
  | { form: 'event'; id: string }
  | { form: 'address'; address: TronAddress; account: AccountHex }
  /** `hint` says what the text may have been meant to be. */
  | { form: 'external-id'; hint: Text | null }
);

/** An explorer's page of an address: https://tronscan.org/#/address/T… */
const ADDRESS_LINK = /^https?:\/\/[^\s/]+\/(?:\S*\/)?address\/([0-9A-Za-z]+)/i;

/** The link that a payer pays by: https://pay.example.com/c/JNLz4ctfh2r9UKkyGMbYTd */
const CHECKOUT_LINK = /^https?:\/\/[^\s/]+\/(?:\S*\/)?c\/([0-9A-Za-z]{16,22})(?:[/?#]\S*)?$/;

/** Recognises the form of what an operator asks about. `id` is a UUID, `txId` 64 lower-case hex characters. */
export function readSubject(text: string): Subject {
  const trimmed = text.trim();
  const id = decodeId('inv', trimmed.toLowerCase());
  if (id !== null) return { text, form: 'invoice', id };
  const transaction = readTransactionReference(trimmed);
  if (transaction.kind === 'id') {
    return { text, form: 'transaction', txId: transaction.txId, hasEthereumPrefix: transaction.hasPrefix };
  }
  const eventId = decodeId('evt', trimmed.toLowerCase());
  if (eventId !== null) return { text, form: 'event', id: eventId };
  const token = CHECKOUT_LINK.exec(trimmed)?.[1] ?? (isCheckoutToken(trimmed) ? trimmed : undefined);
  if (token !== undefined) return { text, form: 'checkout', token };
  const word = ADDRESS_LINK.exec(trimmed)?.[1] ?? trimmed;
  const parsed = parseAddress(word);
  if (parsed.kind === 'ok') return { text, form: 'address', address: parsed.address, account: parsed.account };
  return { text, form: 'external-id', hint: hintOf(word, parsed.reason) };
}

function hintOf(word: string, reasonOfAddress: string): Text | null {
  if (/^trf_/i.test(word)) return say`a transfer is told by "${{ command: 'transfers show' }}"`;
  if (/^inv_/i.test(word))
    return 'an invoice id is "inv_" and 26 characters, as the API gave it: one is wrong or missing';
  if (/^(0x)?[0-9a-f]{40,100}$/i.test(word) && !/^(0x|41)?[0-9a-f]{40}$/i.test(word)) {
    return `a transaction id has 64 characters of 0-9 and a-f, this has ${word.replace(/^0x/i, '').length}`;
  }
  if (/^(T[0-9A-Za-z]{29,40}|(0x|41)?[0-9a-f]{40})$/i.test(word)) return `as an address: ${reasonOfAddress}`;
  return null;
}
