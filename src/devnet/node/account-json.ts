import type { AccountHex } from '../../tron/address.ts';
import type { Block } from '../chain/block.ts';
import type { LedgerView } from '../chain/ledger.ts';
import { accountJson } from '../chain/parameters.ts';
import type { Witness } from '../chain/schedule.ts';
import { type ContractFunction, selectorOf, signatureOf } from '../evm/abi.ts';
import { contractAt } from '../evm/contracts.ts';
import { ENERGY_PRICE_SUN } from '../evm/execute.ts';
import { PAYER } from '../evm/keys.ts';
import { createdKey, type StateReader, trxKey } from '../evm/state.ts';

/** The operations that java-tron gives the active permission of a new account. */
const ACTIVE_OPERATIONS = '7fff1fc0033ec30f000000000000000000000000000000000000000000000000';

/** Votes of a producer, as many as a middling one of the main network has. */
const VOTES = 500_000_000;
const FEW_VOTES = 1_000_000;

const SLOT_MS = 3_000;

/** The fields that java-tron shows of an account that has staked nothing: the windows of its resources, in slots of a day. */
const UNSTAKED = {
  net_window_size: 28_800,
  account_resource: { energy_window_size: 28_800 },
  frozenV2: [{}, { type: 'ENERGY' }, { type: 'TRON_POWER' }],
};

/** An account, `{}` if it does not exist. A producer's `witness_permission` holds the key that signs its blocks. */
export function accountInfoJson(
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
    // A producer that came later has no transaction that made its account.
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

/** Bandwidth and energy of an account, `{}` if it does not exist; nobody has staked on a devnet. */
export function accountResourceJson(state: StateReader, account: AccountHex): object {
  if (state.get(createdKey(account)) === 0n) return {};
  return { freeNetLimit: 600, TotalNetLimit: 43_200_000_000, TotalEnergyLimit: 180_000_000_000 };
}

/** All who are or were producers; false fields are left out, so a former one has no `isJobs`. */
export function witnessesJson(
  view: LedgerView,
  { visible, witnesses }: { visible: boolean; witnesses: readonly Witness[] },
) {
  const latest = new Map<number, Block>();
  const produced = view.produced();
  // Turns may be skipped by forks, so a producer's last block can be further back than one round; two are enough.
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

/** A slot is counted in the main network's time from 1970, whatever the block time of a devnet is. */
function latestOf(block: Block | undefined): object {
  if (block === undefined) return {};
  const { number, timestamp } = block.header;
  return { latestBlockNum: number, latestSlotNum: Math.floor(timestamp / SLOT_MS) };
}

export function chainParametersJson() {
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

/** A contract with its ABI, `{}` if there is none at the address. */
export function contractJson(account: AccountHex, visible: boolean): object {
  const contract = contractAt(account);
  if (contract === null) return {};
  const entrys = contract.functions.map(abiEntry);
  return {
    // There is no virtual machine: the list of selectors stands for the bytecode.
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
