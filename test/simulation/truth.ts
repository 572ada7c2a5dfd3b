import type { AccountHex } from '@quittance/tron/address';

type Row = Record<string, unknown>;

/** A USDT transfer on the final chain. Times are in Unix milliseconds. */
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

/** An acknowledged creation: the answer that the integrator received, which nothing may ever revoke. */
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
  /** Whether it was answered as a repeated request. */
  isReplay: boolean;
  /** The chain's head when it was acknowledged: an exact transfer in any later block must pay it. */
  headNumber: number;
  /** In simulated time. A transfer in a block from before the request must not pay it; one from after the acknowledgement must. */
  askedAtMs: number;
  acknowledgedAtMs: number;
  /** How many blocks had been examined before the request, as the witness counts them. */
  examinedBefore: number;
  /** Since when the chain hadn't been visible at the time of the request, if that matters; otherwise `null`. */
  darkSinceMs: number | null;
};

/** A transfer in a block of any branch, and when it appeared there, in simulated time. */
export type Appearance = { txId: string; logIndex: number; blockNumber: number; blockId: string; atMs: number };

/**
 * One of our addresses whose addition was acknowledged, and the chain's head at that time: transfers in any later block must be recorded.
 */
export type KnownAccount = { account: AccountHex; projectId: string; headNumber: number };

/** A webhook that reached a receiver. It may not have been answered, and the sender may not have received the answer. */
export type Received = {
  endpointId: string;
  projectId: string;
  /** In simulated time. */
  atMs: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** The secrets that the receiver accepts at that time, `whsec_…`. */
  secrets: readonly string[];
  /** What the deduplicating receiver did with it. */
  action: 'acted' | 'ignored-repetition' | 'refused';
};

/** Data shown to a caller of one project. */
export type Shown = { projectId: string; text: string };

/** The reality of a simulated world, apart from what the database says. */
export type Truth = {
  network: 'devnet';
  nowMs(): number;
  /** Queries on a separate superuser connection, in the database in which `installWitness` was called before anything else was written. */
  query(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  chain: {
    /** The block before the first watched one. */
    startNumber: number;
    slotMs: number;
    headNumber(): number;
    solidNumber(): number;
    /** Returns a block of the current branch. */
    block(number: number): { number: number; id: string; parentId: string; time: number } | null;
    /** Returns USDT transfers above 0 to these accounts in irreversible blocks after `startNumber` up to a height, in chain order. */
    transfersTo(accounts: ReadonlySet<string>, upToNumber: number): readonly TrueTransfer[];
    /** Does the same for USDT transfers from these accounts. */
    transfersFrom(accounts: ReadonlySet<string>, upToNumber: number): readonly TrueTransfer[];
    /** USDT transfers in blocks of all branches that ever existed, in the order in which they appeared. */
    appearances: readonly Appearance[];
  };
  projects: readonly KnownProject[];
  accounts: readonly KnownAccount[];
  acknowledged: readonly Acknowledged[];
  received: readonly Received[];
  shown: readonly Shown[];
  /** Every line that any process logged, and every error message that a caller received. */
  lines: readonly string[];
  /** Texts that must not appear anywhere: keys, secrets, the paths of nodes. */
  canaries: readonly string[];
  /** Periods in which no watcher could see blocks (all nodes failing, or no watcher alive), in simulated time. The last may be open. */
  blindSpans: readonly { fromMs: number; toMs: number | null }[];
  /** Since when all faults are over; `null` while they aren't. */
  calmSinceMs(): number | null;
};

/** A promise, and how to find that it was broken. */
export type Invariant = {
  number: number;
  title: string;
  /** `step` always holds, and is cheap to check. `quiet` holds once all faults are over and the queues are empty. */
  when: 'step' | 'quiet';
  /** Returns a line for each violation; empty if the promise holds. */
  check(truth: Truth): Promise<readonly string[]>;
};
