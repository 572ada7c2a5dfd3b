import type { AccountHex } from '@quittance/tron/address';
import { type CallOutcome, type ContractFunction, selectorOf, signatureOf, wordsOf } from './abi.ts';
import { FAKE_USDT, MULTISEND, NOISE, USDT } from './keys.ts';
import { MULTISEND_FUNCTIONS } from './multisend.ts';
import { NOISE_FUNCTIONS } from './noise.ts';
import type { Journal } from './state.ts';
import { TOKEN_FUNCTIONS } from './token.ts';

/** A contract that runs as native code instead of in a virtual machine. */
interface NativeContract {
  readonly name: string;
  readonly functions: readonly ContractFunction[];
  readonly bySelector: ReadonlyMap<string, ContractFunction>;
}

const CONTRACTS: ReadonlyMap<AccountHex, NativeContract> = new Map([
  [USDT, native('TetherToken', TOKEN_FUNCTIONS)],
  [FAKE_USDT, native('TetherToken', TOKEN_FUNCTIONS)],
  [MULTISEND, native('Multisend', MULTISEND_FUNCTIONS)],
  [NOISE, native('Noise', NOISE_FUNCTIONS)],
]);

export function contractAt(account: AccountHex): NativeContract | null {
  return CONTRACTS.get(account) ?? null;
}

/**
 * Runs calldata (hex) against a contract. Returns null if it reverts, which also happens for an unknown function and if TRX are sent with
 * the call.
 */
export function callContract(
  state: Journal,
  call: {
    readonly contract: AccountHex;
    readonly owner: AccountHex;
    readonly data: string;
    readonly callValueSun: bigint;
  },
): CallOutcome {
  const called = contractAt(call.contract)?.bySelector.get(call.data.slice(0, 8).toLowerCase());
  if (called === undefined || call.callValueSun > 0n) return null;
  const words = wordsOf(call.data);
  return called.run({ state, contract: call.contract, caller: call.owner, words });
}

function native(name: string, functions: readonly ContractFunction[]): NativeContract {
  return { name, functions, bySelector: new Map(functions.map((each) => [selectorOf(signatureOf(each)), each])) };
}
