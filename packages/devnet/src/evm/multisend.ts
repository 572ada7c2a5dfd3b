import type { AccountHex } from '@quittance/tron/address';
import {
  accountAt,
  accountWord,
  type CallContext,
  type CallOutcome,
  type ContractFunction,
  type LogJson,
  selectorOf,
  signatureOf,
  uintAt,
  uintWord,
} from './abi.ts';
import { FAKE_USDT, USDT } from './keys.ts';
import { moveTokens } from './token.ts';

export interface MultisendTransfer {
  readonly to: AccountHex;
  readonly value: bigint;
}

/** Real multisend contracts have a similar limit, because a transaction's energy is limited. */
export const MAX_RECIPIENTS = 200;

const OVERHEAD_ENERGY = 30_000;

/**
 * Pays many recipients in one transaction. The tokens are moved directly from the caller. A real contract would need the caller's approval
 * first, but that doesn't change the logs that recipients see.
 */
const MULTISEND_FUNCTION: ContractFunction = {
  name: 'multisend',
  inputs: ['token address', 'to address[]', 'amounts uint256[]'],
  outputs: [],
  mutability: 'Nonpayable',
  run: multisend,
};

export const MULTISEND_FUNCTIONS: readonly ContractFunction[] = [MULTISEND_FUNCTION];

/** Returns the calldata (hex) of `multisend(token, to[], amounts[])`. */
export function encodeMultisendCall(token: AccountHex, transfers: readonly MultisendTransfer[]): string {
  const count = uintWord(transfers.length);
  return [
    selectorOf(signatureOf(MULTISEND_FUNCTION)),
    accountWord(token),
    uintWord(3 * 32),
    uintWord((4 + transfers.length) * 32),
    count,
    ...transfers.map(({ to }) => accountWord(to)),
    count,
    ...transfers.map(({ value }) => uintWord(value)),
  ].join('');
}

function multisend({ state, caller, words }: CallContext): CallOutcome {
  const token = accountAt(words, 0);
  const [recipients, amounts] = [arrayAt(words, 1), arrayAt(words, 2)];
  if ((token !== USDT && token !== FAKE_USDT) || recipients === null || amounts === null) return null;
  if (recipients.length !== amounts.length) return null;
  const logs: LogJson[] = [];
  let energy = OVERHEAD_ENERGY;
  for (const index of recipients.keys()) {
    const [to, value] = [accountAt(recipients, index), uintAt(amounts, index)];
    const moved = to === null || value === null ? null : moveTokens(state, { token, from: caller, to, value });
    if (moved === null) return null;
    logs.push(...moved.logs);
    energy += moved.energy;
  }
  return { output: '', logs, energy, calls: recipients.map(() => token) };
}

/** Returns the words of the dynamic array whose offset is at `index`, or null if the array doesn't fit. */
function arrayAt(words: readonly string[], index: number): string[] | null {
  const offset = uintAt(words, index);
  if (offset === null || offset % 32n !== 0n || offset >= BigInt(words.length * 32)) return null;
  const start = Number(offset) / 32;
  const length = uintAt(words, start);
  if (length === null || length > BigInt(MAX_RECIPIENTS)) return null;
  const elements = words.slice(start + 1, start + 1 + Number(length));
  return elements.length === Number(length) ? elements : null;
}
