import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { hexToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { bytesFromHex } from '@quittance/tron/hex';
import { writeBytes } from '@quittance/tron/protobuf';
import { decodeRawTransaction } from '@quittance/tron/raw-transaction';
import { contractRetName } from '@quittance/tron/transaction';
import { splitTransaction, type TransactionBytes, transactionBytes } from '@quittance/tron/transaction-bytes';
import { decodeTransferCall, decodeTransferLog } from '@quittance/tron/usdt';
import { AppError, retryableError } from '../../domain/errors.ts';
import type { TransactionFacts } from '../../domain/lookup/lookup.ts';
import { microUsdt } from '../../domain/money.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import type { ReadTransaction, TransactionQuestion } from '../../payments/look-up-transaction.ts';
import { createSemaphore } from '../../runtime/concurrency.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';
import type { Logger } from '../../runtime/log.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import {
  AnswerTooLarge,
  type Node,
  orNull,
  type Question,
  type RecogniseDeps,
  recogniseNodes,
  wholeMessage,
} from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { constantCall, infoOf, type ShownInfo } from '../nodes/questions.ts';
import { describeTransaction } from '../proof/prove-block.ts';
import { readLogs } from './read-logs.ts';

export type TransactionReaderDeps = RecogniseDeps & {
  pool: Pick<NodePool, 'available' | 'setGenesis'>;
  usdt: AccountHex;
  now(): UnixMs;
  log: Logger;
  /** Spends two of the requests allowed for this link and client. Returns false if none are left for now. */
  spend(question: Pick<TransactionQuestion, 'askedFor' | 'client'>): boolean;
};

/** How long a payer waits. If the node's answer arrives later, it's cached for their next request. */
const PATIENCE_MS = 5000;
/** The watcher asks the same nodes and has priority, so only a few of these questions can run, and only a few more can wait. */
const MAX_UNDER_WAY = 2;
const MAX_QUESTIONS = 20;
/** At most four questions from one link can wait, so it takes several links to fill the queue. */
const MAX_OF_ONE_LINK = 4;
/** If a node fails or doesn't have the transaction, another one may have it. */
const MAX_NODES = 2;
/**
 * This is enough for one whole question: either two nodes don't know the transaction, or the first node shows it. After a failure, a
 * question needs more requests.
 */
const REQUESTS_A_SPEND = 2;
/**
 * An answer about a transaction in an irreversible block, or about its size, never changes. In later blocks, transactions may still appear,
 * move or disappear with each new block.
 */
const FINAL_MS = 10 * 60_000;
const FLEETING_MS = 3000;
/** Five megabytes at most. A transaction with more transfers is rare, so it isn't cached, and asking again costs two requests. */
const MAX_KEPT = 500;
const MAX_KEPT_TRANSFERS = 50;

const UNAVAILABLE = { kind: 'unavailable', why: 'for-now' } as const;

type Kept = { facts: TransactionFacts; readAt: UnixMs; keptMs: number };

/**
 * Looks up transactions for payers on one network's nodes. It limits the requests, and never sends the same question twice at the same
 * time. Answers are cached per invoice, so that response times don't reveal other people's lookups. Never rejects: a failure is
 * `unavailable`.
 */
export function createTransactionReader(deps: TransactionReaderDeps): ReadTransaction {
  const { now } = deps;
  const kept = new Map<string, Kept>();
  const open = new Map<string, Promise<TransactionFacts>>();
  const turns = createSemaphore(MAX_UNDER_WAY);
  const read = async (name: string, question: TransactionQuestion): Promise<TransactionFacts> => {
    const facts = await turns(() => askNodes(deps, question));
    open.delete(name);
    if (transferCount(facts) > MAX_KEPT_TRANSFERS) return facts;
    const keptMs = staysSo(facts, question) ? FINAL_MS : FLEETING_MS;
    keepNewest(kept, name, { facts, readAt: now(), keptMs }, MAX_KEPT);
    return facts;
  };
  return async (question) => {
    const name = `${question.askedFor} ${question.txId}`;
    const known = kept.get(name);
    kept.delete(name);
    // If the clock was set back, it's unknown how old the answer is.
    const ageMs = known === undefined ? Number.NaN : now() - known.readAt;
    if (known !== undefined && ageMs >= 0 && ageMs < known.keptMs) {
      // Reinserts the entry at the end, so that the Map's first entry is the least recently used.
      kept.set(name, known);
      return known.facts;
    }
    let answer = open.get(name);
    if (answer === undefined) {
      const ofThisLink = [...open.keys()].filter((other) => other.startsWith(`${question.askedFor} `)).length;
      if (open.size >= MAX_QUESTIONS || ofThisLink >= MAX_OF_ONE_LINK) return UNAVAILABLE;
      answer = read(name, question);
      open.set(name, answer);
    }
    return withPatience(answer);
  };
}

