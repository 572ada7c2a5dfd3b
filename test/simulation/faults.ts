import type { Node } from '../../src/chain/node-member.ts';
import { AppError } from '../../src/domain/errors.ts';
import type { Database, Sql } from '../../src/store/database.ts';
import type { AccountHex } from '../../src/tron/address.ts';
import { TRANSFER_TOPIC } from '../../src/tron/usdt.ts';
import { type Block, type Chain, PRODUCER, type Random } from './chain.ts';

/** Switches all faults off for the end of a simulation. */
export type Faults = { isOn: boolean };

const PAYER_WORD = '7e5f4552091a69125d5dfcb7b8c2659029395bdf'.padStart(64, '0');

/**
 * The node of a simulated chain. It refuses, falls behind and forgets blocks now and then, and the chain moves between two
 * of its answers: `move` is called for that.
 */
export function createSimulatedNode(options: {
  chain: Chain;
  usdt: AccountHex;
  random: Random;
  faults: Faults;
  move(): void;
}): Node {
  const { chain, usdt, random, faults, move } = options;
  const blockAt = (number: number, last: number) => (number <= last ? chain.blocks[number] : undefined);
  return {
    url: 'simulated',
    origin: 'simulated',
    operator: 'simulated',
    post: async (path, body) => {
      // An answer never comes at once, so that steps which run side by side interleave.
      await null;
      if (path === '/wallet/listwitnesses') return { witnesses: [{ address: `41${PRODUCER.account}`, isJobs: true }] };
      if (path === '/wallet/getaccount') return { address: `41${PRODUCER.account}` };
      const { id_or_num, detail, num, startNum, endNum } = body as Record<string, string | number | boolean>;
      let last = path.startsWith('/walletsolidity') ? chain.solidNumber : chain.head().number;
      const chance = faults.isOn ? random() : 0.5;
      if (chance < 0.0015) throw new AppError('NODE_REFUSED', 'simulated', { retryable: true });
      if (chance < 0.01) last = Math.max(0, last - Math.floor(random() * 10));
      else if (chance < 0.0105) return {};
      else if (chance > 0.985) move();
      if (path.endsWith('/getblockbylimitnext')) {
        const numbers = Array.from({ length: Number(endNum) - Number(startNum) }, (_, i) => Number(startNum) + i);
        const blocks = numbers.flatMap((number) => blockAt(number, last) ?? []);
        return blocks.length === 0 ? {} : { block: blocks.map((block) => blockJson(block, true)) };
      }
      const block = blockAt(id_or_num === undefined ? Number(num ?? last) : Number(id_or_num), last);
      if (path.endsWith('/getblock')) return block === undefined ? {} : blockJson(block, detail === true);
      return block === undefined ? [] : infosJson(block, usdt);
    },
  };
}

function blockJson({ id, header, signature, transactions }: Block, hasDetail: boolean): object {
  const json = transactions.map(({ id: txID, rawDataHex }) => ({
    txID,
    raw_data_hex: rawDataHex,
    ret: [{ contractRet: 'SUCCESS' }],
  }));
  const shown = hasDetail && json.length > 0 ? { transactions: json } : {};
  return { blockID: id, block_header: { raw_data: header, witness_signature: signature }, ...shown };
}

function infosJson({ number, time, transactions }: Block, usdt: AccountHex): object[] {
  return transactions.map(({ id, logs }) => ({
    id,
    blockNumber: number,
    blockTimeStamp: time,
    receipt: { result: 'SUCCESS' },
    log: logs.map(({ to, amount }) => ({
      address: usdt,
      topics: [TRANSFER_TOPIC, PAYER_WORD, to.padStart(64, '0')],
      data: amount.toString(16).padStart(64, '0'),
    })),
  }));
}

export class SimulatedCrash extends Error {}

/** A database at which the process dies now and then: before or after any statement of a transaction, or after its commit. */
export function createCrashingDatabase(db: Database, random: Random, faults: Faults): Database {
  return {
    ...db,
    transaction: async (work) => {
      let left = faults.isOn && random() < 0.15 ? Math.floor(random() * 12) : Number.POSITIVE_INFINITY;
      const live = (when: string) => {
        left -= 1;
        if (left < 0) throw new SimulatedCrash(when);
      };
      const result = await db.transaction((tx) => {
        const run: Sql['run'] = async (statement, parameters) => {
          live(`before ${statement.name}`);
          const rows = await tx.run(statement, parameters);
          live(`after ${statement.name}`);
          return rows;
        };
        return work({ ...tx, run });
      });
      if (faults.isOn && random() < 0.05) throw new SimulatedCrash('after the commit');
      return result;
    },
  };
}
