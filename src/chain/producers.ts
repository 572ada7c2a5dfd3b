import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import { solidThreshold } from '../domain/solidity.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import type { Sql } from '../store/database.ts';
import {
  findFirstProducerSet,
  findProducerSetBefore,
  findProducerSets,
  insertProducerSet,
  type ProducerSet,
} from '../store/producer-sets.ts';
import { type AccountHex, accountFromHex41, accountToAddress, parseAddress } from '../tron/address.ts';
import type { Node } from './node-member.ts';
import type { ProvenHeader } from './prove-block.ts';

/** The sets in force: the newest, and the one before it, whose members made the blocks of before. */
export type KnownProducers = { newest: ProducerSet; previous: ProducerSet | null };

/** Votes are counted every 6 h, at 0, 6, 12 and 18 o'clock UTC (java-tron `MAINTENANCE_TIME_INTERVAL`). */
export const PERIOD_MS = 6 * 3_600_000;
/** `getaccount` calls that run at the same time. */
const PARALLEL_ACCOUNTS = 4;
/** The network has 27 super representatives; a private one may have fewer. */
const MAX_PRODUCERS = 27;

/** The producers that the database knows, or `null` before the first start. */
export async function loadProducers(db: Sql, network: Network): Promise<KnownProducers | null> {
  const [newest, previous] = await findProducerSets(db, network, 2);
  return newest === undefined ? null : { newest, previous: previous ?? null };
}

/** Whether a producer that may make this block signed it: with its key of now, or with one of before for a block of before. */
export function isSignedBy({ newest, previous }: KnownProducers, header: ProvenHeader): boolean {
  const isIn = (set: ProducerSet) =>
    set.producers.some(({ account, signer }) => account === header.producer && signer === header.signer);
  return isIn(newest) || (previous !== null && header.time <= newest.chainTime && isIn(previous));
}

/** Whose blocks count for irreversibility, and how many of them are needed: those of now, and while a change is recent of before. */
export function votersOf({ newest, previous }: KnownProducers): { voters: Set<AccountHex>; threshold: number } {
  const voters = [...newest.producers, ...(previous?.producers ?? [])].map(({ account }) => account);
  return { voters: new Set(voters), threshold: solidThreshold(newest.producers.length) };
}

/**
 * Asks nodes of `agreement` different operators for the producers of now, and takes the answer over where they agree and the
 * change is one that a vote can make: at most as many new members in a period as cannot decide alone. `suspects` are
 * producers whose keys are asked for anew; `clock` is our own. Returns what is in force then. Errors: `NODES_DISAGREE`, `NODE_REFUSED`.
 */
export async function refreshProducers(
  { db, network, agreement }: { db: Sql; network: Network; agreement: number },
  nodes: readonly Node[],
  known: KnownProducers | null,
  { chainTime, clock, suspects }: { chainTime: UnixMs; clock: UnixMs; suspects: ReadonlySet<AccountHex> },
): Promise<KnownProducers> {
  const told = await Promise.all(nodes.map((node) => readProducers(node, known, suspects)));
  const producers = told[0];
  const nodesText = nodes.map(({ origin }) => origin);
  if (producers === undefined || nodes.length < agreement) {
    throw disagree(
      `${agreement} nodes of different operators must tell the producers, and only ${nodes.length} answer`,
    );
  }
  if (told.some((each) => JSON.stringify(each) !== JSON.stringify(producers))) {
    throw disagree(`${nodesText.join(' and ')} name different producers`);
  }
  if (known !== null && JSON.stringify(known.newest.producers) === JSON.stringify(producers)) return known;
  const now = unixMs(Math.min(chainTime, clock));
  await refuseUnlikely(db, network, producers, now);
  const reason = known === null ? 'first' : isSameMembers(known.newest.producers, producers) ? 'key' : 'vote';
  const adopted: ProducerSet = { chainTime, reason, producers, nodes: nodes.map(({ origin }) => origin) };
  await insertProducerSet(db, network, adopted);
  return { newest: adopted, previous: known?.newest ?? null };
}

/** Takes over what the nodes agree on, however much it differs: the operator knows that the network changed. Errors as above. */
export async function acceptProducers(
  { db, network, agreement }: { db: Sql; network: Network; agreement: number },
  nodes: readonly Node[],
  chainTime: UnixMs,
): Promise<ProducerSet> {
  const producers = await readAgreed(nodes, agreement, null, new Set());
  const adopted: ProducerSet = { chainTime, reason: 'operator', producers, nodes: nodes.map(({ origin }) => origin) };
  await insertProducerSet(db, network, adopted);
  return adopted;
}

