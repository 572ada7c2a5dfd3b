import { createHash } from 'node:crypto';
import { type AccountHex, accountFromWord, accountToAddress } from '@quittance/tron/address';
import { decodeTransferLog, TRANSFER_TOPIC } from '@quittance/tron/usdt';
import type { ChainTransfer } from '../../domain/chain-block.ts';
import { BURNED_TO, CONTRACT_EVENT_TOPICS, type ContractEvent, contractEventRow } from '../../domain/contract-event.ts';
import { AppError, retryableError } from '../../domain/errors.ts';
import type { ShownInfo } from '../nodes/questions.ts';
import type { ExaminedBlock, ShownTransactionFacts } from '../proof/prove-block.ts';
import { type FeeTerms, feeOf } from './fee-terms.ts';

export type BlockLogs = {
  transfers: ChainTransfer[];
  /** The contract's events other than transfers. */
  events: ContractEvent[];
  /** SHA-256 (hex) of all USDT logs that the header doesn't prove, in order. Nodes that show the same logs have the same digest. */
  digest: string;
  /** Whether the logs split a direct call's amount in a way that no known fee terms explain. The call's whole amount counts. */
  hasOddSplit: boolean;
  /** Whether a direct call logged nothing itself, because the contract was replaced. In that case, its effect relies on nodes alone. */
  isForwarded: boolean;
  /** The contract that replaced the USDT contract. Its transfers are included. `null` means that none was known. */
  successor: AccountHex | null;
};

/** Thrown with `BLOCK_UNVERIFIABLE` if a direct call that moves USDT logged nothing, as happens after the contract has been replaced. */
export class NoLogOfCall extends AppError {}

/** A log of the USDT contract, in lower-case hex. */
type UsdtLog = { logIndex: number; topics: string[]; data: string; isOfSuccessor: boolean };

const WORD = /^[0-9a-f]{64}$/;
const HEX = /^(?:[0-9a-f]{2})*$/;
const ACCOUNT = /^(?:41)?[0-9a-f]{40}$/;
/** One of the two ways that nodes write an address as a word: with all 21 bytes. */
const PREFIXED = /^0{22}41/;
const NO_PREFIX = '0'.repeat(24);

/** The EVM has the instructions LOG0 to LOG4, so a log has at most four topics. */
const MAX_TOPICS = 4;

/**
 * Checks a `gettransactioninfobyblocknum` answer against the block and reads the USDT contract's logs. `[]` could come from an empty block,
 * an unknown block, a node without history or a faulty node, so count and ids must match one by one. `terms`: the known terms that explain
 * a fee on a direct transfer. `successor`: the contract that the replaced USDT contract forwards calls to (`upgradedAddress`); its
 * transfers count as USDT's. Errors, both retryable: `NODE_REFUSED` (these aren't the infos of this block), `BLOCK_UNVERIFIABLE` (they
 * contradict the block).
 */
export function readLogs(
  block: Pick<ExaminedBlock, 'number' | 'time' | 'transactions'>,
  infos: readonly ShownInfo[],
  usdt: AccountHex,
  terms: readonly FeeTerms[] = [],
  successor: AccountHex | null = null,
): BlockLogs {
  const { number, time, transactions } = block;
  if (infos.length !== transactions.length) {
    throw refused(`${infos.length} infos for ${transactions.length} transactions`);
  }
  const logs: BlockLogs = { transfers: [], events: [], digest: '', hasOddSplit: false, isForwarded: false, successor };
  const digest = createHash('sha256');
  for (const [index, transaction] of transactions.entries()) {
    const { txId } = transaction;
    const info = infos[index] ?? {};
    if (info.id !== txId) throw refused(`info ${info.id} for transaction ${txId} (${index})`);
    if (info.blockNumber !== number || info.blockTimeStamp !== time) {
      throw refused(
        `info for ${txId} says block ${info.blockNumber} at ${info.blockTimeStamp}, not ${number} at ${time}`,
      );
    }
    const usdtLogs = readInfo(transaction, info, { usdt, successor });
    if (usdtLogs.length === 0 && transaction.call === null) continue;
    const { transfers, isOdd, isForwarded = false } = readTransfers(transaction, usdtLogs, { usdt, successor, terms });
    logs.transfers.push(...transfers);
    logs.hasOddSplit ||= isOdd;
    logs.isForwarded ||= isForwarded;
    // The digest leaves out proven transfers. They are the same in every node's logs, because logs that differ were refused above.
    if (!transfers.some(({ isProven }) => isProven)) {
      for (const { logIndex, topics, data, isOfSuccessor } of usdtLogs)
        digest.update(`${txId} ${logIndex} ${topics.join()} ${data}${isOfSuccessor ? ' of its successor' : ''}\n`);
    }
    const events = usdtLogs.flatMap((log) => (log.isOfSuccessor ? [] : readEvent(txId, log)));
    // No other node is asked for a direct call's logs, so such a call must not contain any other event.
    if (transaction.call !== null && events.length > 0)
      throw contradicts(`the transfer ${txId} has an additional event`);
    logs.events.push(...events);
    logs.transfers.push(...events.flatMap(burnedBy));
  }
  return { ...logs, digest: digest.digest('hex') };
}

