import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { decodeRawTransaction, encodeRawTransaction } from '@quittance/tron/raw-transaction';
import { signMessage } from '@quittance/tron/signature';
import { txIdOf } from '@quittance/tron/transaction';
import { decodeTransferCall, encodeTransferCall, TRANSFER_TOPIC } from '@quittance/tron/usdt';
import type { Block, BlockTransaction } from '../chain/block.ts';
import type { Ledger, LedgerView } from '../chain/ledger.ts';
import { booleanParameter, ParameterError, type Parameters } from '../chain/parameters.ts';
import { firstSchedule, type Witness, witnessesOf } from '../chain/schedule.ts';
import { accountWord, type LogJson, uintWord } from '../evm/abi.ts';
import { type InfoBody, messageHex } from '../evm/execute.ts';
import { attackerSigner, PAYER, USDT } from '../evm/keys.ts';
import type { StateReader } from '../evm/state.ts';
import {
  type Fault,
  faultsAt,
  hasFault,
  historyBlocksOf,
  isResealing,
  lagBlocksOf,
  type SettledFault,
  settleFault,
} from '../faults/faults.ts';
import { type Resealed, resealChain } from '../faults/reseal.ts';
import { ENDPOINTS } from './endpoints.ts';

/** A node's faults, and its resealed blocks. Paths with the same faults share their resealed blocks. */
export interface Sickness {
  readonly faults: readonly SettledFault[];
  readonly resealed: Map<string, Resealed>;
}

/** Fills in the faults' current defaults. Without faults, the node is healthy. */
export function fallSick(ledger: Ledger, faults: readonly Fault[]): Sickness {
  const solidNumber = ledger.solidNumber();
  return { faults: faults.map((fault) => settleFault(fault, solidNumber)), resealed: new Map() };
}

/** The data for answering a request: the chain that the node knows, and its faults. */
export interface Answering {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly sickness: Sickness;
}

/** Returns the chain as a node shows it at a path, and that path's faults. */
export function viewAt({ ledger, sickness }: Answering, path: string, kind: 'full' | 'solid') {
  const faults = faultsAt(sickness.faults, path);
  return { faults, view: viewWith(ledger, kind, faults, resealedFor(sickness, faults)) };
}

/**
 * Returns the response from a node with these faults, as the value of its JSON. Refusals are handled by the transport. Throws a
 * ParameterError for an unknown path, and for parameters that a node refuses.
 */
export function answerRequest(node: Answering, path: string, parameters: Parameters): unknown {
  const endpoint = ENDPOINTS.get(path);
  if (endpoint === undefined) throw new ParameterError(`${path} is not an endpoint`);
  const { ledger, now } = node;
  const { faults, view } = viewAt(node, path, endpoint.kind);
  const witnesses = witnessesWith(ledger, faults);
  const visible = booleanParameter(parameters, 'visible');
  return distort(faults, path, endpoint.run({ ledger, view, witnesses, parameters, visible, now }));
}

function resealedFor({ faults, resealed }: Sickness, concerned: readonly SettledFault[]): Resealed {
  const key = concerned.map((fault) => faults.indexOf(fault)).join();
  const known = resealed.get(key) ?? new Map();
  resealed.set(key, known);
  return known;
}

/** Replaces the correct response with one from a node with these faults. */
function distort(faults: readonly SettledFault[], path: string, answer: unknown): unknown {
  return faults.reduce((given: unknown, fault) => distortOnce(fault, path, given), answer);
}

function distortOnce(fault: SettledFault, path: string, answer: unknown): unknown {
  const { kind } = fault;
  if (path.endsWith('/gettransactioninfobyblocknum') && Array.isArray(answer)) {
    if (kind === 'empty-infos') return [];
    if (kind === 'missing-info') return answer.slice(0, -1);
    if (kind === 'swapped-infos') return [...answer.slice(0, 2).reverse(), ...answer.slice(2)];
  }
  if (kind === 'missing-logs' || kind === 'limited-logs') return withoutLogs(fault, answer);
  return kind === 'empty-block' ? withoutTransactions(answer) : answer;
}

