import { hexToBytes } from '@noble/hashes/utils.js';
import { createPoison, POISONS, poisoned, relay } from '@quittance/devnet';
import { NOISE_SHAPES } from '@quittance/devnet/evm/abi';
import type { Random } from '../engine/random.ts';
import type { SimulatedChain } from './simulated-chain.ts';

export type Poisons = ReturnType<typeof createPoisons>;

/** Below and above the most that a simulated node shows of a block at once. The shape and the number of transactions vary as well. */
const INFOS_BYTES = [20_000, 110_000] as const;
const INFOS_TRANSACTIONS = [1, 30] as const;

/** Poisons that a peer can append to a payment that passes through it. */
const ON_PAYMENTS = ['unknown-outer-field', 'unknown-result-field', 'order-id', 'result-beyond-2^53'] as const;
const PAYMENT_CHANCE = 0.1;

/** A stranger, and occasionally a producer, who poisons blocks, and peers who poison payments in transit. */
export function createPoisons({ chain, random }: { chain: SimulatedChain; random: Random }) {
  const poison = createPoison(chain.ledger, chain.now);
  return {
    /** Poisons the next block, and returns how. */
    strike: (): string => {
      const kind = random.pick(POISONS);
      const bytes = random.pick(INFOS_BYTES);
      poison(kind, { bytes, shape: random.pick(NOISE_SHAPES), transactions: random.pick(INFOS_TRANSACTIONS) });
      return `poison: ${kind}`;
    },
    /** A wallet's requests to its node. Some of its transactions are poisoned on the way to the block. */
    ask: async (path: string, body: object): Promise<object> => {
      const sent = 'transaction' in body && path === '/wallet/broadcasthex' ? String(body.transaction) : null;
      if (sent === null || !random.chance(PAYMENT_CHANCE)) return chain.askHealthyNode(path, body);
      return { result: true, txid: relay(chain.ledger, poisoned(hexToBytes(sent), random.pick(ON_PAYMENTS))) };
    },
  };
}
