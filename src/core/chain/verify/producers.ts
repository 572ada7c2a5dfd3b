import { type AccountHex, accountFromHex41, accountToAddress, parseAddress } from '@quittance/tron/address';
import { retryableError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { solidHeight, solidThreshold } from '../../domain/solidity.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { inGroups } from '../../runtime/concurrency.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import {
  confirmProducers,
  findBaseline,
  findProducerSets,
  insertProducerSet,
  type ProducerSet,
} from '../../store/chain/producer-sets.ts';
import type { Sql } from '../../store/db/database.ts';
import { type Node, ofDifferentOperators } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { accountAt, activeWitnesses } from '../nodes/questions.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import type { SolidHeader } from './read-block.ts';

/** The current set of producers, and earlier sets, whose members produced the older blocks. Newest first. */
export type KnownProducers = { newest: ProducerSet; earlier: readonly ProducerSet[] };

/** Votes are counted every 6 h, at 0, 6, 12 and 18 o'clock UTC (java-tron `MAINTENANCE_TIME_INTERVAL`). */
export const PERIOD_MS = 6 * 3_600_000;

/** How many earlier sets still count. More than one is needed, because a vote and key changes can follow each other within a few blocks. */
const EARLIER_SETS = 3;

/** Returns the producers in the database, or `null` before the first start. */
export async function loadProducers(db: Sql, network: Network): Promise<KnownProducers | null> {
  const [newest, ...earlier] = await findProducerSets(db, network, 1 + EARLIER_SETS);
  return newest === undefined ? null : { newest, earlier };
}

/** Whether a current or recent producer signed the block with the key that is known for it. */
export function isSignedBy({ newest, earlier }: KnownProducers, header: Signed): boolean {
  return [newest, ...earlier].some((set) => isMember(set, header));
}

type Signed = Pick<ProvenHeader, 'producer' | 'signer'>;

function isMember({ producers }: ProducerSet, { producer, signer }: Signed): boolean {
  return producers.some((member) => member.account === producer && member.signer === signer);
}

/** Like `isSignedBy`, but for a block that a node calls irreversible. Block 0 is recognised by its id. */
export function isKnownSolid(known: KnownProducers | null, solid: SolidHeader): boolean {
  return solid.producer === null || (known !== null && isSignedBy(known, solid));
}

/**
 * Returns the height up to which verified, linked blocks (in ascending order) are irreversible, or `null`. Enough members of one set must
 * have produced the blocks and signed them with their keys in that set. Members and keys of different sets aren't added up, so several
 * small changes give no more power than a single change. A member that signs with another key doesn't count.
 */
export function solidHeightBy(
  { newest, earlier }: KnownProducers,
  blocks: readonly (Signed & { number: number })[],
): number | null {
  const heights = [newest, ...earlier].flatMap((set) => {
    const voters = new Set(set.producers.map(({ account }) => account));
    const votes = blocks.filter((block) => isMember(set, block));
    return solidHeight(votes, voters, solidThreshold(set.producers.length)) ?? [];
  });
  return heights.length === 0 ? null : Math.max(...heights);
}

type ProducerDeps = { db: Sql; network: Network; agreement: number; pool: Pick<NodePool, 'report'> };

/**
 * Asks different operators' nodes for the current producers, and adopts the set that `agreement` of them report if a vote can have caused
 * the change. In each period, it accepts only so many new members that they can't decide anything on their own. The key of the producer
 * `suspect` is requested again; `clock` is this server's clock. Returns the set that is current afterwards. Errors: `NODES_DISAGREE`;
 * `NODE_REFUSED` if too few nodes answer.
 */
export async function refreshProducers(
  deps: ProducerDeps,
  nodes: readonly Node[],
  known: KnownProducers | null,
  { clock, suspect }: { clock: UnixMs; suspect: AccountHex | null },
): Promise<KnownProducers> {
  const { db, network } = deps;
  const { producers, origins } = await readAgreed(deps, nodes, known, suspect);
  if (known !== null && textOf(known.newest.producers) === textOf(producers)) {
    await confirmProducers(db, network, clock);
    return known;
  }
  await refuseUnlikely(db, network, producers, clock);
  const reason = known === null ? 'first' : isSameMembers(known.newest.producers, producers) ? 'key' : 'vote';
  await insertProducerSet(db, network, { chainTime: clock, reason, producers, nodes: origins });
  const adopted = await loadProducers(db, network);
  if (adopted === null) throw new Error(`the ${network} producers were not stored`);
  return adopted;
}

/**
 * Returns the producers that the nodes agree on, for a caller that doesn't know any yet or accepts any change. Stores nothing. Errors: as
 * for `refreshProducers`.
 */
export async function nameProducers(
  deps: ProducerDeps,
  nodes: readonly Node[],
  { clock, reason }: { clock: UnixMs; reason: ProducerSet['reason'] },
): Promise<ProducerSet> {
  const { producers, origins } = await readAgreed(deps, nodes, null, null);
  return { chainTime: clock, reason, producers, nodes: origins };
}

/**
 * Returns the producers that `agreement` operators report. Asks the preferred nodes first, and then more nodes as long as the answers
 * differ or fail. A node that reports different producers is paused.
 */
async function readAgreed(
  { agreement, pool }: ProducerDeps,
  nodes: readonly Node[],
  known: KnownProducers | null,
  suspect: AccountHex | null,
): Promise<{ producers: ProducerSet['producers']; origins: string[] }> {
  const candidates = ofDifferentOperators(nodes, nodes.length);
  const answers: { node: Node; producers: ProducerSet['producers'] }[] = [];
  const failed: string[] = [];
  for (let asked = 0; asked < candidates.length; ) {
    const group = candidates.slice(asked, asked === 0 ? agreement : asked + 1);
    asked += group.length;
    const settled = await Promise.allSettled(group.map((node) => readProducers(node, known?.newest ?? null, suspect)));
    for (const [index, answer] of settled.entries()) {
      const node = group[index];
      if (node === undefined) continue;
      if (answer.status === 'fulfilled') answers.push({ node, producers: answer.value });
      else {
        const reason = reasonOf(answer.reason);
        failed.push(reason);
        pool.report(node, 'incomplete', reason);
      }
    }
    for (const { producers } of answers) {
      const same = answers.filter((each) => textOf(each.producers) === textOf(producers));
      if (same.length < agreement) continue;
      const odd = answers.filter((each) => !same.includes(each));
      for (const { node } of odd) pool.report(node, 'disagrees', 'it names different producers than the other nodes');
      return { producers, origins: same.map(({ node }) => node.origin) };
    }
  }
  if (answers.length >= agreement) {
    throw disagree(`${answers.map(({ node }) => node.origin).join(' and ')} name different producers`);
  }
  const why = failed.length === 0 ? '' : `: ${failed.join('; ')}`;
  throw retryableError(
    'NO_NODE',
    `${agreement} operators must name the producers, but only ${answers.length} did${why}`,
  );
}

function textOf(producers: ProducerSet['producers']): string {
  return producers.map(({ account, signer }) => `${account} ${signer}`).join();
}

/**
 * Refuses a set that contains more new keys than votes can have added since the last period's set. A known member with a new key counts as
 * new. `now` is this server's clock, because nodes can claim any time.
 */
async function refuseUnlikely(db: Sql, network: Network, producers: ProducerSet['producers'], now: UnixMs) {
  const period = Math.floor(now / PERIOD_MS);
  const before = await findBaseline(db, network, unixMs(period * PERIOD_MS));
  if (before === null) return;
  const pairOf = ({ account, signer }: ProducerSet['producers'][number]) => `${account} ${signer}`;
  const old = new Set(before.producers.map(pairOf));
  const added = producers.filter((producer) => !old.has(pairOf(producer))).length;
  // The periods are counted from the last confirmation of the set, not from its adoption, because a set that was current an hour ago can't
  // be a week of changes behind.
  const periods = Math.max(1, period - Math.floor(before.confirmedAt / PERIOD_MS));
  const size = before.producers.length;
  const bound = Math.max(1, size - solidThreshold(size)) * periods;
  // With fewer producers, fewer votes would be enough, but the network has always had 27.
  if (added <= bound && producers.length >= size) return;
  throw disagree(
    `the nodes report ${producers.length} producers. Since ${toIso(before.confirmedAt)}, ${added} of them are new or sign with a new key, but at most ${bound} can be. ` +
      'If the network really changed this much, accept its producers with: quittance chain producers --accept --yes',
  );
}

function isSameMembers(left: ProducerSet['producers'], right: ProducerSet['producers']): boolean {
  const members = (set: ProducerSet['producers']) => set.map(({ account }) => account).join();
  return members(left) === members(right);
}

const disagree = (message: string) => retryableError('NODES_DISAGREE', message);

/** Maximum number of concurrent `getaccount` calls. */
const PARALLEL_ACCOUNTS = 4;
/** The network has 27 super representatives. A private one may have fewer. */
const MAX_PRODUCERS = 27;

/** Returns the active producers from `listwitnesses`, each with its signing key, sorted by account. */
async function readProducers(
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

/** If there's no witness permission, the account's own key signs. */
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
  throw refused(`${JSON.stringify(address)?.slice(0, 80)} is not a producer address`);
}

const refused = (message: string) => retryableError('NODE_REFUSED', message);
