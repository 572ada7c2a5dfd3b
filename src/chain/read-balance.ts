import type { BalanceReading } from '../domain/books.ts';
import { AppError } from '../domain/errors.ts';
import type { AccountHex } from '../tron/address.ts';
import type { Node } from './node-pool.ts';
import { readBlockId } from './prove-block.ts';

/** A node whose irreversible chain grew by more than this while it answered one question says nothing about one height. */
const MAX_SPREAD_BLOCKS = 100;

const NEWEST = { detail: false } as const;

/**
 * What an address holds in USDT at an irreversible height, and whether the contract has black-listed it (`null`: it does not
 * say). A node cannot be asked for a height of before, so its newest one is asked for before and after. Four requests.
 * Error: `NODE_REFUSED`.
 */
export async function readBalance(
  node: Node,
  usdt: AccountHex,
  account: AccountHex,
): Promise<BalanceReading & { isBlackListed: boolean | null }> {
  const before = readBlockId(await node.post('/walletsolidity/getblock', NEWEST)).number;
  const balance = await ask(node, usdt, account, 'balanceOf(address)');
  const blackListed = await ask(node, usdt, account, 'isBlackListed(address)');
  const after = readBlockId(await node.post('/walletsolidity/getblock', NEWEST)).number;
  if (balance === null) throw refused(`${node.origin} does not answer balanceOf for 41${account}`);
  // Back ends of one node may disagree for a moment, so the second height can be the lower one.
  const [low, high] = [Math.min(before, after), Math.max(before, after)];
  if (high - low > MAX_SPREAD_BLOCKS) {
    throw refused(`${node.origin} calls first block ${before} and then ${after} irreversible`);
  }
  return { low, high, balanceMicro: balance, isBlackListed: blackListed === null ? null : blackListed !== 0n };
}

/**
 * One constant call with one address; `null` where the contract refuses it. The answer of a balance of 25 USDT:
 * `{"result":{"result":true},"energy_used":935,"constant_result":["00…017d7840"],"transaction":{"ret":[{}], …}}`.
 */
async function ask(node: Node, usdt: AccountHex, account: AccountHex, method: string): Promise<bigint | null> {
  const answer = (await node.post('/walletsolidity/triggerconstantcontract', {
    owner_address: `41${account}`,
    contract_address: `41${usdt}`,
    function_selector: method,
    parameter: account.padStart(64, '0'),
    visible: false,
  })) as { result?: { result?: unknown; message?: unknown }; constant_result?: unknown };
  const word: unknown = Array.isArray(answer.constant_result) ? answer.constant_result[0] : undefined;
  if (typeof word === 'string' && /^[0-9a-f]{64}$/i.test(word) && answer.result?.result === true) {
    return BigInt(`0x${word}`);
  }
  // A call that the contract reverts: the result is true, and constant_result holds no word.
  if (answer.result?.result === true && Array.isArray(answer.constant_result)) return null;
  const reason = JSON.stringify(answer.result?.message ?? word ?? null).slice(0, 120);
  throw refused(`${node.origin} does not answer ${method} for 41${account}: ${reason}`);
}

function refused(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}
