import type { AccountHex } from '@quittance/tron/address';
import { TRANSFER_TOPIC } from '@quittance/tron/usdt';
import {
  accountAt,
  accountWord,
  type CallContext,
  type CallOutcome,
  type ContractFunction,
  type LogJson,
  stringOutput,
  topicOf,
  uintAt,
  uintWord,
} from './abi.ts';
import { PAYER } from './keys.ts';
import {
  allowanceKey,
  balanceKey,
  blacklistKey,
  deprecatedKey,
  destroyedKey,
  feeMostKey,
  feeRateKey,
  issuedKey,
  type Journal,
  pausedKey,
  successorKey,
} from './state.ts';

const APPROVAL_TOPIC = topicOf('Approval(address,address,uint256)');

/** The energy that USDT's `transfer` uses on the main network. Writing a balance that was zero costs 65,000 more. */
const WARM_TRANSFER_ENERGY = 64_285;
const COLD_TRANSFER_ENERGY = 130_285;
const ALLOWANCE_ENERGY = 15_000;
const APPROVE_ENERGY = 22_600;
const ADMIN_ENERGY = 25_000;
const VIEW_ENERGY = 700;

/** The initial supply, before any `issue` or `redeem`. */
const FIRST_SUPPLY_MICRO = 1_000_000_000_000_000n;
const MAX_UINT256 = (1n << 256n) - 1n;

/** Tether's contract refuses fees of these values or more (`MAX_SETTABLE_BASIS_POINTS`, `MAX_SETTABLE_FEE`). */
const FEE_RATE_LIMIT = 20n;
const FEE_MOST_LIMIT = 50n;
const MICRO = 1_000_000n;

/** Tether's `transfer` declares a result, but returns zeros on success. */
const ZERO_WORD = uintWord(0);
const TRUE_WORD = uintWord(1);

/** A native token that works like Tether's on TRON, owned by the devnet's payer. A view that changes state is `Nonpayable`. */
export const TOKEN_FUNCTIONS: readonly ContractFunction[] = [
  view('name', [], 'string', () => stringOutput('Tether USD')),
  view('symbol', [], 'string', () => stringOutput('USDT')),
  view('decimals', [], 'uint8', () => uintWord(6)),
  view('totalSupply', [], 'uint256', ({ state, contract }) =>
    uintWord(FIRST_SUPPLY_MICRO + state.get(issuedKey(contract)) - state.get(destroyedKey(contract))),
  ),
  view('owner', [], 'address', () => accountWord(PAYER.account)),
  view('paused', [], 'bool', ({ state, contract }) => uintWord(state.get(pausedKey(contract)))),
  view('balanceOf', ['who address'], 'uint256', ({ state, contract, words }) => {
    const who = accountAt(words, 0);
    return who === null ? null : uintWord(state.get(balanceKey(contract, who)));
  }),
  view('allowance', ['_owner address', '_spender address'], 'uint256', ({ state, contract, words }) => {
    const [owner, spender] = [accountAt(words, 0), accountAt(words, 1)];
    return owner === null || spender === null ? null : uintWord(state.get(allowanceKey(contract, owner, spender)));
  }),
  view('isBlackListed', ['_maker address'], 'bool', ({ state, contract, words }) => {
    const who = accountAt(words, 0);
    return who === null ? null : uintWord(state.get(blacklistKey(contract, who)));
  }),
  write('transfer', ['_to address', '_value uint256'], ({ state, contract, caller, words }) => {
    const [to, value] = [accountAt(words, 0), uintAt(words, 1)];
    return to === null || value === null ? null : moveTokens(state, { token: contract, from: caller, to, value });
  }),
  write('transferFrom', ['_from address', '_to address', '_value uint256'], transferFrom),
  write('approve', ['_spender address', '_value uint256'], ({ state, contract, caller, words }) => {
    const [spender, value] = [accountAt(words, 0), uintAt(words, 1)];
    if (spender === null || value === null) return null;
    state.set(allowanceKey(contract, caller, spender), value);
    const topics = [APPROVAL_TOPIC, accountWord(caller), accountWord(spender)];
    return { output: TRUE_WORD, logs: [{ address: contract, topics, data: uintWord(value) }], energy: APPROVE_ENERGY };
  }),
  view('deprecated', [], 'bool', ({ state, contract }) => uintWord(state.get(deprecatedKey(contract)))),
  view('upgradedAddress', [], 'address', ({ state, contract }) => uintWord(state.get(successorKey(contract)))),
  view('basisPointsRate', [], 'uint256', ({ state, contract }) => uintWord(state.get(feeRateKey(contract)))),
  view('maximumFee', [], 'uint256', ({ state, contract }) => uintWord(state.get(feeMostKey(contract)))),
  admin('addBlackList', ['_evilUser address'], (context) => flag(context, 'AddedBlackList', 1n)),
  admin('removeBlackList', ['_clearedUser address'], (context) => flag(context, 'RemovedBlackList', 0n)),
  admin('destroyBlackFunds', ['_blackListedUser address'], destroyFunds),
  admin('issue', ['amount uint256'], (context) => changeSupply(context, 'Issue')),
  admin('redeem', ['amount uint256'], (context) => changeSupply(context, 'Redeem')),
  admin('pause', [], (context) => pauseIf(context, 'Pause', 1n)),
  admin('unpause', [], (context) => pauseIf(context, 'Unpause', 0n)),
  admin('setParams', ['newBasisPoints uint256', 'newMaxFee uint256'], setParams),
  admin('deprecate', ['_upgradedAddress address'], ({ state, contract, words }) => {
    const successor = accountAt(words, 0);
    if (successor === null) return null;
    state.set(deprecatedKey(contract), 1n);
    state.set(successorKey(contract), BigInt(`0x${successor}`));
    return { topics: [topicOf('Deprecate(address)')], data: accountWord(successor) };
  }),
];

