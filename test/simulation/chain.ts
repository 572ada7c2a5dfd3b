/** A source of numbers in 0 … 1 that a seed repeats (mulberry32). */
export type Random = () => number;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function hex(random: Random, bytes: number): string {
  return Array.from({ length: bytes * 2 }, () => Math.floor(random() * 16).toString(16)).join('');
}

export type Log = { to: string; amount: bigint };
type Transaction = { id: string; logs: Log[] };
export type Block = { number: number; id: string; parentId: string; time: number; transactions: Transaction[] };

/** A chain that forks anywhere above its solid block, with what waits for a block and the latest time any branch had. */
export type Chain = {
  blocks: Block[];
  waiting: Transaction[];
  solidNumber: number;
  latestTime: number;
  head(): Block;
  mine(stepMs?: number, takesAll?: boolean): void;
  fork(): void;
  advanceSolid(): void;
};

const SLOT_MS = 3000;

export function createChain(random: Random, startTime: number): Chain {
  const below = (count: number) => Math.floor(random() * count);
  const idOf = (number: number) => number.toString(16).padStart(16, '0') + hex(random, 24);
  const genesis = { number: 0, id: idOf(0), parentId: '00'.repeat(32), time: startTime, transactions: [] };
  const chain: Chain = {
    blocks: [genesis],
    waiting: [],
    solidNumber: 0,
    latestTime: startTime,
    head: () => chain.blocks.at(-1) ?? genesis,
    mine(stepMs = SLOT_MS, takesAll = true) {
      const { number, id, time } = chain.head();
      const taken = takesAll ? chain.waiting.length : below(chain.waiting.length + 1);
      const transactions = chain.waiting.splice(0, taken);
      chain.blocks.push({ number: number + 1, id: idOf(number + 1), parentId: id, time: time + stepMs, transactions });
      chain.latestTime = Math.max(chain.latestTime, time + stepMs);
    },
    // The orphaned transactions enter the new branch, or wait for a later block, or half of them are gone, or all.
    fork() {
      const most = chain.head().number - chain.solidNumber;
      if (most < 1) return;
      const depth = 1 + below(most);
      const orphaned = chain.blocks.splice(-depth).flatMap(({ transactions }) => transactions);
      const fate = random();
      if (fate < 0.4) chain.waiting.unshift(...orphaned);
      else if (fate < 0.7) chain.waiting.unshift(...orphaned.filter(() => random() < 0.5));
      const later = fate < 0.2 ? chain.waiting.splice(0) : [];
      const length = depth + (random() < 0.8 ? 1 : 0);
      for (let i = 0; i < length; i++) chain.mine(SLOT_MS, random() < 0.5);
      chain.waiting.push(...later);
    },
    advanceSolid() {
      chain.solidNumber += below(chain.head().number - chain.solidNumber + 1);
    },
  };
  return chain;
}