function withoutTransactions(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return answer;
  if ('block' in answer && Array.isArray(answer.block)) return { block: answer.block.map(withoutTransactions) };
  if (!('blockID' in answer && 'transactions' in answer)) return answer;
  const { transactions: _taken, ...rest } = answer;
  return rest;
}

/**
 * Returns the response to `eth_getLogs` from a node with an incomplete index, or from a provider that limits requests. Other responses
 * don't change.
 */
function withoutLogs({ kind, to, recipient, fromBlock, toBlock }: SettledFault, answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('jsonrpc' in answer && 'result' in answer)) return answer;
  const { result, ...rest } = answer;
  // This code and text are defined by EIP-1474.
  if (kind === 'limited-logs') return { ...rest, error: { code: -32005, message: 'Limit exceeded' } };
  const word = `0x${accountWord(recipient)}`;
  const logs = result as readonly { readonly blockNumber: string; readonly topics: readonly string[] }[];
  const isMissing = ({ blockNumber, topics }: (typeof logs)[number]) =>
    Number(blockNumber) >= fromBlock && Number(blockNumber) <= toBlock && (to === undefined || topics[2] === word);
  return { ...rest, result: logs.filter((log) => !isMissing(log)) };
}

/** Returns the chain as a node with these faults shows it at one endpoint. Without faults, the chain doesn't change. */
function viewWith(
  ledger: Ledger,
  kind: 'full' | 'solid',
  faults: readonly SettledFault[],
  remembered: Resealed,
): LedgerView {
  const view = ledger.view(hasFault(faults, 'solid-ahead') ? 'full' : kind, lagBlocksOf(faults));
  if (faults.length === 0) return view;
  const lie = (block: Block) => faults.reduce(lieAbout, block);
  const lieOf = (number: number) => {
    const block = view.block(number);
    return block === null ? null : lie(block);
  };
  const sealed = faults.some((each) => isResealing(each.kind))
    ? resealChain(faults, { trueBlock: view.block, lie, remembered })
    : lieOf;
  const oldest = ledger.head().header.number - historyBlocksOf(faults);
  const block = (number: number): Block | null => {
    const shown = number > 0 && number < oldest ? null : sealed(number);
    return shown === null ? null : faults.reduce(lieAboutHeader, shown);
  };
  return {
    headNumber: view.headNumber,
    state: () => bentState(faults, view.state()),
    produced: view.produced,
    block,
    transaction(id) {
      const found = view.transaction(id);
      const shown = found === null ? null : block(found.block.header.number);
      const transaction = shown?.transactions.find((each) => each.id === id);
      return shown === null || transaction === undefined ? null : { block: shown, transaction };
    },
  };
}

/** Returns the producers as a node with these faults shows them. */
function witnessesWith(ledger: Ledger, faults: readonly SettledFault[]): readonly Witness[] {
  const replayed = faults.find(({ kind }) => kind === 'replayed-producers');
  if (replayed === undefined) return ledger.witnesses();
  if (replayed.producers !== 'attacker') return witnessesOf(firstSchedule(ledger.schedule().genesisCount));
  return ledger.witnesses().map((each) => ({ ...each, signer: attackerSigner(each.index) }));
}

function bentState(faults: readonly SettledFault[], state: StateReader): StateReader {
  if (hasFault(faults, 'wrong-balance')) return oneMicroLess(state);
  if (!hasFault(faults, 'wrong-flags')) return state;
  return { get: (key) => (/\/(?:blacklist\/|deprecated$)/.test(key) ? 1n - state.get(key) : state.get(key)) };
}

function oneMicroLess(state: StateReader): StateReader {
  return {
    get(key) {
      const value = state.get(key);
      return key.includes('/balance/') && value > 0n ? value - 1n : value;
    },
  };
}

const HEADER_SHIFT_MS = 3_000;