/** The producers that all of the nodes name, which are of `agreement` operators. */
async function readAgreed(
  nodes: readonly Node[],
  agreement: number,
  known: KnownProducers | null,
  suspects: ReadonlySet<AccountHex>,
): Promise<ProducerSet['producers']> {
  const [producers, ...others] = await Promise.all(nodes.map((node) => readProducers(node, known, suspects)));
  if (producers === undefined || nodes.length < agreement) {
    throw disagree(
      `${agreement} nodes of different operators must tell the producers, and only ${nodes.length} answer`,
    );
  }
  if (others.some((each) => JSON.stringify(each) !== JSON.stringify(producers))) {
    throw disagree(`${nodes.map(({ origin }) => origin).join(' and ')} name different producers`);
  }
  return producers;
}

/**
 * Refuses a set that decides by more new keys than votes can bring in the time since the last period's set. A member that
 * signs with another key is as new as another member. `now` bounds what a node can claim the chain's time to be.
 */
async function refuseUnlikely(db: Sql, network: Network, producers: ProducerSet['producers'], now: UnixMs) {
  const period = Math.floor(now / PERIOD_MS);
  const before =
    (await findProducerSetBefore(db, network, unixMs(period * PERIOD_MS))) ?? (await findFirstProducerSet(db, network));
  if (before === null) return;
  const pairOf = ({ account, signer }: ProducerSet['producers'][number]) => `${account} ${signer}`;
  const old = new Set(before.producers.map(pairOf));
  const added = producers.filter((producer) => !old.has(pairOf(producer))).length;
  const periods = Math.max(1, period - Math.floor(before.chainTime / PERIOD_MS));
  const bound = Math.max(1, producers.length - solidThreshold(producers.length)) * periods;
  if (added <= bound && producers.length >= solidThreshold(before.producers.length)) return;
  throw disagree(
    `the nodes name ${producers.length} producers of which ${added} are new, or sign with a new key, since ${toIso(before.chainTime)}, and at most ${bound} can be; ` +
      'if the network really changed so much, accept its producers with: quittance chain producers --accept --yes',
  );
}

function isSameMembers(left: ProducerSet['producers'], right: ProducerSet['producers']): boolean {
  const members = (set: ProducerSet['producers']) => set.map(({ account }) => account).join();
  return members(left) === members(right);
}

/** The active producers by `listwitnesses`, each with the key that signs for it, ordered by account. */
async function readProducers(
  node: Node,
  known: KnownProducers | null,
  suspects: ReadonlySet<AccountHex>,
): Promise<ProducerSet['producers']> {
  // {"witnesses":[{"address":"41b2f713…94ba","voteCount":…,"isJobs":true}, …]}; `isJobs` is left out where it is false.
  const answer = (await node.post('/wallet/listwitnesses', {})) as { witnesses?: unknown };
  const witnesses = Array.isArray(answer.witnesses)
    ? (answer.witnesses as { address?: unknown; isJobs?: unknown }[])
    : [];
  const accounts = witnesses.filter((witness) => witness?.isJobs === true).map(({ address }) => readAccount(address));
  if (accounts.length < 1 || accounts.length > MAX_PRODUCERS || new Set(accounts).size !== accounts.length) {
    throw refused(`${node.origin} names ${accounts.length} active producers`);
  }
  const cached = new Map(known?.newest.producers.map(({ account, signer }) => [account, signer]));
  const producers: { account: AccountHex; signer: AccountHex }[] = [];
  for (let start = 0; start < accounts.length; start += PARALLEL_ACCOUNTS) {
    const group = accounts.slice(start, start + PARALLEL_ACCOUNTS).map(async (account) => {
      const signer = suspects.has(account) ? undefined : cached.get(account);
      return { account, signer: signer ?? (await readSigner(node, account)) };
    });
    producers.push(...(await Promise.all(group)));
  }
  return producers.sort((left, right) => (left.account < right.account ? -1 : 1));
}

/** `{"address":"41…","witness_permission":{"type":"Witness","keys":[{"address":"41…","weight":1}]}, …}`; without one, the account's own key. */
async function readSigner(node: Node, account: AccountHex): Promise<AccountHex> {
  const answer = (await node.post('/wallet/getaccount', { address: `41${account}` })) as {
    address?: unknown;
    witness_permission?: { keys?: { address?: unknown }[] };
  };
  if (answer.address === undefined)
    throw refused(`${node.origin} does not know the producer ${accountToAddress(account)}`);
  const keys = answer.witness_permission?.keys;
  return Array.isArray(keys) && keys.length > 0 ? readAccount(keys[0]?.address) : account;
}

function readAccount(address: unknown): AccountHex {
  const account = typeof address === 'string' ? accountFromHex41(address) : null;
  if (account !== null) return account;
  const parsed = typeof address === 'string' ? parseAddress(address) : null;
  if (parsed?.kind === 'ok') return parsed.account;
  throw refused(`${JSON.stringify(address)?.slice(0, 80)} is not the address of a producer`);
}

function disagree(message: string): AppError {
  return new AppError('NODES_DISAGREE', message, { retryable: true });
}

function refused(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}
