import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, accountFromHex41 } from '@quittance/tron/address';
import { encodeRawTransaction, type RawTransaction } from '@quittance/tron/raw-transaction';
import { txIdOf } from '@quittance/tron/transaction';
import { referenceOf } from '../chain/admission.ts';
import type { Block } from '../chain/block.ts';
import type { Ledger, LedgerView, SubmitResult } from '../chain/ledger.ts';
import {
  accountJson,
  accountParameter,
  exactBoolean,
  exactInteger,
  exactText,
  hexParameter,
  idParameter,
  integerParameter,
  ParameterError,
  type Parameters,
  textParameter,
} from '../chain/parameters.ts';
import type { Witness } from '../chain/schedule.ts';
import { type ContractFunction, selectorOf, signatureOf } from '../evm/abi.ts';
import { callContract, contractAt } from '../evm/contracts.ts';
import { ENERGY_PRICE_SUN, messageHex } from '../evm/execute.ts';
import { PAYER } from '../evm/keys.ts';
import { createdKey, createJournal, type StateReader, trxKey } from '../evm/state.ts';
import { readSent, type SentTransaction, withoutResult } from '../wire/hidden-fields.ts';
import { blockJson, type InfoJson, infoJson, transactionJson } from './block-json.ts';
import type { Endpoint, EndpointContext } from './endpoint.ts';
import { blockById, findBlock, rangeOf } from './find-block.ts';
import { JSON_RPC_PATH, jsonRpcJson } from './json-rpc.ts';
import { transactionOfJson, unsignedTransactionJson } from './transaction-json.ts';

const SHARED: Readonly<Record<string, Endpoint>> = {
  getnowblock: (context) => wholeBlock(context, context.view.headNumber),
  getblock: getBlock,
  getblockbynum: (context) => wholeBlock(context, exactInteger(context.parameters, 'num')),
  getblockbyid: (context) => {
    const block = blockById(context.view, idParameter(context.parameters, 'value'));
    return block === null ? {} : blockJson(block, { detail: true, visible: context.visible });
  },
  getblockbylimitnext: getBlockByLimitNext,
  gettransactionbyid: ({ view, parameters, visible }) => {
    const found = view.transaction(idParameter(parameters, 'value'));
    return found === null ? {} : transactionJson(found.transaction, visible);
  },
  gettransactioninfobyid: ({ view, parameters, visible }) => {
    const found = view.transaction(idParameter(parameters, 'value'));
    return found === null ? {} : infoJson(found.block, found.transaction, visible);
  },
  gettransactioninfobyblocknum: ({ view, parameters, visible }): InfoJson[] | object => {
    const number = exactInteger(parameters, 'num');
    if (number <= 0) return {};
    const block = view.block(number);
    return block === null ? [] : block.transactions.map((transaction) => infoJson(block, transaction, visible));
  },
  listwitnesses: ({ view, witnesses, visible }) => witnessesJson(view, { visible, witnesses }),
  getaccount: getAccount,
  triggerconstantcontract: constantCallJson,
  estimateenergy: estimateEnergyJson,
};

const FULL_ONLY: Readonly<Record<string, Endpoint>> = {
  getaccountresource: ({ view, parameters }) =>
    accountResourceJson(view.state(), accountParameter(parameters, 'address')),
  getchainparameters: chainParametersJson,
  getcontract: ({ parameters, visible }) => contractJson(accountParameter(parameters, 'value'), visible),
  triggersmartcontract: triggerJson,
  broadcasttransaction: broadcastJson,
  broadcasthex: broadcastHexJson,
  getnodeinfo: nodeInfoJson,
};

/** Every path of a devnet node, and whether it serves the full or the solid chain. */
export const ENDPOINTS: ReadonlyMap<string, { readonly kind: 'full' | 'solid'; readonly run: Endpoint }> = new Map([
  ...under('/wallet', 'full', { ...SHARED, ...FULL_ONLY }),
  ...under('/walletsolidity', 'solid', SHARED),
  [JSON_RPC_PATH, { kind: 'full', run: jsonRpcJson }],
]);

function under(prefix: string, kind: 'full' | 'solid', endpoints: Readonly<Record<string, Endpoint>>) {
  return Object.entries(endpoints).map(([name, run]) => [`${prefix}/${name}`, { kind, run }] as const);
}

/** Without `detail`, it returns only the header. */
function getBlock({ view, parameters, visible }: EndpointContext): unknown {
  const detail = exactBoolean(parameters, 'detail');
  const block = findBlock(view, exactText(parameters, 'id_or_num'));
  return block === null ? {} : blockJson(block, { detail, visible });
}

function getBlockByLimitNext({ view, parameters, visible }: EndpointContext): unknown {
  const blocks = rangeOf(view, exactInteger(parameters, 'startNum'), exactInteger(parameters, 'endNum'));
  return blocks === null ? {} : { block: blocks.map((block) => blockJson(block, { detail: true, visible })) };
}

