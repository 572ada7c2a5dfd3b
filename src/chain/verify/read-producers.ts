import { AppError } from '../../domain/errors.ts';
import { inGroups } from '../../runtime/in-groups.ts';
import type { ProducerSet } from '../../store/chain/producer-sets.ts';
import { type AccountHex, accountFromHex41, accountToAddress, parseAddress } from '../../tron/address.ts';
import { accountAt, activeWitnesses } from '../nodes/ask-accounts.ts';
import type { Node } from '../nodes/node.ts';

/** `getaccount` calls that run at the same time. */
const PARALLEL_ACCOUNTS = 4;
/** The network has 27 super representatives; a private one may have fewer. */
const MAX_PRODUCERS = 27;

/** The active producers by `listwitnesses`, each with the key that signs for it, ordered by account. */
export async function readProducers(
  node: Node,
  known: ProducerSet | null,
  suspect: AccountHex | null,
): Promise<ProducerSet['producers']> {
  const accounts = (await node.ask(activeWitnesses())).map(readAccount);
  if (accounts.length < 1 || accounts.length > MAX_PRODUCERS || new Set(accounts).size !== accounts.length) {
    throw refused(`${node.origin} names ${accounts.length} active producers`);
  }
  const cached = new Map(known?.producers.map(({ account, signer }) => [account, signer]));
  const producers = await inGroups(accounts, PARALLEL_ACCOUNTS, async (account) => {
    const signer = account === suspect ? undefined : cached.get(account);
    return { account, signer: signer ?? (await readSigner(node, account)) };
  });
  return producers.sort((left, right) => (left.account < right.account ? -1 : 1));
}

/** Without a witness permission it is the account's own key. */
async function readSigner(node: Node, account: AccountHex): Promise<AccountHex> {
  const known = await node.ask(accountAt(account));
  if (known === null) throw refused(`${node.origin} does not know the producer ${accountToAddress(account)}`);
  return known.witnessKey === undefined ? account : readAccount(known.witnessKey);
}

function readAccount(address: unknown): AccountHex {
  const account = typeof address === 'string' ? accountFromHex41(address) : null;
  if (account !== null) return account;
  const parsed = typeof address === 'string' ? parseAddress(address) : null;
  if (parsed?.kind === 'ok') return parsed.account;
  throw refused(`${JSON.stringify(address)?.slice(0, 80)} is not the address of a producer`);
}

function refused(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}
