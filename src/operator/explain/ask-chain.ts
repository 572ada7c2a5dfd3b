import type { NodePool } from '../../chain/nodes/node-pool.ts';
import { createTransactionReader, type TransactionReaderDeps } from '../../chain/verify/transaction-reader.ts';
import { AppError } from '../../domain/errors.ts';
import { answerUnclaimed, type GeneralAnswer, type UnclaimedAnswer } from '../../domain/lookup/lookup.ts';
import type { TransactionFacts } from '../../domain/lookup/transaction-facts.ts';
import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { findPause } from '../../store/chain/contract-states.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import { findAddresses } from '../../store/ledger/addresses.ts';
import { type AccountHex, accountToAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import type { Transaction } from './describe-transaction.ts';
import type { Explanation, Step } from './explanation.ts';

/** The nodes of one network. */
type Nodes = Omit<TransactionReaderDeps, 'log' | 'spend' | 'pool'> & { pool: NodePool };

export type AskDeps = {
  /** Those whose nodes can be asked. */
  networks: readonly Network[];
  /** Runs work with the nodes of a network. Error: `SANDBOX_NOT_RUNNING`. */
  withNodes<Output>(network: Network, work: (nodes: Nodes) => Promise<Output>): Promise<Output>;
  log: Logger;
  /** The words of the payer's page. */
  describeForPayer(answer: GeneralAnswer): string;
};

/** The nodes' answer about a transaction on a network, and the same in words. */
type Shown = { network: Network; answer: UnclaimedAnswer; says: string; next?: Step };

/**
 * Adds what the chain shows of a transaction that the ledger has nothing of: what the payer's page would say of it, as far as that
 * depends on no invoice. Asks each network that is configured here; that there is none, or that no node answers, is said.
 */
export async function askChain(
  deps: AskDeps | undefined,
  { txId }: Transaction,
  projects: Actor['projects'],
  unknown: Explanation,
): Promise<Explanation> {
  const shown: Shown[] = [];
  if (deps !== undefined) {
    for (const network of deps.networks) {
      const ask = (nodes: Nodes) => askNetwork(deps, nodes, txId, projects);
      const found = await deps.withNodes(network, ask).catch(ifNoSandbox);
      if (found !== null) shown.push(found);
    }
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

function ifNoSandbox(error: unknown): null {
  if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return null;
  throw error;
}

async function askNetwork(
  { log, describeForPayer }: AskDeps,
  nodes: Nodes,
  txId: string,
  projects: Actor['projects'],
): Promise<Shown> {
  const { db, network, pool } = nodes;
  const cursor = await findCursor(db, network);
  const read = createTransactionReader({ ...nodes, log, spend: () => true });
  const solidNumber = cursor?.solid.number ?? null;
  const facts = await read({ txId, askedFor: 'explain', client: 'operator', solidNumber, head: cursor?.head ?? null });
  const ours = await findAddresses(db, network, accountsIn(facts));
  const known = ours.filter((each) => projects === null || projects.includes(each.projectId));
  const addresses = new Set(known.map(({ address }) => address));
  const isPaused = (await findPause(db, network))?.pauseState != null;
  const answer = answerUnclaimed(facts, (account) => addresses.has(accountToAddress(account)), isPaused);
  if (answer.code === 'to_your_address') return { network, answer, ...describeOurs(network, answer, solidNumber) };
  const place = 'blockNumber' in answer ? `in block ${answer.blockNumber} of ${answer.blockTime}` : 'asked just now';
  const why =
    answer.code === 'unavailable'
      ? ` No node of it gave an answer: ${pool.health().map(describeNode).join('; ')}.`
      : '';
  return { network, answer, says: `On ${network}, ${place}, for a payer: ${describeForPayer(answer)}${why}` };
}

function accountsIn(facts: TransactionFacts): AccountHex[] {
  if (facts.kind !== 'done') return [];
  const { usdt, otherTokens, trx } = facts;
  return [...new Set([...usdt, ...otherTokens, ...(trx === null ? [] : [trx])].map(({ to }) => to))];
}

type Ours = Extract<UnclaimedAnswer, { code: 'to_your_address' }>;

/** It came here, and the ledger has nothing of it: either its block is not recorded yet, or the ledger missed it. */
function describeOurs(network: Network, { to, amount, blockNumber, blockTime }: Ours, solidNumber: number | null) {
  const came = `On ${network}, in block ${blockNumber} of ${blockTime}, ${amount} USDT came to your address ${to}`;
  if (solidNumber === null || blockNumber > solidNumber) {
    const stand = solidNumber === null ? 'no block is recorded yet' : `the ledger stands at block ${solidNumber}`;
    const next = {
      says: 'wait until its block is recorded, and ask again; what keeps it is told by',
      hint: { command: 'chain status' },
    };
    return { says: `${came}, in a block that is not recorded yet: ${stand}.`, next };
  }
  const says = `${came}, in a block that is recorded, and the ledger does not have it: perhaps the address was added later.`;
  const block = String(blockNumber);
  return {
    says,
    next: { says: 'read its block again', hint: { command: 'chain rescan', input: { from: block, to: block } } },
  };
}

function describeNode({ url, state, reason }: ReturnType<NodePool['health']>[number]): string {
  return `${url} is ${state}${reason === null ? '' : ` (${reason})`}`;
}
