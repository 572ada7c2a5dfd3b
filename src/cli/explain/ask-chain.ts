import { createTransactionReader } from '../../chain/transaction-reader.ts';
import { renderGeneral } from '../../checkout/answer.ts';
import { wordsOf } from '../../checkout/words.ts';
import type { Config } from '../../config.ts';
import { AppError } from '../../domain/errors.ts';
import { answerUnclaimed, type UnclaimedAnswer } from '../../domain/lookup.ts';
import type { Network } from '../../domain/network.ts';
import type { TransactionFacts } from '../../domain/transaction-facts.ts';
import { createLogger } from '../../runtime/log.ts';
import { findAddresses } from '../../store/addresses.ts';
import { findCursor } from '../../store/chain-cursor.ts';
import { type AccountHex, accountToAddress } from '../../tron/address.ts';
import { html, plainText } from '../../web/html.ts';
import type { Terminal } from '../terminal.ts';
import type { CommandDatabase } from '../with-database.ts';
import { type NodeCommand, usingNodes } from '../with-nodes.ts';
import type { Transaction } from './describe-transaction.ts';
import type { Explanation } from './explanation.ts';

/** What the nodes of a network show of a transaction, and that in words. */
type Shown = { network: Network; answer: UnclaimedAnswer; says: string; next: string | null };

/**
 * Adds what the chain shows of a transaction that the ledger has nothing of: what the payer's page would say of it, as far as that
 * depends on no invoice. Asks each network that is configured here; that there is none, or that no node answers, is said.
 */
export async function askChain(
  terminal: Pick<Terminal, 'stderr'>,
  database: Pick<CommandDatabase, 'db' | 'config'>,
  { txId }: Transaction,
  projectId: string | null,
  unknown: Explanation,
): Promise<Explanation> {
  const shown: Shown[] = [];
  for (const network of networksOf(database.config)) {
    const ask = (deps: NodeCommand) => askNetwork(terminal, deps, txId, projectId);
    const found = await usingNodes(terminal, database, network, ask).catch(ifNoSandbox);
    if (found !== null) shown.push(found);
  }
  const none =
    'No node is configured for this command, so the chain was not asked: give it the settings of the service.';
  const isFound = shown.some(({ answer }) => answer.code !== 'not_found' && answer.code !== 'unavailable');
  return {
    ...unknown,
    verdict: [...unknown.verdict, ...(shown.length === 0 ? [none] : shown.map(({ says }) => says))],
    subject: { ...unknown.subject, chain: shown.map(({ network, answer, says }) => ({ network, answer, says })) },
    next: isFound ? shown.flatMap(({ next }) => next ?? []) : unknown.next,
  };
}

/** Without any that is configured it is the sandbox's. */
function networksOf(config: Config): Network[] {
  return config.sandbox ? ['devnet'] : (Object.keys(config.networks) as Network[]);
}

function ifNoSandbox(error: unknown): null {
  if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return null;
  throw error;
}

async function askNetwork(
  { stderr }: Pick<Terminal, 'stderr'>,
  deps: NodeCommand,
  txId: string,
  projectId: string | null,
): Promise<Shown> {
  const { db, network, pool } = deps;
  const cursor = await findCursor(db, network);
  // Who asks here pays for the requests, and why a node gave no answer is said in the answer.
  const log = createLogger({ level: 'error', destination: stderr });
  const read = createTransactionReader({ ...deps, log, spend: () => true });
  const solidNumber = cursor?.solid.number ?? null;
  const facts = await read({ txId, askedFor: 'explain', solidNumber, head: cursor?.head ?? null });
  const ours = await findAddresses(db, network, accountsIn(facts));
  const known = ours.filter((each) => projectId === null || each.project_id === projectId);
  const addresses = new Set(known.map(({ address }) => address));
  const answer = answerUnclaimed(facts, (account) => addresses.has(accountToAddress(account)));
  if (answer.code === 'to_your_address') return { network, answer, ...tellOurs(network, answer, solidNumber) };
  const payer = plainText(renderGeneral(wordsOf('en'), html`the merchant`, answer));
  const place = 'blockNumber' in answer ? `in block ${answer.blockNumber} of ${answer.blockTime}` : 'asked just now';
  const why =
    answer.code === 'unavailable'
      ? ` No node of it gave an answer: ${pool.health().map(describeNode).join('; ')}.`
      : '';
  return { network, answer, says: `On ${network}, ${place}, for a payer: ${payer}${why}`, next: null };
}

function accountsIn(facts: TransactionFacts): AccountHex[] {
  if (facts.kind !== 'done') return [];
  const { usdt, otherTokens, trx } = facts;
  return [...new Set([...usdt, ...otherTokens, ...(trx === null ? [] : [trx])].map(({ to }) => to))];
}

type Ours = Extract<UnclaimedAnswer, { code: 'to_your_address' }>;

/** It came here, and the ledger has nothing of it: either its block is not recorded yet, or the ledger missed it. */
function tellOurs(network: Network, { to, amount, blockNumber, blockTime }: Ours, solidNumber: number | null) {
  const came = `On ${network}, in block ${blockNumber} of ${blockTime}, ${amount} USDT came to your address ${to}`;
  if (solidNumber === null || blockNumber > solidNumber) {
    const stand = solidNumber === null ? 'no block is recorded yet' : `the ledger stands at block ${solidNumber}`;
    const next = 'wait until its block is recorded, and ask again; what keeps it is told by: quittance chain status';
    return { says: `${came}, in a block that is not recorded yet: ${stand}.`, next };
  }
  const says = `${came}, in a block that is recorded, and the ledger does not have it: perhaps the address was added later.`;
  return { says, next: `read its block again: quittance chain rescan --from ${blockNumber} --to ${blockNumber}` };
}

function describeNode({ url, state, reason }: ReturnType<NodeCommand['pool']['health']>[number]): string {
  return `${url} is ${state}${reason === null ? '' : ` (${reason})`}`;
}