/** Whether the answer can never change. This is decided when the answer is read, because the block at that height may be replaced later. */
function staysSo(facts: TransactionFacts, { solidNumber }: TransactionQuestion): boolean {
  if (facts.kind === 'unavailable') return facts.why === 'too-large';
  if (facts.kind !== 'done' && facts.kind !== 'failed') return false;
  return solidNumber !== null && facts.blockNumber <= solidNumber;
}

function transferCount(facts: TransactionFacts): number {
  return facts.kind === 'done' ? facts.usdt.length + facts.otherTokens.length : 0;
}

/** Asks nodes in order of preference until one has the transaction. The result is `not-found` only if all asked nodes say so. */
async function askNodes(deps: TransactionReaderDeps, question: TransactionQuestion): Promise<TransactionFacts> {
  const { pool, usdt, network, log } = deps;
  const { txId, head } = question;
  try {
    await recogniseNodes(deps);
    const nodes = (await pool.available()).slice(0, MAX_NODES);
    const pay = createPurse(() => deps.spend(question));
    let facts: TransactionFacts = nodes.length === 0 ? UNAVAILABLE : { kind: 'not-found' };
    for (const node of nodes) {
      const known = { usdt, now: deps.now(), head };
      const shown = await readTransaction(paidBy(pay, node), txId, known).catch((error: unknown) => {
        const why = whyUnavailable(error);
        // Payers themselves can use up the requests, so they could fill the log with warnings.
        const level = why === 'used-up' ? 'debug' : 'warn';
        const reason = (error as AppError).message;
        log[level]({ network, node: node.origin, txId, reason }, 'a look-up got no response from a node');
        return { kind: 'unavailable', why } as const;
      });
      if (shown.kind !== 'not-found' && shown.kind !== 'unavailable') return shown;
      if (shown.kind === 'unavailable' && !isTooLarge(facts)) facts = shown;
    }
    return facts;
  } catch (error) {
    log.error({ network, txId, err: error }, 'a look-up failed');
    return UNAVAILABLE;
  }
}

function whyUnavailable(error: unknown): 'for-now' | 'used-up' | 'too-large' {
  if (error instanceof AnswerTooLarge) return 'too-large';
  if (!(error instanceof AppError)) throw error;
  return error.code === 'NODE_REFUSED' ? 'for-now' : 'used-up';
}

function isTooLarge(facts: TransactionFacts): boolean {
  return facts.kind === 'unavailable' && facts.why === 'too-large';
}

/** Reserves a question's requests in advance, because half a question would be wasted. */
function createPurse(spend: () => boolean): () => boolean {
  let left = 0;
  return () => {
    if (left === 0) {
      if (!spend()) return false;
      left = REQUESTS_A_SPEND;
    }
    left -= 1;
    return true;
  };
}

function paidBy(pay: () => boolean, { origin, ask }: Node): Pick<Node, 'origin' | 'ask'> {
  return {
    origin,
    ask: async (...call) => {
      if (pay()) return ask(...call);
      throw retryableError('NO_NODE', 'the request budget for look-ups is used up for now');
    },
  };
}

async function withPatience(answer: Promise<TransactionFacts>): Promise<TransactionFacts> {
  const answered = new AbortController();
  try {
    return await Promise.race([answer, delay(PATIENCE_MS, UNAVAILABLE, { signal: answered.signal })]);
  } finally {
    answered.abort();
  }
}

/**
 * A payer may ask for any transaction on the chain, so the size of answers is limited, and the node isn't blamed for a large or slow one. A
 * payment takes four kilobytes; this limit allows a payment to a thousand recipients.
 */
