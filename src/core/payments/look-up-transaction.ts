import { answerLookup, type LookupAnswer, type LookupInvoice, type TransactionFacts } from '../domain/lookup/lookup.ts';
import { readTransactionReference } from '../domain/lookup/pasted.ts';
import type { Network } from '../domain/network.ts';
import type { Sql } from '../store/db/database.ts';
import { findLookup, requestClaim } from '../store/ledger/lookup.ts';

export type TransactionQuestion = {
  txId: string;
  /** The checkout token from the payer's link. */
  askedFor: string;
  /** The network of the client that is asking. */
  client: string;
} & Pick<LookupInvoice, 'solidNumber' | 'head'>;

/** Reads a transaction from the chain. Never rejects. */
export type ReadTransaction = (question: TransactionQuestion) => Promise<TransactionFacts>;

export type LookUpDeps = {
  db: Sql;
  /** One reader for each network whose nodes are configured in this process. */
  readTransaction: Partial<Record<Network, ReadTransaction>>;
};

/**
 * Compares the transaction that a payer pasted with a checkout link's invoice. Returns `null` if the link doesn't exist. The ledger is
 * checked first, but only for transfers that belong to this invoice, because no other transfer may be revealed. Throws
 * `DATABASE_UNAVAILABLE`.
 */
export async function lookUpTransaction(
  { db, readTransaction }: LookUpDeps,
  checkoutToken: string,
  pasted: string,
  client: string,
): Promise<LookupAnswer | null> {
  const reference = readTransactionReference(pasted);
  const txId = reference.kind === 'id' ? reference.txId : null;
  const found = await findLookup(db, checkoutToken, txId);
  if (found === null) return null;
  if (reference.kind === 'not-tron') return { code: 'not_tron', looksLike: reference.looksLike };
  if (reference.kind === 'none') {
    return { code: 'not_a_transaction_id', looksLike: reference.looksLike, characters: reference.characters };
  }
  const { invoice, network, ledger } = found;
  if (ledger !== null) return answerLookup(invoice, ledger);
  if (reference.linkTo !== null && reference.linkTo !== network && network !== 'devnet') {
    return { code: 'other_network', network: reference.linkTo };
  }
  const { solidNumber, head } = invoice;
  const read = readTransaction[network];
  const question = { txId: reference.txId, askedFor: checkoutToken, client, solidNumber, head };
  const facts = read === undefined ? ({ kind: 'unavailable', why: 'for-now' } as const) : await read(question);
  const answer = answerLookup(invoice, facts);
  if (answer.code === 'short' || answer.code === 'over') await requestClaim(db, checkoutToken, reference.txId);
  return answer;
}