/** Returns the token balances of a new devnet, where the payer holds everything. */
export function genesisBalances(token: AccountHex): [string, bigint] {
  return [balanceKey(token, PAYER.account), FIRST_SUPPLY_MICRO];
}

/**
 * Moves tokens and writes the Transfer log. Returns null (reverted) if the contract is paused, an account is blacklisted, or the balance is
 * too low. If the owner has set a fee, there are two logs: one to the recipient, with the amount minus the fee, and one to the owner
 * (`StandardTokenWithFees.transfer`).
 */
export function moveTokens(
  state: Journal,
  { token, from, to, value }: { token: AccountHex; from: AccountHex; to: AccountHex; value: bigint },
): CallOutcome {
  if (state.get(pausedKey(token)) > 0n || state.get(blacklistKey(token, from)) > 0n) return null;
  if (state.get(balanceKey(token, from)) < value) return null;
  const energy = state.get(balanceKey(token, to)) === 0n ? COLD_TRANSFER_ENERGY : WARM_TRANSFER_ENERGY;
  const successor = state.get(successorKey(token));
  const share = (value * state.get(feeRateKey(token))) / 10_000n;
  const most = state.get(feeMostKey(token));
  const fee = share > most ? most : share;
  const move = (receiver: AccountHex, part: bigint): LogJson => {
    state.add(balanceKey(token, from), -part);
    state.add(balanceKey(token, receiver), part);
    return {
      // A replaced contract forwards calls to its successor, which writes the log.
      address: successor === 0n ? token : (successor.toString(16).padStart(40, '0') as AccountHex),
      topics: [TRANSFER_TOPIC, accountWord(from), accountWord(receiver)],
      data: uintWord(part),
    };
  };
  const logs = [move(to, value - fee), ...(fee > 0n ? [move(PAYER.account, fee)] : [])];
  return { output: ZERO_WORD, logs, energy };
}