/** Returns the block as a node with this fault shows it. The same block always gets the same lie, on every node. */
function lieAbout(block: Block, fault: SettledFault): Block {
  const { number } = block.header;
  if (number < fault.fromBlock || number > fault.toBlock) return block;
  const { transactions } = block;
  switch (fault.kind) {
    case 'omitted-transaction':
    case 'omitted-transaction-resealed':
      return { ...block, transactions: transactions.slice(0, -1) };
    case 'hidden-log':
      return withInfos(block, (each) => (isDirect(each) ? each.info : withoutTransfers(each.info)));
    case 'hidden-direct-log':
      return withInfos(block, (each) => (isDirect(each) ? withoutTransfers(each.info) : each.info));
    case 'fee-split':
      return withInfos(block, (each) => (isDirect(each) ? withSplit(each.info, fault) : each.info));
    case 'forged-log':
      return withForgedLog(block, fault);
    case 'forged-direct-log':
      return withOneInfo(
        block,
        (each) => isDirect(each) && hasTransfer(each),
        (info) => withAmount(info, fault),
      );
    case 'forged-direct-transfer':
    case 'forged-block':
      return { ...block, transactions: [...transactions, forgedTransfer(block, fault)] };
    case 'flipped-result':
      return { ...block, transactions: transactions.map(flipped) };
    case 'flipped-info-result':
      return withInfos(block, (each) => flipped(each).info);
    default:
      return block;
  }
}

/** Lies about the header. These lies are applied last, so that resealing doesn't undo them. */
function lieAboutHeader(block: Block, fault: SettledFault): Block {
  const { number, timestamp } = block.header;
  if (number < fault.fromBlock || number > fault.toBlock) return block;
  if (fault.kind === 'forged-header') {
    return { ...block, header: { ...block.header, timestamp: timestamp + HEADER_SHIFT_MS } };
  }
  if (fault.kind !== 'forged-signature' || block.signature === '') return block;
  // Changes the lowest bit of s. The signature stays well formed, but now belongs to a different signer.
  const low = Number.parseInt(block.signature.slice(126, 128), 16) ^ 1;
  const signature = block.signature.slice(0, 126) + low.toString(16).padStart(2, '0') + block.signature.slice(128);
  return { ...block, signature };
}

/** Whether this is a call to the USDT contract itself. Any other call moves USDT only internally. */
function isDirect({ info }: BlockTransaction): boolean {
  return info.contract_address === `41${USDT}`;
}

function isTransfer({ address, topics }: LogJson): boolean {
  return address === USDT && topics[0] === TRANSFER_TOPIC;
}

function hasTransfer({ info }: BlockTransaction): boolean {
  return info.log?.some(isTransfer) ?? false;
}

function withInfos(block: Block, change: (transaction: BlockTransaction) => InfoBody): Block {
  return { ...block, transactions: block.transactions.map((each) => ({ ...each, info: change(each) })) };
}

function withOneInfo(
  block: Block,
  isMeant: (transaction: BlockTransaction) => boolean,
  change: (info: InfoBody) => InfoBody,
): Block {
  const meant = block.transactions.find(isMeant);
  return withInfos(block, (each) => (each === meant ? change(each.info) : each.info));
}

function withoutTransfers(info: InfoBody): InfoBody {
  return withLog(info, info.log?.filter((each) => !isTransfer(each)) ?? []);
}

/** Nodes omit an empty list of logs. */
function withLog({ log: _old, ...info }: InfoBody, log: readonly LogJson[]): InfoBody {
  return log.length === 0 ? info : { ...info, log };
}

function withForgedLog(block: Block, fault: SettledFault): Block {
  const isInside = (each: BlockTransaction) =>
    each.info.contract_address !== undefined && !isDirect(each) && each.contractRet === 'SUCCESS';
  if (fault.to === undefined) {
    return withOneInfo(
      block,
      (each) => isInside(each) && hasTransfer(each),
      (info) => withAmount(info, fault),
    );
  }
  const topics = [TRANSFER_TOPIC, accountWord(PAYER.account), accountWord(fault.recipient)];
  const forged: LogJson = { address: USDT, topics, data: uintWord(fault.amountMicro ?? 1_000_000n) };
  return withOneInfo(block, isInside, (info) => withLog(info, [...(info.log ?? []), forged]));
}

/**
 * Splits the first Transfer into two, as a contract with a fee writes them: a part of the amount for someone else, and the rest for the
 * real recipient. If the part exceeds the amount, the Transfer doesn't change.
 */
