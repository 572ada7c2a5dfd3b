import type { AccountHex } from '@quittance/tron/address';

/** The network's state: one number per key, where zero means absent. Values can be addresses, flags or amounts. */
export interface StateReader {
  get(key: string): bigint;
}

/** Changes to a state that can still be kept or discarded. */
export interface Journal extends StateReader {
  set(key: string, value: bigint): void;
  /** Adds to a value. Throws if the sum is negative; the caller must make sure that it isn't. */
  add(key: string, amount: bigint): void;
  readonly changes: ReadonlyMap<string, bigint>;
}

/** Values by key, before or after a change. */
export type StateChange = readonly (readonly [key: string, value: bigint])[];

export interface State extends StateReader {
  /** Writes the values and returns the previous ones, so that a fork can restore them. */
  apply(change: StateChange): StateChange;
  entries(): StateChange;
}

export function createState(initial: StateChange): State {
  const values = new Map(initial);
  return {
    get: (key) => values.get(key) ?? 0n,
    apply(change) {
      const before = change.map(([key]) => [key, values.get(key) ?? 0n] as const);
      for (const [key, value] of change) {
        if (value === 0n) values.delete(key);
        else values.set(key, value);
      }
      return before;
    },
    entries: () => [...values],
  };
}

export function createJournal(base: StateReader): Journal {
  const changes = new Map<string, bigint>();
  const get = (key: string) => changes.get(key) ?? base.get(key);
  const set = (key: string, value: bigint) => {
    if (value < 0n) throw new RangeError(`devnet state ${key} would become negative (${value})`);
    changes.set(key, value);
  };
  return { changes, get, set, add: (key, amount) => set(key, get(key) + amount) };
}

/** Moves a journal's changes into the journal below it. */
export function keepChanges(from: Journal, into: Journal): void {
  for (const [key, value] of from.changes) into.set(key, value);
}

/** The value is TRX in sun. */
export const trxKey = (account: AccountHex) => `trx/${account}`;
/** The value is the time at which an account was created, in milliseconds. Zero means that it doesn't exist. */
export const createdKey = (account: AccountHex) => `created/${account}`;
export const balanceKey = (token: AccountHex, account: AccountHex) => `${token}/balance/${account}`;
export const allowanceKey = (token: AccountHex, owner: AccountHex, spender: AccountHex) =>
  `${token}/allowance/${owner}/${spender}`;
export const blacklistKey = (token: AccountHex, account: AccountHex) => `${token}/blacklist/${account}`;
/** The transfer fee in hundredths of a percent, and its maximum in micro-USDT. */
export const feeRateKey = (token: AccountHex) => `${token}/basisPoints`;
export const feeMostKey = (token: AccountHex) => `${token}/maximumFee`;
/** The contract that replaced this one, as a number, or zero if there's none. */
export const successorKey = (token: AccountHex) => `${token}/successor`;
export const deprecatedKey = (token: AccountHex) => `${token}/deprecated`;
export const issuedKey = (token: AccountHex) => `${token}/issued`;
/** `destroyBlackFunds` and `redeem` increase this number. */
export const destroyedKey = (token: AccountHex) => `${token}/destroyed`;
export const pausedKey = (token: AccountHex) => `${token}/paused`;
