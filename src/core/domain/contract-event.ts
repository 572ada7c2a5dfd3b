import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';

/** A state of the USDT contract or of one of its accounts. */
export type ContractState = 'paused' | 'frozen';

/**
 * Defines how Quittance handles each event of Tether's contract, like the table in docs/explained/chain-truth.md. `arguments` are 32-byte
 * words. `begins` and `ends` name the state that the event begins or ends; `STATE_EFFECTS` lists the effects of each state. `alarm` reports
 * a single event and is closed by an operator. An event with none of these doesn't affect shops.
 */
export const CONTRACT_EVENTS = {
  Pause: { arguments: [], begins: 'paused' },
  Unpause: { arguments: [], ends: 'paused' },
  AddedBlackList: { arguments: ['address'], begins: 'frozen' },
  RemovedBlackList: { arguments: ['address'], ends: 'frozen' },
  // The contract logs no Transfer for this event, so the ledger records it as a transfer to `BURNED_TO`.
  DestroyedBlackFunds: { arguments: ['address', 'uint256'], alarm: 'funds-destroyed' },
  Deprecate: { arguments: ['address'], alarm: 'contract-event' },
  Params: { arguments: ['uint256', 'uint256'], alarm: 'contract-event' },
  // These only change the contract owner's balance.
  Issue: { arguments: ['uint256'] },
  Redeem: { arguments: ['uint256'] },
} as const satisfies Record<string, EventRow>;

type EventRow = {
  arguments: readonly ('address' | 'uint256')[];
  begins?: ContractState;
  ends?: ContractState;
  alarm?: 'funds-destroyed' | 'contract-event';
};

/** `page` is also the reason that an open page shows; `lookUp` is the answer about a payer's failed transaction. */
export const STATE_EFFECTS = {
  paused: { alarm: 'contract-paused', allocation: 'unchanged', page: 'paused', lookUp: 'paused' },
  frozen: { alarm: 'address-frozen', allocation: 'passed over', page: 'frozen', lookUp: 'payer_frozen' },
} as const;

export type ContractEventName = keyof typeof CONTRACT_EVENTS;

/** The events, by the topic in their logs, which is the keccak256 hash of a signature such as `AddedBlackList(address)`. */
export const CONTRACT_EVENT_TOPICS: ReadonlyMap<string, ContractEventName> = new Map(
  Object.entries(CONTRACT_EVENTS).map(([name, row]) => [
    bytesToHex(keccak_256(utf8ToBytes(`${name}(${row.arguments.join()})`))),
    name as ContractEventName,
  ]),
);

export function contractEventRow(name: ContractEventName): EventRow {
  return CONTRACT_EVENTS[name];
}

/** An event emitted by the contract. `account` is its first argument, if that is an address. */
export type ContractEvent = {
  name: ContractEventName;
  txId: string;
  logIndex: number;
  account: AccountHex | null;
  /** Set only for `DestroyedBlackFunds`. */
  amountMicro: bigint | null;
  /** The arguments, as text for people. */
  detail: string;
};

/** The account made of zero bytes, whose key no one has. */
export const BURNED_TO = '0'.repeat(40) as AccountHex;