const QUESTION = { maxBytes: 512 * 1024, isOptional: true } as const;
/** Maximum difference between this server's clock and the chain's. */
const MAX_AHEAD_MS = 3_600_000;
/** One year's blocks. A service that was down for longer answers again once its watcher resumes. */
const MAX_AHEAD_BLOCKS = 10_512_000;
/** Tron.proto `TransferAssetContract`: a transfer of a token that isn't a contract. */
const TRC10_TRANSFER_TYPE = 2;
const MAX_REASON = 300;

/** Facts about the chain that don't come from the node. `head` is the newest examined block. */
export type Known = { usdt: AccountHex; now: UnixMs; head: { number: number; time: UnixMs } | null };

/**
 * Reads a transaction as reported by one node. `not-found` means that the node knows no block that contains it. Costs one request, two if
 * it exists, and three if a USDT transfer failed. The id and the contract call are recomputed from its bytes; everything else relies on
 * that node. Throws `NODE_REFUSED`, including its subclass `AnswerTooLarge`.
 */
export async function readTransaction(
  node: Pick<Node, 'origin' | 'ask'>,
  txId: string,
  known: Known,
): Promise<TransactionFacts> {
  const info = await node.ask(infoOf(txId, null), QUESTION);
  if (info === null) return { kind: 'not-found' };
  const transaction = await node.ask(transactionBy(txId), QUESTION);
  const facts = readFactsOf(node, txId, { info, transaction }, known);
  if (facts.kind !== 'failed' || facts.payer === null) return facts;
  const { account } = facts.payer;
  return { ...facts, payer: { account, isFrozen: await isFrozen(node, known.usdt, account) } };
}

/**
 * Whether the contract refuses transfers from this account. Returns false if a node doesn't answer, and then the payer gets the general
 * advice.
 */
async function isFrozen(node: Pick<Node, 'ask'>, usdt: AccountHex, account: AccountHex): Promise<boolean> {
  const question = constantCall('any', usdt, 'isBlackListed(address)', account.padStart(64, '0'));
  const answer = await node.ask(question, { isOptional: true }).catch(orNull);
  return answer?.kind === 'answered' && BigInt(`0x${answer.words?.[0] ?? '0'}`) !== 0n;
}

function readFactsOf(
  node: Pick<Node, 'origin'>,
  txId: string,
  shown: { info: ShownInfo; transaction: TransactionBytes | null },
  known: Known,
): TransactionFacts {
  try {
    return readFacts(txId, shown, known);
  } catch (error) {
    // Any error in a check is due to the node's answer, and the error's message may be arbitrarily long.
    const reason = reasonOf(error).slice(0, MAX_REASON);
    throw retryableError('NODE_REFUSED', `${node.origin}: ${reason}`);
  }
}

/**
 * Throws if the answer isn't about this transaction or contradicts itself. A failed transaction's info, for example:
 * `{"id":"8c0f…","fee":1000000,"blockNumber":156,"blockTimeStamp":1790865477000,"contractResult":[""],"contract_address":"41…",
 * "receipt":{"energy_fee":1000000,"result":"OUT_OF_ENERGY"},"result":"FAILED","resMessage":"4e6f…"}`.
 */
export function readFacts(
  txId: string,
  { info, transaction }: { info: ShownInfo; transaction: TransactionBytes | null },
  known: Known,
): TransactionFacts {
  const { usdt } = known;
  if (transaction === null) throw new TypeError(`it did not return transaction ${txId}`);
  const shownId = hash('sha256', transaction.rawData, 'hex');
  if (shownId !== txId) throw new TypeError(`it returned transaction ${shownId} instead of ${txId}`);
  const block = readPlace(info, known);
  const facts = describeTransaction(txId, transaction, bytesFromHex(`41${usdt}`) ?? new Uint8Array(0));
  const { transfers } = readLogs({ ...block, transactions: [facts] }, [info], usdt);
  const placed = { blockNumber: block.number, blockTime: block.time };
  // Only a contract call can fail and still be included in a block.
  const mayFail = facts.isContract !== false;
  const result = contractRetName(transaction.contractRet) ?? 'DEFAULT';
  if (mayFail && !facts.isSuccess) {
    const account = result === 'REVERT' ? readPayer(transaction.rawData, usdt) : null;
    return { kind: 'failed', ...placed, result, payer: account && { account, isFrozen: false } };
  }
  return {
    kind: 'done',
    ...placed,
    // A transfer from an account to itself doesn't pay anyone.
    usdt: transfers.flatMap(({ from, to, amount }) => (from === to ? [] : { to, amountMicro: microUsdt(amount) })),
    otherTokens: mayFail ? readOtherTokens(info, usdt) : [],
    ...readContract(transaction.rawData, usdt),
  };
}