function transferFrom({ state, contract, caller, words }: CallContext): CallOutcome {
  const [from, to, value] = [accountAt(words, 0), accountAt(words, 1), uintAt(words, 2)];
  if (from === null || to === null || value === null) return null;
  const key = allowanceKey(contract, from, caller);
  const allowance = state.get(key);
  if (allowance < value) return null;
  if (allowance < MAX_UINT256) state.set(key, allowance - value);
  const moved = moveTokens(state, { token: contract, from, to, value });
  return moved === null ? null : { ...moved, energy: moved.energy + ALLOWANCE_ENERGY };
}

function flag({ state, contract, words }: CallContext, event: string, value: bigint): OwnerEvent | null {
  const who = accountAt(words, 0);
  if (who === null) return null;
  state.set(blacklistKey(contract, who), value);
  return { topics: [topicOf(`${event}(address)`), accountWord(who)], data: '' };
}

/** Reverts if the account isn't frozen. Logs no Transfer. */
function destroyFunds({ state, contract, words }: CallContext): OwnerEvent | null {
  const who = accountAt(words, 0);
  if (who === null || state.get(blacklistKey(contract, who)) === 0n) return null;
  const funds = state.get(balanceKey(contract, who));
  state.set(balanceKey(contract, who), 0n);
  state.add(destroyedKey(contract), funds);
  return { topics: [topicOf('DestroyedBlackFunds(address,uint256)'), accountWord(who)], data: uintWord(funds) };
}

/** Changes the owner's balance. Logs no Transfer either. */
function changeSupply({ state, contract, words }: CallContext, event: 'Issue' | 'Redeem'): OwnerEvent | null {
  const amount = uintAt(words, 0);
  const key = balanceKey(contract, PAYER.account);
  if (amount === null || (event === 'Redeem' && state.get(key) < amount)) return null;
  state.add(key, event === 'Issue' ? amount : -amount);
  state.add(event === 'Issue' ? issuedKey(contract) : destroyedKey(contract), amount);
  return { topics: [topicOf(`${event}(uint256)`)], data: uintWord(amount) };
}

/** Like the real contract, reverts if there's nothing to change. */
function pauseIf({ state, contract }: CallContext, event: string, value: bigint): OwnerEvent | null {
  if (state.get(pausedKey(contract)) === value) return null;
  state.set(pausedKey(contract), value);
  return { topics: [topicOf(`${event}()`)], data: '' };
}

function setParams({ state, contract, words }: CallContext): OwnerEvent | null {
  const [rate, most] = [uintAt(words, 0), uintAt(words, 1)];
  if (rate === null || most === null || rate >= FEE_RATE_LIMIT || most >= FEE_MOST_LIMIT) return null;
  state.set(feeRateKey(contract), rate);
  state.set(feeMostKey(contract), most * MICRO);
  return { topics: [topicOf('Params(uint256,uint256)')], data: uintWord(rate) + uintWord(most * MICRO) };
}

function view(
  name: string,
  inputs: string[],
  output: string,
  read: (context: CallContext) => string | null,
): ContractFunction {
  const run = (context: CallContext): CallOutcome => {
    const result = read(context);
    return result === null ? null : { output: result, logs: [], energy: VIEW_ENERGY };
  };
  return { name, inputs, outputs: [output], mutability: 'View', run };
}

function write(name: string, inputs: string[], run: (context: CallContext) => CallOutcome): ContractFunction {
  return { name, inputs, outputs: ['bool'], mutability: 'Nonpayable', run };
}

type OwnerEvent = Pick<LogJson, 'topics' | 'data'>;

function admin(name: string, inputs: string[], act: (context: CallContext) => OwnerEvent | null): ContractFunction {
  const run = (context: CallContext): CallOutcome => {
    if (context.caller !== PAYER.account) return null;
    const event = act(context);
    return event === null
      ? null
      : { output: '', logs: [{ address: context.contract, ...event }], energy: ADMIN_ENERGY };
  };
  return { name, inputs, outputs: [], mutability: 'Nonpayable', run };
}