/** Returns one transaction's USDT logs, or an empty list if the transaction failed. Throws if its info contradicts the block. */
function readInfo(
  { txId, isSuccess, isContract }: ShownTransactionFacts,
  info: ShownInfo,
  { usdt, successor }: Omit<Contract, 'terms'>,
): UsdtLog[] {
  const claimed = info.receipt?.result;
  const { log: list = [] } = info;
  if (!Array.isArray(list)) throw refused(`the logs for ${txId} are not a list`);
  // If a transaction's bytes are unreadable, it may or may not be a call.
  if (isContract === false || (isContract === null && claimed === undefined)) {
    if (list.length > 0) throw contradicts(`${txId} calls no contract, yet its info has ${list.length} logs`);
    return [];
  }
  if (!isSuccess) {
    if (claimed === 'SUCCESS') throw contradicts(`${txId} failed, yet its info says SUCCESS`);
    return [];
  }
  if (claimed !== 'SUCCESS' || info.result !== undefined) {
    throw contradicts(
      `${txId} succeeded, yet its info has receipt result ${claimed} and result ${info.result ?? '(none)'}`,
    );
  }
  const logs: UsdtLog[] = [];
  for (const [logIndex, log] of (list as unknown[]).entries()) {
    // `null` means another contract's log, which isn't kept if only USDT logs were requested.
    if (log === null) continue;
    const { address, topics = [], data = '' } = (log ?? {}) as { address?: unknown; topics?: unknown; data?: unknown };
    const account = typeof address === 'string' ? address.toLowerCase() : '';
    if (!ACCOUNT.test(account)) throw contradicts(`log ${logIndex} of ${txId} has address ${address}`);
    const isOfSuccessor = account.slice(-40) === successor;
    if (account.slice(-40) !== usdt && !isOfSuccessor) continue;
    logs.push({ logIndex, ...readHex(`log ${logIndex} of ${txId}`, topics, data), isOfSuccessor });
  }
  return logs;
}

/**
 * Returns topics and data in lower case. Nodes write the address in a topic with or without the prefix 41, so the prefix is removed to make
 * digests equal. In a Transfer, all topics are addresses, so all upper bytes are removed.
 */
function readHex(place: string, topics: unknown, data: unknown): { topics: string[]; data: string } {
  if (!Array.isArray(topics) || topics.length > MAX_TOPICS || typeof data !== 'string') {
    throw contradicts(`${place} is malformed`);
  }
  const lower = (topics as unknown[]).map((topic) => (typeof topic === 'string' ? topic.toLowerCase() : ''));
  const bytes = data.toLowerCase();
  if (!lower.every((topic) => WORD.test(topic)) || !HEX.test(bytes)) throw contradicts(`${place} is not hex`);
  const isTransfer = lower[0] === TRANSFER_TOPIC;
  const masked = lower.map((topic, index) =>
    index > 0 && (isTransfer || PREFIXED.test(topic)) ? NO_PREFIX + topic.slice(24) : topic,
  );
  return { topics: masked, data: bytes };
}

type Contract = { usdt: AccountHex; successor: AccountHex | null; terms: readonly FeeTerms[] };
type Transfers = { transfers: ChainTransfer[]; isOdd: boolean; isForwarded?: boolean };

/** Returns the transfers in one transaction. A direct call must have logged its amount, or its amount minus Tether's fee. */
function readTransfers({ txId, call }: ShownTransactionFacts, logs: UsdtLog[], contract: Contract): Transfers {
  const [transfers, forwarded]: [ChainTransfer[], ChainTransfer[]] = [[], []];
  for (const { logIndex, topics, data, isOfSuccessor } of logs) {
    if (topics[0] !== TRANSFER_TOPIC) continue;
    const transfer = decodeTransferLog({ address: contract.usdt, topics, data });
    if (transfer === null) throw contradicts(`log ${logIndex} of ${txId} is a malformed USDT Transfer`);
    const { from, to, value: amount } = transfer;
    (isOfSuccessor ? forwarded : transfers).push({ txId, logIndex, from, to, amount, isProven: false });
  }
  const isForwarded = call !== null && transfers.length === 0 && contract.successor !== null;
  const read: Transfers =
    call === null || isForwarded
      ? { transfers: [...transfers, ...forwarded], isOdd: false, isForwarded }
      : readCall(txId, call, transfers, contract.terms);
  // Zero-value transfers are spam (address poisoning) and don't move anything.
  return { ...read, transfers: read.transfers.filter(({ amount }) => amount > 0n) };
}