function readPlace({ blockNumber, blockTimeStamp }: ShownInfo, { now, head }: Known) {
  const isHeight = typeof blockNumber === 'number' && Number.isSafeInteger(blockNumber) && blockNumber > 0;
  const isTime = typeof blockTimeStamp === 'number' && Number.isSafeInteger(blockTimeStamp) && blockTimeStamp >= 0;
  if (!isHeight || !isTime)
    throw new TypeError(`it reports a transaction in block ${blockNumber} at ${blockTimeStamp}`);
  // A local network's blocks, including the examined ones, may be ahead of the clock.
  const isAhead = blockTimeStamp - Math.max(now, head?.time ?? now) > MAX_AHEAD_MS;
  if (isAhead || (head !== null && blockNumber - head.number > MAX_AHEAD_BLOCKS)) {
    throw new RangeError(
      `it reports a transaction in block ${blockNumber} at ${blockTimeStamp}, far beyond block ${head?.number} and the time ${now}`,
    );
  }
  return { number: blockNumber, time: unixMs(blockTimeStamp) };
}

/** Returns the transfer events from other contracts, including fake ones that call themselves USDT. */
function readOtherTokens({ log = [] }: ShownInfo, usdt: AccountHex): { contract: AccountHex; to: AccountHex }[] {
  return (log as unknown[]).flatMap((each) => {
    const transfer = decodeTransferLog(each ?? {});
    if (transfer === null || transfer.contract === usdt || transfer.value === 0n) return [];
    return [{ contract: transfer.contract, to: transfer.to }];
  });
}

type Done = Extract<TransactionFacts, { kind: 'done' }>;

/** If the transaction asks the USDT contract to move USDT, returns the account to move it from, otherwise `null`. */
function readPayer(rawData: Uint8Array, usdt: AccountHex): AccountHex | null {
  const contract = decodeRawTransaction(rawData)?.contract;
  if (contract?.kind !== 'trigger' || contract.contract !== usdt) return null;
  const call = decodeTransferCall(contract.data);
  return call === null ? null : (call.from ?? contract.owner);
}

/** Reads a transaction's effect from its bytes. */
function readContract(rawData: Uint8Array, usdt: AccountHex): Pick<Done, 'trx' | 'isTrc10' | 'isUsdtCall'> {
  const contract = decodeRawTransaction(rawData)?.contract;
  const isTrc10 = contract?.kind === 'other' && contract.type === TRC10_TRANSFER_TYPE;
  const isUsdtCall = contract?.kind === 'trigger' && contract.contract === usdt;
  if (contract?.kind !== 'transfer') return { trx: null, isTrc10, isUsdtCall };
  if (contract.amountSun < 0n) throw new RangeError(`it returned a transfer of ${contract.amountSun} sun`);
  return { trx: { to: contract.to, amountSun: contract.amountSun }, isTrc10, isUsdtCall };
}

/** Asks for a transaction by id, in any block. The answer is `null` if the node doesn't have it. */
export function transactionBy(txId: string): Question<TransactionBytes | null> {
  const found = (bytes: TransactionBytes | null) => {
    if (bytes === null) throw new TypeError(`its response for ${txId} is not a transaction`);
    return bytes;
  };
  return {
    http: {
      path: '/wallet/gettransactionbyid',
      body: { value: txId },
      read: (json) => (Object.keys(json as object).length === 0 ? null : found(transactionBytes(json))),
    },
    grpc: {
      path: '/protocol.Wallet/GetTransactionById',
      request: writeBytes(1, hexToBytes(txId)),
      newSink: wholeMessage((bytes) => (bytes.length === 0 ? null : found(splitTransaction(bytes)))),
    },
  };
}
