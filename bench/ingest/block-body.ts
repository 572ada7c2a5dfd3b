import { hash } from 'node:crypto';
import type { AccountHex } from '@quittance/tron/address';
import { encodeTransferCall, encodeTransferFromCall, USDT_CONTRACTS } from '@quittance/tron/usdt';
import type { RandomStream } from './random-stream.ts';
import {
  assetCall,
  delegateCall,
  type Log,
  type MadeTransaction,
  makeTransaction,
  type Outcome,
  transferLog,
  triggerCall,
  trxCall,
} from './transaction-parts.ts';

const USDT = USDT_CONTRACTS.mainnet.account;

/**
 * One block of the main network in numbers: 383 transactions with 90 USDT transfers. 11 of these (12 %) appear only in the logs of five
 * calls of other contracts. The other shares are rounded from blocks of a weekday.
 */
const TRANSACTIONS = 383;
const DIRECT = 75;
const DIRECT_FROM = 4;
const FAILED = 4;
/** The number of USDT transfers in each call of another contract. */
const INSIDE = [6, 1, 1, 1, 2];
const OTHER_TOKENS = 20;
const OTHER_CALLS = 35;
const DELEGATIONS = 70;
const ASSETS = 20;

/** Returns the transactions of one block, in a mixed order that is the same in every run. A smaller block has the same shares. */
export function makeTransactions(random: RandomStream, wanted = TRANSACTIONS): MadeTransaction[] {
  const scaled = (count: number) => Math.round((count * wanted) / TRANSACTIONS);
  const repeat = (count: number, make: () => MadeTransaction) => Array.from({ length: scaled(count) }, make);
  const made = [
    ...repeat(DIRECT, () => directTransfer(random, account(random), amount(random))),
    ...repeat(DIRECT_FROM, () => directTransferFrom(random)),
    ...repeat(FAILED, () => failedTransfer(random)),
    ...INSIDE.slice(0, Math.max(1, scaled(INSIDE.length))).map((count) =>
      insideTransfers(
        random,
        Array.from({ length: count }, () => someTransfer(random)),
      ),
    ),
    ...repeat(OTHER_TOKENS, () => otherToken(random)),
    ...repeat(OTHER_CALLS, () => otherCall(random)),
    ...repeat(DELEGATIONS, () => plain(random, delegateCall(account(random), account(random), random.below(2 ** 31)))),
    ...repeat(ASSETS, () => plain(random, assetCall(account(random), account(random), random.below(2 ** 31)))),
  ];
  while (made.length < wanted) {
    made.push(plain(random, trxCall(account(random), account(random), random.below(2 ** 31))));
  }
  for (let index = made.length - 1; index > 0; index -= 1) {
    const other = random.below(index + 1);
    const [left, right] = [made[index], made[other]];
    if (left !== undefined && right !== undefined) [made[index], made[other]] = [right, left];
  }
  return made;
}

/** A wallet's successful `transfer` of USDT. */
export function directTransfer(random: RandomStream, to: string, value: bigint): MadeTransaction {
  const from = account(random);
  const call = triggerCall(from, USDT, encodeTransferCall(to as AccountHex, value));
  return makeTransaction(random, call, called(USDT, [transferLog(USDT, from, to, value)], 64_285));
}

type Transfer = { to: string; value: bigint };

/** A call of another contract that moves USDT: an exchange's batch, a relayer, or a swap with its own event. */
export function insideTransfers(random: RandomStream, transfers: Transfer[]): MadeTransaction {
  const [caller, contract] = [account(random), account(random)];
  const logs = transfers.map(({ to, value }) => transferLog(USDT, contract, to, value));
  const swap = { address: contract, topics: [random.hex(32), random.hex(32)], data: random.hex(128) };
  const calls = transfers.map(() => ({
    hash: random.hex(32),
    caller_address: `41${contract}`,
    transferTo_address: `41${USDT}`,
    callValueInfo: [{}],
    note: '63616c6c',
  }));
  const words = transfers.map(({ to, value }) => to.padStart(64, '0') + value.toString(16).padStart(64, '0'));
  const outcome = called(contract, [...logs, swap], 31_000 + 29_000 * transfers.length);
  return makeTransaction(random, triggerCall(caller, contract, `a01b2c3d${words.join('')}`), {
    ...outcome,
    extra: { ...outcome.extra, internal_transactions: calls },
  });
}

