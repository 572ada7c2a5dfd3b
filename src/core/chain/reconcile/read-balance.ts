import type { AccountHex } from '@quittance/tron/address';
import { decodeBlockHeader } from '@quittance/tron/block-header';
import type { BalanceReading } from '../../domain/books.ts';
import { AppError } from '../../domain/errors.ts';
import { headerAt } from '../nodes/ask-block.ts';
import { constantCall } from '../nodes/ask-contract.ts';
import type { Node } from '../nodes/node.ts';
import { isReproduced, readBlockId } from '../proof/prove-block.ts';

/** If a node's irreversible chain grows by more than this during one question, it's unclear to which height the answer belongs. */
const MAX_SPREAD_BLOCKS = 100;
/** Maximum length of a node's message in errors. */
const MAX_REASON = 120;

/**
 * Reads an address's USDT balance at an irreversible height, and whether the contract blacklists it (`null` if unknown). Nodes can't answer
 * for past heights, so the node's newest height is read before and after. Costs four requests. Throws `NODE_REFUSED`.
 */
export async function readBalance(
  node: Node,
  usdt: AccountHex,
  account: AccountHex,
): Promise<BalanceReading & { isBlackListed: boolean | null }> {
  const { low, high, answer } = await readAtSolid(node, async () => ({
    balance: await ask(node, usdt, { method: 'balanceOf(address)', account }),
    blackListed: await ask(node, usdt, { method: 'isBlackListed(address)', account }),
  }));
  const { balance, blackListed } = answer;
  if (balance === null) throw refused(`${node.origin} does not answer balanceOf for 41${account}`);
  return { low, high, balanceMicro: balance, isBlackListed: blackListed === null ? null : blackListed !== 0n };
}

type Asked = { method: string; account?: AccountHex };

/** A flag of the contract at some irreversible height between `low` and `high`; `null` if unknown. */
export type Flag = { low: number; high: number; isSet: boolean | null };

/** Reads a flag of the contract. Costs three requests. Throws `NODE_REFUSED`. */
export async function readFlag(node: Node, usdt: AccountHex, asked: Asked): Promise<Flag> {
  const { low, high, answer } = await readAtSolid(node, () => ask(node, usdt, asked));
  return { low, high, isSet: answer === null ? null : answer !== 0n };
}

async function readAtSolid<Answer>(node: Node, read: () => Promise<Answer>) {
  const before = await readSolidNumber(node);
  const answer = await read();
  const after = await readSolidNumber(node);
  // A node's back ends may disagree for a moment, so the second height can be lower than the first.
  const [low, high] = [Math.min(before, after), Math.max(before, after)];
  if (high - low > MAX_SPREAD_BLOCKS) {
    throw refused(`${node.origin} calls first block ${before} and then ${after} irreversible`);
  }
  return { low, high, answer };
}

async function readSolidNumber(node: Node): Promise<number> {
  const shown = await node.ask(headerAt('solid'));
  if (shown === null) throw refused(`${node.origin} shows no irreversible block`);
  // Only the height matters here, and JSON may omit some bytes of a header.
  return isReproduced(shown) ? readBlockId(shown).number : (decodeBlockHeader(shown.header)?.number ?? 0);
}

/** Calls a constant method with one address or no argument. Returns `null` if the call reverts. */
async function ask(node: Node, usdt: AccountHex, { method, account }: Asked): Promise<bigint | null> {
  const answer = await node.ask(constantCall('solid', usdt, method, account?.padStart(64, '0')));
  if (answer.kind === 'refused') {
    const about = account === undefined ? '' : ` for 41${account}`;
    throw refused(`${node.origin} does not answer ${method}${about}: ${answer.reason.slice(0, MAX_REASON)}`);
  }
  const word = answer.words?.[0];
  return word === undefined ? null : BigInt(`0x${word}`);
}

function refused(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}
