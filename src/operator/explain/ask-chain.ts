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
import type { Explanation } from './explanation.ts';
import { judgeAnswer, type Verdict } from './verdict.ts';

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

/**
 * Adds what the chain shows of a transaction that the ledger has nothing of: what the payer's page would say of it, as far as that
 * depends on no invoice. Asks each network that is configured here; that there is none, or that no node answers, is said.
 */
export async function askChain(
  deps: AskDeps | undefined,
  txId: string,
  projects: Actor['projects'],
  unknown: Explanation,
): Promise<Explanation> {
  const shown: ({ network: Network; answer: UnclaimedAnswer } & Verdict)[] = [];
  if (deps !== undefined) {
    for (const network of deps.networks) {
      const ask = (nodes: Nodes) => askNetwork(deps, nodes, txId, projects);
      const found = await deps.withNodes(network, ask).catch(ifNoSandbox);
      if (found !== null) shown.push(found);
    }
  }
  const none =
    'No node is configured for this command, so the chain was not asked. Run it with the settings of the service.';
  const isFound = shown.some(({ answer }) => answer.code !== 'not_found' && answer.code !== 'unavailable');
  return {
    ...unknown,
    verdict: [...unknown.verdict, ...(shown.length === 0 ? [none] : shown.flatMap(({ verdict }) => verdict))],
    subject: {
      ...unknown.subject,
      chain: shown.map(({ network, answer, verdict }) => ({ network, answer, says: verdict[0] })),
    },
    next: isFound ? shown.flatMap(({ next }) => next) : unknown.next,
  };
}

function ifNoSandbox(error: unknown): null {
  if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return null;
  throw error;
}

async function askNetwork({ log, describeForPayer }: AskDeps, nodes: Nodes, txId: string, projects: Actor['projects']) {
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
  const forPayer = answer.code === 'to_your_address' ? '' : describeForPayer(answer);
  const health = pool
    .health()
    .map(({ url, state, reason }) => `${url} is ${state}${reason === null ? '' : ` (${reason})`}`);
  return { network, answer, ...judgeAnswer({ network, answer, forPayer, solidNumber, nodes: health.join('; ') }) };
}

function accountsIn(facts: TransactionFacts): AccountHex[] {
  if (facts.kind !== 'done') return [];
  const { usdt, otherTokens, trx } = facts;
  return [...new Set([...usdt, ...otherTokens, ...(trx === null ? [] : [trx])].map(({ to }) => to))];
}