function readCall(
  txId: string,
  call: NonNullable<ShownTransactionFacts['call']>,
  transfers: ChainTransfer[],
  terms: readonly FeeTerms[],
): Transfers {
  const [first, second] = transfers;
  const { from, to, value } = call;
  // Such a call moves nothing, whatever its logs say. Otherwise a node could turn it into a payment.
  if (value === 0n && transfers.every(({ amount }) => amount === 0n)) return { transfers, isOdd: false };
  if (transfers.length === 1 && first?.from === from && first.to === to && first.amount === value) {
    // A direct call always writes this log first, whatever logs a node shows before it. With the index 0, the transfer has the same
    // identity for every node.
    return { transfers: [{ ...first, logIndex: 0, isProven: true }], isOdd: false };
  }
  // If there's a fee, the contract logs a second Transfer, to its owner. It's the second log for `transfer`, and the first one for
  // `transferFrom`.
  if (first !== undefined && second !== undefined && transfers.length === 2) {
    const [fee, rest] = first.to === to ? [second, first] : [first, second];
    const isSplit = fee.amount > 0n && fee.amount + rest.amount === value;
    if (isSplit && rest.to === to && first.from === from && second.from === from) {
      const isDue = terms.some((each) => each.owner === fee.to && feeOf(each, value) === fee.amount);
      if (isDue) return { transfers, isOdd: false };
      // The header proves the call and its success, so the whole amount was transferred unless a known fee explains the split. Without a
      // fee, the transfer is the first log.
      return { transfers: [{ txId, logIndex: 0, from, to, amount: value, isProven: true }], isOdd: true };
    }
  }
  if (transfers.length === 0) {
    const what = `${txId} moves ${value} from ${from} to ${to}, yet it has no logs`;
    throw new NoLogOfCall('BLOCK_UNVERIFIABLE', `${CONTRADICTS}${what}`, { retryable: true });
  }
  const seen = transfers.map((each) => `${each.from} to ${each.to}: ${each.amount}`).join('; ');
  throw contradicts(`${txId} moves ${value} from ${from} to ${to}, yet its logs are: ${seen}`);
}

/** Reads a contract event. Arguments can be indexed or not, so topics and data are read as one sequence of words. */
function readEvent(txId: string, { logIndex, topics, data }: UsdtLog): ContractEvent[] {
  const name = CONTRACT_EVENT_TOPICS.get(topics[0] ?? '');
  if (name === undefined) return [];
  const types = contractEventRow(name).arguments;
  const words = [...topics.slice(1), ...(data.match(/.{64}/g) ?? [])];
  const accounts = types.map((type, place) => (type === 'address' ? accountFromWord(words[place] ?? '') : null));
  const isReadable = types.every((type, place) => type !== 'address' || accounts[place] !== null);
  if (words.length !== types.length || data.length % 64 !== 0 || !isReadable) {
    throw contradicts(`log ${logIndex} of ${txId} is a malformed USDT ${name}`);
  }
  const texts = words.map((word, place) => {
    const account = accounts[place];
    return account ? accountToAddress(account) : String(BigInt(`0x${word}`));
  });
  const amountMicro = name === 'DestroyedBlackFunds' ? BigInt(`0x${words[1]}`) : null;
  const detail = name === 'Params' ? `fee ${texts[0]} basis points, at most ${texts[1]}` : texts.join(' ');
  return [{ name, txId, logIndex, account: accounts[0] ?? null, amountMicro, detail }];
}

/**
 * When Tether destroys a frozen account's balance, there's no Transfer log. The books record it as a transfer to an account that no one
 * owns.
 */
function burnedBy({ txId, logIndex, account, amountMicro }: ContractEvent): ChainTransfer[] {
  if (account === null || amountMicro === null || amountMicro === 0n) return [];
  return [{ txId, logIndex, from: account, to: BURNED_TO, amount: amountMicro, isProven: false }];
}

function refused(seen: string): AppError {
  return retryableError('NODE_REFUSED', `the node's transaction infos do not match the block: ${seen}`);
}

const CONTRADICTS = 'the transaction infos contradict the block: ';

function contradicts(seen: string): AppError {
  return retryableError('BLOCK_UNVERIFIABLE', `${CONTRADICTS}${seen}`);
}
