import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import type { Node } from '../../src/core/chain/nodes/node.ts';
import type { Checkpoint, Member } from '../../src/core/chain/proof/checkpoints.ts';
import { AppError } from '../../src/core/domain/errors.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { type Block, blockAfter, blockJson, HONEST, type Mark, SLOT_MS } from './attack-chain.ts';

/** A producer's account, and the key with which it signs. */
export type Producer = (typeof HONEST)[number] & { signer: string };

/** Signs with the key of its own account. */
export const own = (key: (typeof HONEST)[number]): Producer => ({ ...key, signer: key.account });
/** Signs with the key of another account. */
export const signingWith = (key: (typeof HONEST)[number], other: (typeof HONEST)[number]): Producer => ({
  ...key,
  privateKey: other.privateKey,
  signer: other.account,
});

/** The height of the tests' checkpoints. */
export const FIRST = 1_000_000;
const FIRST_MS = 1_800_000_000_000;
/** A little fewer than between two votes. */
export const PERIOD_BLOCKS = 7000;
/** How many rounds before a requested block are made together with it, so that overlapping runs form one chain. */
const LINKED_ROUNDS = 6;

export type LongChain = ReturnType<typeof createLongChain>;

/**
 * Creates a chain of any length, of which only the blocks around requested ones are made. `producersAt` returns the producers by height.
 * With `base`, the blocks up to its height are those of that chain.
 */
export function createLongChain(
  blocks: number,
  producersAt: (number: number) => readonly Producer[],
  base?: { chain: { at(number: number): Block }; upTo: number },
) {
  const made = new Map<number, Block>();
  const head = FIRST + blocks;
  const linked = LINKED_ROUNDS * producersAt(head).length;
  const parentOf = (number: number): Mark => {
    const end = head - linked;
    const lowest = number > end ? end : number - linked;
    for (let before = number - 1; before >= lowest; before -= 1) {
      const known = base !== undefined && before <= base.upTo ? base.chain.at(before) : made.get(before);
      if (known === undefined) continue;
      let parent = known;
      while (parent.number < number - 1) parent = makeOn(parent);
      return parent;
    }
    let parent: Mark = {
      number: lowest,
      id: `${lowest.toString(16).padStart(16, '0')}${'ab'.repeat(24)}`,
      time: FIRST_MS + (lowest - FIRST) * SLOT_MS,
    };
    while (parent.number < number - 1) parent = makeOn(parent);
    return parent;
  };
  const at = (number: number): Block => {
    if (base !== undefined && number <= base.upTo) return base.chain.at(number);
    const known = made.get(number);
    if (known !== undefined) return known;
    return makeOn(parentOf(number));
  };
  const makeOn = (parent: Mark): Block => {
    const producers = producersAt(parent.number + 1);
    const producer = producers[(parent.number + 1) % producers.length];
    if (producer === undefined) throw new Error('no producers');
    const block = blockAfter(parent, producer);
    made.set(block.number, block);
    return block;
  };
  return {
    head,
    at,
    producers: () => producersAt(head),
    solid: () => at(head - 19),
    /** A little after its newest block. */
    now: () => unixMs(FIRST_MS + blocks * SLOT_MS + 300),
  };
}

export function checkpointOf(chain: LongChain, producers: readonly Producer[]): Checkpoint {
  const { number, id, time } = chain.at(FIRST);
  return { network: 'nile', number, id, time: unixMs(time), producers: membersOf(producers) };
}

export function membersOf(producers: readonly Producer[]): Member[] {
  return producers
    .map(({ account, signer }) => ({ account, signer: signer as Member['signer'] }))
    .sort((left, right) => (left.account < right.account ? -1 : 1));
}

/** A node's deviations from an honest one; `undefined` means the truth. They may change while a test runs. */
export type HeaderLies = {
  /** `null`: it doesn't have the block. `refuse`: no answer. */
  block?(number: number): Block | null | 'refuse' | undefined;
  producers?(): readonly Producer[];
};

export type HeaderNode = Node & { lies: HeaderLies; requests(): number };

/** Creates a node on the chain for the requests of a first start: block 0, headers, producers and their keys. */
export function createHeaderNode(name: string, chain: LongChain, lies: HeaderLies = {}): HeaderNode {
  let requests = 0;
  const node: HeaderNode = {
    ...{
      url: name,
      origin: name,
      operator: name,
      hasBytes: false,
      isOpenFor: () => false,
      setAside: () => undefined,
      requestsLeft: () => null,
      lies,
    },
    requests: () => requests,
    ask: async (question) => {
      // An answer is never immediate.
      await null;
      requests += 1;
      const { path, body, read } = question.http;
      const answer = answerOf(node.lies, chain, path, body);
      if (answer === 'refuse') throw new AppError('NODE_REFUSED', `${name} refuses`, { retryable: true });
      return read(answer);
    },
  };
  return node;
}

type Body = { id_or_num?: string; address?: string };

function answerOf(lies: HeaderLies, chain: LongChain, path: string, body: Body): object | 'refuse' {
  const producers = lies.producers?.() ?? chain.producers();
  if (path === '/wallet/listwitnesses') {
    return { witnesses: producers.map(({ account }) => ({ address: `41${account}`, isJobs: true })) };
  }
  if (path === '/wallet/getaccount') {
    const producer = producers.find(({ account }) => `41${account}` === body.address);
    if (producer === undefined || producer.signer === producer.account) return { address: body.address };
    return { address: body.address, witness_permission: { keys: [{ address: `41${producer.signer}` }] } };
  }
  if (body.id_or_num === '0') return { blockID: GENESIS_BLOCK_IDS.nile, block_header: { raw_data: {} } };
  const isSolid = path.startsWith('/walletsolidity');
  const number = Number(body.id_or_num ?? chain.solid().number);
  const reported = lies.block?.(number);
  if (reported === 'refuse') return 'refuse';
  const last = isSolid ? chain.solid().number : chain.head;
  const block = reported === undefined ? (number <= last ? chain.at(number) : null) : reported;
  return block === null ? {} : blockJson(block, false);
}

/** Returns the producers of each period: `replaced` of them leave at each vote, and new ones join. */
export function votedOut(
  keys: readonly (typeof HONEST)[number][],
  replaced: number,
  periodBlocks = PERIOD_BLOCKS,
  count = HONEST.length,
) {
  return (number: number): Producer[] => {
    const from = Math.max(0, Math.floor((number - FIRST) / periodBlocks)) * replaced;
    return keys.slice(from, from + count).map(own);
  };
}
