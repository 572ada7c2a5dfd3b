import type { AccountHex } from '@quittance/tron/address';

type Row = Record<string, unknown>;

/** A USDT transfer as the final chain has it. Times are in Unix milliseconds. */
export type TrueTransfer = {
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: number;
  from: AccountHex;
  to: AccountHex;
  amountMicro: bigint;
};

/** A project of the world, as its operator and its integrator know it. */
type KnownProject = { id: string; keyId: string };

/** A creation that was acknowledged: what the integrator was told, which nothing may ever take back. */
export type Acknowledged = {
  projectId: string;
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  /** UUID. */
  invoiceId: string;
  account: AccountHex;
  requestedMicro: bigint;
  payableMicro: bigint;
  expiresAt: number;
  /** Whether it was answered as a repetition. */
  isReplay: boolean;
  /** The head of the chain when it was acknowledged: an exact transfer in any later block must pay it. */
  headNumber: number;
  /** Virtual time. What was in a block before the order was asked for must not pay it, what comes after it was acknowledged must. */
  askedAtMs: number;
  acknowledgedAtMs: number;
  /** Blocks that were examined before it was asked for, as the witness counts them. */
  examinedBefore: number;
  /** Since when nobody saw the chain when it was asked for, where that is judged; else `null`. */
  darkSinceMs: number | null;
};

/** A transfer as it stood in a block of any branch, and when it came to stand there, in virtual time. */
export type Appearance = { txId: string; logIndex: number; blockNumber: number; blockId: string; atMs: number };

/** An address of ours whose addition was acknowledged, and the head of the chain then: what comes in any later block must be recorded. */
export type KnownAccount = { account: AccountHex; projectId: string; headNumber: number };

/** A webhook as it reached a receiver. Whether it was answered, and whether the sender heard it, is another question. */
export type Received = {
  endpointId: string;
  projectId: string;
  /** Virtual time. */
  atMs: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** The secrets that the receiver accepts at that time, `whsec_…`. */
  secrets: readonly string[];
  /** What the deduplicating receiver did with it. */
  action: 'acted' | 'ignored-repetition' | 'refused';
};

/** Something that a caller of one project was shown. */
export type Shown = { projectId: string; text: string };

/** What is really so in a simulated world, beside what the database says. */
export type Truth = {
  network: 'devnet';
  nowMs(): number;
  /** On one connection of its own, as a superuser, in the database in which `installWitness` was called before anything else was written. */
  query(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  chain: {
    /** The block before the first one that is watched. */
    startNumber: number;
    slotMs: number;
    headNumber(): number;
    solidNumber(): number;
    /** A block of the present branch. */
    block(number: number): { number: number; id: string; parentId: string; time: number } | null;
    /** USDT transfers to these accounts in irreversible blocks after `startNumber`, amounts above 0, up to a height; in chain order. */
    transfersTo(accounts: ReadonlySet<string>, upToNumber: number): readonly TrueTransfer[];
    /** The same for USDT transfers from these accounts. */
    transfersFrom(accounts: ReadonlySet<string>, upToNumber: number): readonly TrueTransfer[];
    /** USDT transfers in blocks of all branches there ever were, in the order in which they appeared. */
    appearances: readonly Appearance[];
  };
  projects: readonly KnownProject[];
  accounts: readonly KnownAccount[];
  acknowledged: readonly Acknowledged[];
  received: readonly Received[];
  shown: readonly Shown[];
  /** Every line that any process logged, and every error message that a caller saw. */
  lines: readonly string[];
  /** Texts that must not be seen anywhere: keys, secrets, the paths of nodes. */
  canaries: readonly string[];
  /** How long no watcher could see blocks (all nodes sick, or no watcher alive), as spans of virtual time; the last may be open. */
  blindSpans: readonly { fromMs: number; toMs: number | null }[];
  /** Since when all faults are over; `null` while they are not. */
  calmSinceMs(): number | null;
};

/** One promise and how to find that it was broken. */
export type Invariant = {
  number: number;
  title: string;
  /** `step`: holds at every moment, and is cheap; `quiet`: holds when all faults are over and the queues are empty. */
  when: 'step' | 'quiet';
  /** A line for each violation; empty when the promise holds. */
  check(truth: Truth): Promise<readonly string[]>;
};