function wholeBlock({ view, visible }: EndpointContext, number: number): unknown {
  const block = view.block(number);
  return block === null ? {} : blockJson(block, { detail: true, visible });
}

/** Hex that isn't an address is treated as an account that doesn't exist. */
function getAccount({ view, witnesses, parameters, visible }: EndpointContext): unknown {
  const account = visible
    ? accountParameter(parameters, 'address')
    : accountFromHex41(idParameter(parameters, 'address'));
  return account === null ? {} : accountInfoJson(view.state(), account, { visible, witnesses });
}

function nodeInfoJson({ ledger, view }: EndpointContext): unknown {
  const describe = (number: number) => `Num:${number},ID:${ledger.view('full').block(number)?.id ?? ''}`;
  return {
    beginSyncNum: 0,
    block: describe(view.headNumber),
    solidityBlock: describe(Math.min(view.headNumber, ledger.solidNumber())),
    currentConnectCount: 0,
    activeConnectCount: 0,
    passiveConnectCount: 0,
    totalFlow: 0,
    peerList: [],
    configNodeInfo: { codeVersion: '4.8.0', p2pVersion: 'devnet', supportConstant: true },
  };
}

/** How long a transaction built by the node may wait (java-tron `trx.expiration.timeInMilliseconds`). */
const NODE_EXPIRATION_MS = 60_000;

/** The energy that a reverted constant call costs. */
const REVERTED_CALL_ENERGY = 4_100;

type Trigger = Extract<RawTransaction['contract'], { kind: 'trigger' }>;

/** `triggersmartcontract` builds an unsigned call. As by default in java-tron, it refers to the solid block, which no fork can remove. */
function triggerJson({ ledger, parameters, visible, now }: EndpointContext): unknown {
  const contract = triggerOf(parameters);
  if (contractAt(contract.contract) === null) return missingContractJson(visible);
  const rawData = encodeRawTransaction({
    ...draft(ledger.view('full'), ledger.view('solid'), now),
    feeLimitSun: BigInt(integerParameter(parameters, 'fee_limit')),
    permissionId: integerParameter(parameters, 'Permission_id'),
    contract,
  });
  return {
    result: { result: true },
    transaction: { visible, ...unsignedTransactionJson(bytesToHex(rawData), visible) },
  };
}

/** `triggerconstantcontract` runs a call on the state at the endpoint's head, and discards its changes. */
function constantCallJson({ ledger, view, parameters, visible, now }: EndpointContext): unknown {
  const contract = triggerOf(parameters);
  if (contractAt(contract.contract) === null) return missingContractJson(visible);
  const outcome = callContract(createJournal(view.state()), contract);
  const rawData = encodeRawTransaction({
    ...draft(view, ledger.view('solid'), now),
    feeLimitSun: 0n,
    permissionId: 0,
    contract,
  });
  return {
    result: { result: true, ...(outcome === null ? { message: shownMessage('REVERT opcode executed', visible) } : {}) },
    energy_used: outcome?.energy ?? REVERTED_CALL_ENERGY,
    constant_result: [outcome?.output ?? ''],
    ...(outcome === null || outcome.logs.length === 0 ? {} : { logs: outcome.logs }),
    transaction: {
      ret: [outcome === null ? { ret: 'FAILED' } : {}],
      visible,
      ...unsignedTransactionJson(bytesToHex(rawData), visible),
    },
  };
}

/** `estimateenergy` returns the energy that a call needs in the state at the endpoint's head. */
function estimateEnergyJson({ view, parameters, visible }: EndpointContext): unknown {
  const contract = triggerOf(parameters);
  if (contractAt(contract.contract) === null) return missingContractJson(visible);
  const outcome = callContract(createJournal(view.state()), contract);
  if (outcome !== null) return { result: { result: true }, energy_required: outcome.energy };
  return { result: { code: 'CONTRACT_EXE_ERROR', message: messageHex('REVERT opcode executed') } };
}

/** `broadcasttransaction` accepts the signed transaction as JSON. */
function broadcastJson({ ledger, parameters }: EndpointContext): unknown {
  const submitted = submit(ledger, transactionOfJson(parameters));
  if (submitted.kind === 'accepted') return { result: true, txid: submitted.id };
  const { code, message } = submitted.refusal;
  return { code, txid: submitted.id, message: messageHex(message) };
}

/**
 * `broadcasthex` accepts the signed transaction as the hex of its bytes. Unknown fields are kept (java-tron with `allowProtoFilterNum` 0,
 * as on the main network), and results are cleared (`Wallet.broadcastTransaction`). Messages are plain text, unlike in
 * `broadcasttransaction`.
 */
