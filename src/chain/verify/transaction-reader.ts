import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../domain/errors.ts';
import type { TransactionFacts } from '../../domain/lookup/transaction-facts.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { ReadTransaction, TransactionQuestion } from '../../payments/look-up-transaction.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { AccountHex } from '../../tron/address.ts';
import type { Node } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { type RecogniseDeps, recogniseNodes } from '../nodes/recognise-nodes.ts';
import { AnswerTooLarge } from '../nodes/refusal.ts';
import { createTurns } from '../nodes/turns.ts';
import { readTransaction } from './read-transaction.ts';

export type TransactionReaderDeps = RecogniseDeps & {
  db: Sql;
  pool: Pick<NodePool, 'available' | 'setGenesis'>;
  usdt: AccountHex;
  now(): UnixMs;
  log: Logger;
  /** Takes two of the requests that this link and client may spend; false when they are used up for now. */
  spend(question: Pick<TransactionQuestion, 'askedFor' | 'client'>): boolean;
};

/** A payer waits for so long; the node's answer is kept for when they ask again. */
const PATIENCE_MS = 5000;
/** The watcher asks the same nodes, and goes first: few of ours are under way, and few more wait. */
const MAX_UNDER_WAY = 2;
const MAX_QUESTIONS = 20;
/** At most four questions wait for one link, so that it takes several links to fill the line. */
const MAX_OF_ONE_LINK = 4;
/** A node that fails, or does not have the transaction, is one of several: another one may have it. */
const MAX_NODES = 2;
/** A whole question: either two nodes know no such transaction, or the first one shows it. Where one fails it takes more. */
const REQUESTS_A_SPEND = 2;
/**
 * A transaction in an irreversible block stays, and so does its size; above that block a transaction comes, moves and goes with
 * each block.
 */
const FINAL_MS = 10 * 60_000;
const FLEETING_MS = 3000;
/** Five megabytes at most. A transaction with more transfers is not kept: it is rare, and asking again costs two requests. */
const MAX_KEPT = 500;
const MAX_KEPT_TRANSFERS = 50;

const UNAVAILABLE = { kind: 'unavailable', why: 'for-now' } as const;

type Kept = { facts: TransactionFacts; readAt: UnixMs; keptMs: number };

/**
 * Asks the nodes of one network about transactions, for payers: bounded, and each question once at a time. Answers are kept for
 * each invoice apart, so that how fast one comes never tells that somebody else has asked. Never rejects: what cannot be
 * read is `unavailable`.
 */
export function createTransactionReader(deps: TransactionReaderDeps): ReadTransaction {
  const { now } = deps;
  const kept = new Map<string, Kept>();
  const open = new Map<string, Promise<TransactionFacts>>();
  const turns = createTurns(MAX_UNDER_WAY);
  const read = async (name: string, question: TransactionQuestion): Promise<TransactionFacts> => {
    const facts = await turns(() => askNodes(deps, question));
    open.delete(name);
    if (transferCount(facts) > MAX_KEPT_TRANSFERS) return facts;
    kept.set(name, { facts, readAt: now(), keptMs: staysSo(facts, question) ? FINAL_MS : FLEETING_MS });
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value ?? name);
    return facts;
  };
  return async (question) => {
    const name = `${question.askedFor} ${question.txId}`;
    const known = kept.get(name);
    kept.delete(name);
    // A clock that was set back makes an answer neither fresh nor old.
    const ageMs = known === undefined ? Number.NaN : now() - known.readAt;
    if (known !== undefined && ageMs >= 0 && ageMs < known.keptMs) {
      // At the end again: the first of a Map is the least recently used.
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

/** Decided when it is read: a block of that height is final, but later it may be another one. */
function staysSo(facts: TransactionFacts, { solidNumber }: TransactionQuestion): boolean {
  if (facts.kind === 'unavailable') return facts.why === 'too-large';
  if (facts.kind !== 'done' && facts.kind !== 'failed') return false;
  return solidNumber !== null && facts.blockNumber <= solidNumber;
}

function transferCount(facts: TransactionFacts): number {
  return facts.kind === 'done' ? facts.usdt.length + facts.otherTokens.length : 0;
}

/** Asks nodes in order of preference, until one has it. All that were asked must say that there is none. */
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
        // Those who ask use the requests up, and warnings of that would fill the log at their pace.
        const level = why === 'used-up' ? 'debug' : 'warn';
        const reason = (error as AppError).message;
        log[level]({ network, node: node.origin, txId, reason }, 'a look-up got no answer from a node');
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

/** Pays for the requests of one question, some at once: half a question would be paid for nothing. */
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
      throw new AppError('NO_NODE', 'the requests for look-ups are used up for now', { retryable: true });
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