function withSplit(info: InfoBody, { recipient, amountMicro }: SettledFault): InfoBody {
  const log = info.log ?? [];
  const at = log.findIndex(isTransfer);
  const transfer = log[at];
  if (transfer === undefined) return info;
  const whole = BigInt(`0x${transfer.data}`);
  const taken = amountMicro ?? whole / 2n;
  if (taken > whole) return info;
  const topics = [...transfer.topics.slice(0, 2), accountWord(recipient)];
  const parts = [
    { ...transfer, topics, data: uintWord(taken) },
    { ...transfer, data: uintWord(whole - taken) },
  ];
  return withLog(info, log.toSpliced(at, 1, ...parts));
}

/** Changes the amount in the first Transfer log. By default, it becomes one micro-USDT more. */
function withAmount(info: InfoBody, { amountMicro }: SettledFault): InfoBody {
  const log = info.log ?? [];
  const at = log.findIndex(isTransfer);
  const changed = log.map((each, index) =>
    index === at ? { ...each, data: uintWord(amountMicro ?? BigInt(`0x${each.data}`) + 1n) } : each,
  );
  return withLog(info, changed);
}

/** Turns a successful call into a reverted one, and vice versa. TRX transfers don't change. */
function flipped(transaction: BlockTransaction): BlockTransaction {
  const { result: _result, resMessage: _message, log: _log, ...rest } = transaction.info;
  if (rest.receipt.result === undefined) return transaction;
  if (transaction.contractRet === 'SUCCESS') {
    const receipt = { ...rest.receipt, result: 'REVERT' as const };
    const resMessage = messageHex('REVERT opcode executed');
    const info: InfoBody = { ...rest, contractResult: [''], receipt, result: 'FAILED', resMessage };
    return { ...transaction, contractRet: 'REVERT', info };
  }
  const info = { ...rest, receipt: { ...rest.receipt, result: 'SUCCESS' as const } };
  return { ...transaction, contractRet: 'SUCCESS', info: withLog(info, claimedTransfer(transaction)) };
}

/** Returns the log that a failed direct transfer would have written. */
function claimedTransfer(transaction: BlockTransaction): LogJson[] {
  const call = decodeRawTransaction(hexToBytes(transaction.rawDataHex))?.contract;
  const transfer = call?.kind === 'trigger' && isDirect(transaction) ? decodeTransferCall(call.data) : null;
  if (transfer === null || call?.kind !== 'trigger') return [];
  const topics = [TRANSFER_TOPIC, accountWord(transfer.from ?? call.owner), accountWord(transfer.to)];
  return [{ address: USDT, topics, data: uintWord(transfer.value) }];
}

const LIFETIME_MS = 60_000;
const ENERGY = 64_285;

/**
 * Returns a direct USDT transfer that never happened. It's from the payer, whose key the attacker doesn't have, so it's signed with another
 * key.
 */
function forgedTransfer({ header }: Block, { recipient, amountMicro = 1_000_000n }: SettledFault): BlockTransaction {
  const rawData = encodeRawTransaction({
    refBlockBytes: header.parentHash.slice(12, 16),
    refBlockHash: header.parentHash.slice(16, 32),
    expirationMs: header.timestamp + LIFETIME_MS,
    timestampMs: header.timestamp,
    feeLimitSun: 100_000_000n,
    memo: '',
    permissionId: 0,
    contract: {
      kind: 'trigger',
      owner: PAYER.account,
      contract: USDT,
      data: encodeTransferCall(recipient, amountMicro),
      callValueSun: 0n,
    },
  });
  const topics = [TRANSFER_TOPIC, accountWord(PAYER.account), accountWord(recipient)];
  return {
    id: txIdOf(rawData),
    rawDataHex: bytesToHex(rawData),
    signatures: [signMessage(rawData, attackerSigner(0).privateKey)],
    contractRet: 'SUCCESS',
    info: {
      fee: ENERGY * 100,
      contractResult: [uintWord(0)],
      contract_address: `41${USDT}`,
      receipt: { energy_fee: ENERGY * 100, energy_usage_total: ENERGY, net_usage: 345, result: 'SUCCESS' },
      log: [{ address: USDT, topics, data: uintWord(amountMicro) }],
    },
  };
}