function broadcastHexJson({ ledger, parameters }: EndpointContext): unknown {
  const transaction = readSent(hexToBytes(hexParameter(parameters, 'transaction')));
  if (transaction === null) throw new ParameterError('transaction must be a Transaction in hexadecimal');
  const submitted = submit(ledger, withoutResult(transaction));
  const signature = transaction.signatures.map((each) => bytesToHex(each));
  const accepted = submitted.kind === 'accepted';
  return {
    result: accepted,
    code: accepted ? 'SUCCESS' : submitted.refusal.code,
    txid: submitted.id,
    message: accepted ? '' : submitted.refusal.message,
    transaction: accepted
      ? JSON.stringify({ visible: true, signature, ...unsignedTransactionJson(bytesToHex(transaction.rawData), true) })
      : bytesToHex(transaction.rawData),
  };
}

function submit(ledger: Ledger, transaction: SentTransaction): SubmitResult {
  try {
    return ledger.submit(transaction);
  } catch (error) {
    if (error instanceof TypeError) {
      throw new ParameterError(`transaction ${txIdOf(transaction.rawData)} cannot be read: ${error.message}`);
    }
    throw error;
  }
}

/** Returns the fields that all transactions built by the node have. */
function draft(
  view: LedgerView,
  solid: LedgerView,
  now: () => number,
): Pick<RawTransaction, 'refBlockBytes' | 'refBlockHash' | 'expirationMs' | 'timestampMs' | 'memo'> {
  const [head, reference] = [view.block(view.headNumber), solid.block(solid.headNumber)];
  if (head === null || reference === null) throw new Error('devnet has no head');
  return {
    ...referenceOf(reference),
    expirationMs: head.header.timestamp + NODE_EXPIRATION_MS,
    timestampMs: now(),
    memo: '',
  };
}

/** Reads the call in a request: either `data`, or `function_selector` and `parameter`, as TronWeb sends them. */
function triggerOf(parameters: Parameters): Trigger {
  const signature = textParameter(parameters, 'function_selector');
  const data =
    signature === '' ? hexParameter(parameters, 'data') : selectorOf(signature) + hexParameter(parameters, 'parameter');
  return {
    kind: 'trigger',
    owner: accountParameter(parameters, 'owner_address'),
    contract: accountParameter(parameters, 'contract_address'),
    data,
    callValueSun: BigInt(integerParameter(parameters, 'call_value')),
  };
}

function missingContractJson(visible: boolean) {
  const message = shownMessage('Smart contract is not exist.', visible);
  return { result: { code: 'CONTRACT_VALIDATE_ERROR', message } };
}

/** A message is hex or, with `visible`, plain text. */
function shownMessage(text: string, visible: boolean): string {
  return visible ? text : messageHex(text);
}

/** The operations that java-tron allows a new account's active permission to perform. */
const ACTIVE_OPERATIONS = '7fff1fc0033ec30f000000000000000000000000000000000000000000000000';

/** A producer's votes, about the median on the main network. */
const VOTES = 500_000_000;
const FEW_VOTES = 1_000_000;

const SLOT_MS = 3_000;

/** The fields that java-tron shows for an account without stakes: its resource windows, in slots per day. */
const UNSTAKED = {
  net_window_size: 28_800,
  account_resource: { energy_window_size: 28_800 },
  frozenV2: [{}, { type: 'ENERGY' }, { type: 'TRON_POWER' }],
};

/** Returns an account, or `{}` if it doesn't exist. A producer's `witness_permission` contains the key that signs its blocks. */
function accountInfoJson(
  state: StateReader,
  account: AccountHex,
  { visible, witnesses }: { visible: boolean; witnesses: readonly Witness[] },
): object {
  const created = state.get(createdKey(account));
  const producer = witnesses.find((each) => each.account === account);
  if (created === 0n && producer === undefined) return {};
  const balance = Number(state.get(trxKey(account)));
  const keys = (key: AccountHex) => [{ address: accountJson(key, visible), weight: 1 }];
  const witness = (signer: AccountHex) => ({
    witness_permission: { type: 'Witness', id: 1, permission_name: 'witness', threshold: 1, keys: keys(signer) },
  });
  return {
    address: accountJson(account, visible),
    ...(balance === 0 ? {} : { balance }),
    // If a producer was added later, there's no transaction that created its account.
    ...(created === 0n ? {} : { create_time: Number(created) }),
    ...(producer === undefined ? {} : { is_witness: true }),
    net_window_size: UNSTAKED.net_window_size,
    account_resource: UNSTAKED.account_resource,
    owner_permission: { permission_name: 'owner', threshold: 1, keys: keys(account) },
    ...(producer === undefined ? {} : witness(producer.signer.account)),
    active_permission: [
      {
        type: 'Active',
        id: 2,
        permission_name: 'active',
        threshold: 1,
        operations: ACTIVE_OPERATIONS,
        keys: keys(account),
      },
    ],
    frozenV2: UNSTAKED.frozenV2,
  };
}