function directTransferFrom(random: RandomStream): MadeTransaction {
  const [spender, from, to, value] = [account(random), account(random), account(random), amount(random)];
  const call = triggerCall(spender, USDT, encodeTransferFromCall(from as AccountHex, to as AccountHex, value));
  return makeTransaction(random, call, called(USDT, [transferLog(USDT, from, to, value)], 71_000));
}

function failedTransfer(random: RandomStream): MadeTransaction {
  const call = triggerCall(account(random), USDT, encodeTransferCall(account(random) as AccountHex, amount(random)));
  const contractRet = random.below(2) === 0 ? 'REVERT' : 'OUT_OF_ENERGY';
  return makeTransaction(random, call, {
    contractRet,
    fee: 13_844_850,
    receipt: { energy_fee: 13_499_850, energy_usage_total: 64_285, net_fee: 345_000, result: contractRet },
    extra: {
      contractResult: [''],
      contract_address: `41${USDT}`,
      result: 'FAILED',
      resMessage: Buffer.from(`${contractRet} opcode executed`).toString('hex'),
    },
  });
}

/** Another token, whose Transfer event looks just like USDT's. */
function otherToken(random: RandomStream): MadeTransaction {
  const { to, value } = someTransfer(random);
  const [token, from] = [account(random), account(random)];
  const call = triggerCall(from, token, encodeTransferCall(to as AccountHex, value));
  return makeTransaction(random, call, called(token, [transferLog(token, from, to, value)], 31_000));
}

function otherCall(random: RandomStream): MadeTransaction {
  const contract = account(random);
  return makeTransaction(random, triggerCall(account(random), contract, random.hex(100)), called(contract, [], 21_000));
}

function plain(random: RandomStream, call: Parameters<typeof makeTransaction>[1]): MadeTransaction {
  const outcome = { contractRet: 'SUCCESS', fee: 0, receipt: { net_usage: 268 }, extra: { contractResult: [''] } };
  return makeTransaction(random, call, outcome);
}

function called(contract: string, log: Log[], energy: number): Outcome {
  return {
    contractRet: 'SUCCESS',
    fee: energy * 100,
    receipt: { energy_fee: energy * 100, energy_usage_total: energy, net_usage: 345, result: 'SUCCESS' },
    extra: {
      contractResult: ['0'.repeat(64)],
      contract_address: `41${contract}`,
      ...(log.length === 0 ? {} : { log }),
    },
  };
}

function someTransfer(random: RandomStream): Transfer {
  return { to: account(random), value: amount(random) };
}

function account(random: RandomStream): string {
  return random.hex(20);
}

/** 0.000001 to about 4,295 USDT. */
function amount(random: RandomStream): bigint {
  return BigInt(random.below(2 ** 32 - 1) + 1);
}

/** Returns the 32 bytes of a leaf of the Merkle tree. */
export function leafOf({ whole }: MadeTransaction): Buffer {
  return hash('sha256', whole, 'buffer');
}

/** Returns the root over leaves, as packages/tron/src/merkle computes it, using the SHA-256 of OpenSSL. */
export function rootOf(leaves: readonly Buffer[]): string {
  let level = leaves;
  while (level.length > 1) {
    const parents: Buffer[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index], level[index + 1]];
      if (left !== undefined)
        parents.push(right === undefined ? left : hash('sha256', Buffer.concat([left, right]), 'buffer'));
    }
    level = parents;
  }
  return level[0]?.toString('hex') ?? '00'.repeat(32);
}
