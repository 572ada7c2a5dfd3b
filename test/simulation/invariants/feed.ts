import type { Truth } from '../truth.ts';

/** What a world has already passed on: blocks up to a height, accounts, and the number of entries of its lists. */
type Told = {
  blocks: number;
  accounts: ReadonlySet<string>;
  knownAccounts: number;
  acknowledged: number;
  appearances: number;
};

const toldOf = new WeakMap<Truth['chain'], Told>();

/** Accounts may appear while others are fed, but not endlessly: a world has a few dozen. */
const MAX_ROUNDS = 5;

/** Passes news of the chain and of the callers to the witness schema in the database, so that queries can compare. */
export async function feed(truth: Truth): Promise<void> {
  let unknown: string[] = [];
  for (let round = 1; ; round += 1) {
    const { news, reported } = newsOf(truth, unknown);
    const rows = await truth.query('select account from witness.feed($1) as account', [JSON.stringify(news)]);
    toldOf.set(truth.chain, reported);
    if (rows.length === 0) return;
    if (round === MAX_ROUNDS)
      throw new Error(`addresses that the world does not know keep appearing: ${rows.length} now`);
    unknown = rows.map(({ account }) => String(account));
  }
}

/** Returns the news, and the state after passing them on. `unknown` are accounts in the books that weren't passed on. */
function newsOf(truth: Truth, unknown: readonly string[]) {
  const { chain } = truth;
  const before = toldOf.get(chain) ?? {
    // From genesis, because a process that starts on a young chain may begin there.
    blocks: -1,
    accounts: new Set<string>(),
    knownAccounts: 0,
    acknowledged: 0,
    appearances: 0,
  };
  const solid = chain.solidNumber();
  const known = truth.accounts.slice(before.knownAccounts);
  const added = new Set(
    [...known.map(({ account }) => String(account)), ...unknown].filter((each) => !before.accounts.has(each)),
  );
  const acknowledged = truth.acknowledged.slice(before.acknowledged);
  const blind = truth.blindSpans.at(-1);
  return {
    news: {
      solid,
      head: chain.headNumber(),
      now: truth.nowMs(),
      calm: truth.calmSinceMs(),
      slot: chain.slotMs,
      blind: blind === undefined || blind.toMs !== null ? null : blind.fromMs,
      blocks: blocksBetween(truth, before.blocks + 1, solid),
      branch: blocksBetween(truth, solid + 1, chain.headNumber()),
      accounts: [
        ...known.map(({ account, headNumber }) => [account, headNumber]),
        ...unknown.map((account) => [account, null]),
      ],
      transfers: [
        ...(solid > before.blocks ? transfersOf(truth, before.accounts, { after: before.blocks, upTo: solid }) : []),
        ...(added.size > 0 ? transfersOf(truth, added, { after: chain.startNumber, upTo: solid }) : []),
      ],
      acknowledged: acknowledged.map((each) => {
        const { projectId, idempotencyKey, externalId, invoiceId, account, payableMicro, expiresAt, headNumber } = each;
        const { askedAtMs, acknowledgedAtMs, examinedBefore, darkSinceMs } = each;
        return [
          ...[projectId, idempotencyKey, externalId, invoiceId, account, String(payableMicro), expiresAt, headNumber],
          ...[askedAtMs, acknowledgedAtMs, examinedBefore, darkSinceMs],
        ];
      }),
      appearances: chain.appearances
        .slice(before.appearances)
        .map(({ txId, logIndex, blockNumber, blockId, atMs }) => [txId, logIndex, blockNumber, blockId, atMs]),
    },
    reported: {
      blocks: solid,
      accounts: new Set([...before.accounts, ...added]),
      knownAccounts: before.knownAccounts + known.length,
      acknowledged: before.acknowledged + acknowledged.length,
      appearances: chain.appearances.length,
    },
  };
}

function blocksBetween({ chain }: Truth, from: number, to: number): [number, string, number][] {
  const blocks: [number, string, number][] = [];
  for (let number = from; number <= to; number += 1) {
    const block = chain.block(number);
    if (block !== null) blocks.push([number, block.id, block.time]);
  }
  return blocks;
}

function transfersOf(
  { chain }: Truth,
  accounts: ReadonlySet<string>,
  { after, upTo }: { after: number; upTo: number },
) {
  const place = (direction: 'in' | 'out') =>
    (direction === 'in' ? chain.transfersTo(accounts, upTo) : chain.transfersFrom(accounts, upTo))
      .filter(({ blockNumber }) => blockNumber > after)
      .map(({ txId, logIndex, blockNumber, from, to, amountMicro }) => {
        return [direction, txId, logIndex, blockNumber, direction === 'in' ? to : from, String(amountMicro)];
      });
  return [...place('in'), ...place('out')];
}
