import type { Block } from '@quittance/devnet/chain/block';
import { type Ledger, openLedger } from '@quittance/devnet/chain/ledger';
import { createLedgerStorage } from '@quittance/devnet/chain/ledger-storage';
import { mineBlocks, mineUntilSolid } from '@quittance/devnet/chain/mine';
import { withoutStalled, withReplaced, withRotated, withStalled } from '@quittance/devnet/chain/schedule';
import { USDT } from '@quittance/devnet/evm/keys';
import { answerRequest, fallSick } from '@quittance/devnet/node/node-answers';
import type { AccountHex } from '@quittance/tron/address';
import { TRANSFER_TOPIC } from '@quittance/tron/usdt';
import type { Random } from '../engine/random.ts';
import type { Appearance, TrueTransfer, Truth } from '../truth.ts';

type SeenBlock = { number: number; id: string; parentId: string; time: number; transfers: readonly TrueTransfer[] };

/** The devnet's ledger in simulated time, and its true content. */
export type SimulatedChain = ReturnType<typeof createSimulatedChain>;

export function createSimulatedChain({
  startMs,
  nowMs,
  slotMs,
  producers,
  random,
}: {
  startMs: number;
  nowMs(): number;
  slotMs: number;
  producers: number;
  random: Random;
}) {
  const genesisTimestampMs = startMs - 60 * slotMs;
  const ledger: Ledger = openLedger(createLedgerStorage({ dataDir: null, producers, genesisTimestampMs }));
  mineBlocks(ledger, 1, slotMs, {});
  mineUntilSolid(ledger, slotMs, {});
  const blocks = new Map<number, SeenBlock>();
  const appearances: Appearance[] = [];
  const counts = { blocks: 0, forks: 0, orphaned: 0 };
  const startNumber = ledger.solidNumber();
  let seenUpTo = -1;
  const take = () => {
    const view = ledger.view('full');
    for (let number = seenUpTo + 1; number <= view.headNumber; number += 1) {
      const block = view.block(number);
      if (block === null) throw new Error(`the chain lacks block ${number}`);
      const taken = seen(block);
      blocks.set(number, taken);
      for (const { txId, logIndex, blockId } of taken.transfers) {
        appearances.push({ txId, logIndex, blockNumber: number, blockId, atMs: nowMs() });
      }
    }
    seenUpTo = view.headNumber;
  };
  take();
  const healthy = fallSick(ledger, []);
  let lastMs = 0;
  /** Never the same twice, because wallets build transactions with it. */
  const distinctNow = () => {
    lastMs = Math.max(Math.floor(nowMs()), lastMs + 1);
    return lastMs;
  };
  const find = (accounts: ReadonlySet<string>, upToNumber: number, end: 'from' | 'to') => {
    const found: TrueTransfer[] = [];
    for (let number = startNumber + 1; number <= upToNumber; number += 1) {
      for (const each of blocks.get(number)?.transfers ?? []) if (accounts.has(each[end])) found.push(each);
    }
    return found;
  };
  let former: ReadonlySet<number> | null = null;
  /** Returns the newest block on which seven in ten of these producers have built. */
  const irreversibleBy = (voters: ReadonlySet<number>): number => {
    const builders = new Set<number>();
    for (let number = ledger.head().header.number; number > startNumber; number -= 1) {
      const { turn } = ledger.view('full').block(number) as Block;
      if (voters.has(turn)) builders.add(turn);
      if (builders.size >= voters.size - Math.floor(voters.size * 0.3)) return number;
    }
    return startNumber;
  };
  /** A vote doesn't revoke irreversibility: a block counts if enough producers from before or after the vote have built on it. */
  const solidNumber = () => Math.max(ledger.solidNumber(), former === null ? 0 : irreversibleBy(former));
  const chain: Truth['chain'] = {
    slotMs,
    startNumber,
    headNumber: () => ledger.head().header.number,
    solidNumber,
    block: (number) => blocks.get(number) ?? null,
    appearances,
    transfersTo: (accounts, upToNumber) => find(accounts, upToNumber, 'to'),
    transfersFrom: (accounts, upToNumber) => find(accounts, upToNumber, 'from'),
  };
  return {
    ...chain,
    ledger,
    counts,
    now: distinctNow,
    /** Makes the current slot's block, unless its producer misses it. */
    tick: () => {
      const { timestamp } = ledger.head().header;
      const slotTime = Math.floor(nowMs() / slotMs) * slotMs;
      const missed = ledger.missedSlots();
      if (slotTime <= timestamp || missed === null || slotTime < timestamp + slotMs * (1 + missed)) return;
      ledger.produceBlock({ timestampMs: slotTime });
      counts.blocks += 1;
      take();
    },
    /** Replaces some of the newest blocks by another branch. */
    fork: () => {
      const most = ledger.head().header.number - solidNumber();
      if (most < 1 || ledger.missedSlots() === null) return;
      const depth = 1 + random.below(most);
      ledger.fork({ depth, keepTransactions: random.chance(0.8), stepMs: slotMs });
      counts.forks += 1;
      counts.orphaned += depth;
      seenUpTo = ledger.head().header.number - depth - 1;
      take();
    },
    stall: () => {
      const { active } = ledger.schedule();
      const count = 1 + random.below(Math.max(1, Math.floor(active.length * 0.4)));
      ledger.setSchedule(withStalled(ledger.schedule(), active.slice(0, count)));
    },
    unstall: () => ledger.setSchedule(withoutStalled(ledger.schedule())),
    replaceProducer: () => {
      former = new Set(ledger.schedule().active);
      ledger.setSchedule(withReplaced(ledger.schedule(), 1));
    },
    rotateSigner: () => {
      const { active } = ledger.schedule();
      ledger.setSchedule(withRotated(ledger.schedule(), random.pick(active)));
    },
    /** Returns a healthy node's answer to a wallet. */
    askHealthyNode: async (path: string, body: object): Promise<object> =>
      JSON.parse(
        JSON.stringify(answerRequest({ ledger, now: distinctNow, sickness: healthy }, path, body as never)),
      ) as object,
  };
}

function seen({ id, header, transactions, hidesTime }: Block): SeenBlock {
  const { number, parentHash: parentId, timestamp } = header;
  const time = hidesTime === true ? 0 : timestamp;
  const transfers = transactions.flatMap(({ id: txId, info }) =>
    (info.log ?? []).flatMap(({ address, topics, data }, logIndex) => {
      const amountMicro = BigInt(`0x${data}`);
      if (address !== USDT || topics[0] !== TRANSFER_TOPIC || amountMicro === 0n) return [];
      const [from, to] = [topics[1], topics[2]].map((word) => word?.slice(24) as AccountHex) as [
        AccountHex,
        AccountHex,
      ];
      return [{ txId, logIndex, blockNumber: number, blockId: id, blockTime: time, from, to, amountMicro }];
    }),
  );
  return { number, id, parentId, time, transfers };
}