/** Returns the bandwidth and energy of an account, or `{}` if it doesn't exist. On a devnet, no one has staked anything. */
function accountResourceJson(state: StateReader, account: AccountHex): object {
  if (state.get(createdKey(account)) === 0n) return {};
  return { freeNetLimit: 600, TotalNetLimit: 43_200_000_000, TotalEnergyLimit: 180_000_000_000 };
}

/** Returns all current and previous producers. False fields are omitted, so a previous producer has no `isJobs`. */
function witnessesJson(view: LedgerView, { visible, witnesses }: { visible: boolean; witnesses: readonly Witness[] }) {
  const latest = new Map<number, Block>();
  const produced = view.produced();
  // Forks may skip turns, so a producer's last block can be further back than one round, but two rounds are always enough.
  const lowest = Math.max(1, view.headNumber - 2 * witnesses.length);
  for (let number = view.headNumber; number >= lowest && latest.size < witnesses.length; number -= 1) {
    const block = view.block(number);
    if (block !== null && !latest.has(block.turn)) latest.set(block.turn, block);
  }
  const shown = witnesses.map(({ account, index, isActive }) => ({
    address: accountJson(account, visible),
    voteCount: isActive ? VOTES : FEW_VOTES,
    url: `https://producer-${index}.devnet.invalid`,
    ...((produced[index] ?? 0) > 0 ? { totalProduced: produced[index] } : {}),
    ...latestOf(latest.get(index)),
    ...(isActive ? { isJobs: true } : {}),
  }));
  return { witnesses: shown };
}

/** Slots are counted from 1970 in units of the main network's slot time, whatever the devnet's block time is. */
function latestOf(block: Block | undefined): object {
  if (block === undefined) return {};
  const { number, timestamp } = block.header;
  return { latestBlockNum: number, latestSlotNum: Math.floor(timestamp / SLOT_MS) };
}

function chainParametersJson() {
  return {
    chainParameter: [
      { key: 'getMaintenanceTimeInterval', value: 21_600_000 },
      { key: 'getAccountUpgradeCost', value: 9_999_000_000 },
      { key: 'getCreateAccountFee', value: 100_000 },
      { key: 'getTransactionFee', value: 1_000 },
      { key: 'getCreateNewAccountFeeInSystemContract', value: 1_000_000 },
      { key: 'getEnergyFee', value: Number(ENERGY_PRICE_SUN) },
      { key: 'getMaxFeeLimit', value: 15_000_000_000 },
    ],
  };
}

/** Returns a contract with its ABI, or `{}` if there's none at the address. */
function contractJson(account: AccountHex, visible: boolean): object {
  const contract = contractAt(account);
  if (contract === null) return {};
  const entrys = contract.functions.map(abiEntry);
  return {
    // There's no virtual machine, so the list of selectors is shown instead of the bytecode.
    bytecode: contract.functions.map((each) => selectorOf(signatureOf(each))).join(''),
    consume_user_resource_percent: 100,
    name: contract.name,
    origin_address: accountJson(PAYER.account, visible),
    abi: { entrys: [...entrys, ...(contract.name === 'TetherToken' ? TOKEN_EVENTS : [])] },
    origin_energy_limit: 10_000_000,
    contract_address: accountJson(account, visible),
  };
}

const TOKEN_EVENTS = [
  eventEntry('Transfer', ['from address indexed', 'to address indexed', 'value uint256']),
  eventEntry('Approval', ['owner address indexed', 'spender address indexed', 'value uint256']),
  eventEntry('AddedBlackList', ['_user address indexed']),
  eventEntry('RemovedBlackList', ['_user address indexed']),
  eventEntry('Pause', []),
  eventEntry('Unpause', []),
  eventEntry('Params', ['feeBasisPoints uint256', 'maxFee uint256']),
  eventEntry('Deprecate', ['newAddress address']),
];

function abiEntry({ name, inputs, outputs, mutability }: ContractFunction) {
  return {
    ...(mutability === 'View' ? { constant: true } : {}),
    name,
    ...(inputs.length === 0 ? {} : { inputs: inputs.map(inputEntry) }),
    ...(outputs.length === 0 ? {} : { outputs: outputs.map((type) => ({ type })) }),
    type: 'Function',
    stateMutability: mutability,
  };
}

function eventEntry(name: string, inputs: readonly string[]) {
  return { ...(inputs.length === 0 ? {} : { inputs: inputs.map(inputEntry) }), name, type: 'Event' };
}

function inputEntry(input: string) {
  const [name, type, indexed] = input.split(' ');
  return { ...(indexed === undefined ? {} : { indexed: true }), name, type };
}
