import type { AccountHex } from '@quittance/tron/address';
import type { Policy } from '../../../src/core/domain/policy.ts';
import type { Random } from '../engine/random.ts';
import type { Owner, VirtualTime } from '../engine/virtual-time.ts';
import type { Acknowledged } from '../truth.ts';
import type { Shop } from './shops.ts';
import type { SimulatedChain } from './simulated-chain.ts';
import type { SimulatedNodes } from './simulated-nodes.ts';

/** A shop with what thieves need to know. `words` are the payable amounts of an order of 25 USDT there. */
export type Mark = { shop: Shop; policy: Policy; accounts(): readonly AccountHex[]; words: readonly bigint[] };

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** The order amounts in the shop without tails. */
const AMOUNTS = [36_000_000n, 35_000_000n, 41_000_000n];
const ORDERED_MICRO = 25_000_000n;

/**
 * People who order exactly the amount of someone else's unmatched transfer: they read it at the chain's head, know of a merchant's test
 * deposit, or wait while the chain isn't visible. Honest payers order in between.
 */
export function createThieves(options: {
  time: VirtualTime;
  world: Owner;
  random: Random;
  marks: readonly Mark[];
  /** The shop with the policy `exact`. */
  kiosk: Mark;
  chain: Pick<SimulatedChain, 'fork' | 'slotMs'>;
  nodes: SimulatedNodes;
  mayFork: boolean;
  order(shop: Shop, amountMicro: bigint): Promise<Acknowledged | null>;
  pay(reported: Acknowledged): Promise<unknown>;
  send(to: AccountHex, amountMicro: bigint): Promise<unknown>;
  /** Returns an address that isn't ours yet, and a function that adds it to the kiosk. */
  newAddress(): { account: AccountHex; add(): Promise<unknown> };
}) {
  const { time, world, random, marks, kiosk, chain, nodes, order, pay, send, newAddress } = options;
  const wait = (fromMs: number, toMs: number) => time.sleep(world, random.between(fromMs, toMs));
  const orderAndPay = async (shop: Shop, amountMicro: bigint) => {
    const reported = await order(shop, amountMicro);
    if (reported !== null && random.chance(0.5)) await pay(reported);
  };
  const replace = () => {
    if (options.mayFork && random.chance(0.4)) chain.fork();
  };
  /** Sends an amount that no order asks for to one of the shops. */
  const sendSome = async ({ accounts, words }: Mark) => send(random.pick(accounts()), random.pick(words));
  const deeds = [
    // At the head of the chain.
    async () => {
      const mark = random.pick(marks);
      await sendSome(mark);
      await wait(0, 4 * chain.slotMs);
      replace();
      const wantedMicro = mark === kiosk ? random.pick(AMOUNTS) : ORDERED_MICRO;
      for (let orders = 0; orders < 3; orders += 1) await orderAndPay(mark.shop, wantedMicro);
      replace();
    },
    // A merchant's test of an address that is added afterwards.
    async () => {
      const { account, add } = newAddress();
      const amountMicro = random.pick(AMOUNTS);
      await send(account, amountMicro);
      await wait(0, 3 * chain.slotMs);
      await add();
      await orderAndPay(kiosk.shop, amountMicro);
      replace();
    },
    // While the chain isn't visible.
    async () => {
      if (nodes.nodes.some(({ faults }) => faults.length > 0)) return;
      for (const node of nodes.nodes) node.setFaults({ kind: 'unavailable-503' });
      const amountMicro = random.pick(AMOUNTS);
      await send(random.pick(kiosk.accounts()), amountMicro);
      await wait(2 * chain.slotMs + 5 * MINUTE_MS, 2 * chain.slotMs + 7 * MINUTE_MS);
      await orderAndPay(kiosk.shop, amountMicro);
      for (const node of nodes.nodes) node.setFaults();
    },
  ];
  return {
    /** Performs a random action. */
    act: async (): Promise<void> => {
      await random
        .pick(deeds)()
        .catch(() => {
          // The wallet reports the error, and nothing was sent.
        });
    },
  };
}

/** The amounts that may be ordered at the kiosk. */
export const KIOSK_AMOUNTS = AMOUNTS;
export const MARKED_MICRO = ORDERED_MICRO;
