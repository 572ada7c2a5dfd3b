import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { accountToAddress } from '@quittance/tron/address';
import type { ContractCall, RawTransaction } from '@quittance/tron/raw-transaction';
import type { ContractRet } from '@quittance/tron/transaction';
import type { LogJson, Noise } from './abi.ts';
import { callContract, contractAt } from './contracts.ts';
import { type InternalTransactionJson, internalTransaction } from './internal-transaction.ts';
import { createdKey, createJournal, type Journal, keepChanges, type StateReader, trxKey } from './state.ts';

/** The part of a transaction's info that results from running it. Absent and zero fields are omitted, as by a real node. */
export interface InfoBody {
  readonly fee?: number;
  readonly contractResult: readonly string[];
  readonly contract_address?: string;
  readonly receipt: {
    readonly energy_fee?: number;
    readonly energy_usage_total?: number;
    readonly net_usage?: number;
    readonly net_fee?: number;
    readonly result?: ContractRet;
  };
  readonly log?: readonly LogJson[];
  readonly result?: 'FAILED';
  readonly resMessage?: string;
  readonly internal_transactions?: readonly InternalTransactionJson[];
  readonly noise?: Noise;
}

export interface Execution {
  readonly contractRet: ContractRet;
  readonly info: InfoBody;
}

/** The main network's prices since August 2025 (`getEnergyFee`, `getCreateAccountFee`), and the maximum fee limit. */
export const ENERGY_PRICE_SUN = 100n;
const CREATE_ACCOUNT_SUN = 1_100_000n;
const CREATE_ACCOUNT_NET_SUN = 100_000;
const MAX_FEE_LIMIT_SUN = 15_000_000_000n;

/** The energy that a call uses before it reverts. */
const REVERT_ENERGY = 4_100;

const REVERT_MESSAGE = 'REVERT opcode executed';

/** Returns why a node would refuse the transaction in this state (the text after `Contract validate error : `), or null. */
export function refusalOf(state: StateReader, { contract: call, feeLimitSun }: RawTransaction): string | null {
  if (call.kind === 'other') return `contract type ${call.type} is not available on a devnet`;
  if (state.get(createdKey(call.owner)) === 0n) return `account [${accountToAddress(call.owner)}] does not exist`;
  if (call.kind === 'trigger') {
    if (contractAt(call.contract) === null) return 'No contract or not a valid smart contract';
    if (feeLimitSun < 0n || feeLimitSun > MAX_FEE_LIMIT_SUN) {
      return `feeLimit must be >= 0 and <= ${MAX_FEE_LIMIT_SUN}`;
    }
    return null;
  }
  if (call.amountSun <= 0n) return 'Validate TransferContract error, amount must be greater than 0.';
  if (call.owner === call.to) return 'Validate TransferContract error, cannot transfer TRX to yourself.';
  if (state.get(trxKey(call.owner)) < call.amountSun + transferFee(state, call)) {
    return 'Validate TransferContract error, balance is not sufficient.';
  }
  return null;
}

/** Runs a transaction that `refusalOf` accepts, and charges its fee. `netBytes` is its size, which free bandwidth covers here. */
export function execute(
  state: Journal,
  raw: RawTransaction,
  { id, netBytes, timestampMs }: { id: string; netBytes: number; timestampMs: number },
): Execution {
  const call = raw.contract;
  switch (call.kind) {
    case 'transfer': {
      const fee = transferFee(state, call);
      state.add(trxKey(call.owner), -(call.amountSun + fee));
      state.add(trxKey(call.to), call.amountSun);
      // A sender who opens an account with a transfer pays for bandwidth, which is free otherwise.
      const receipt = fee > 0n ? { net_fee: CREATE_ACCOUNT_NET_SUN } : { net_usage: netBytes };
      if (fee > 0n) state.set(createdKey(call.to), BigInt(timestampMs));
      return {
        contractRet: 'SUCCESS',
        info: { ...feeField(fee), contractResult: [''], receipt },
      };
    }
    case 'trigger':
      return trigger(state, call, { id, feeLimitSun: raw.feeLimitSun, netBytes });
    case 'other':
      throw new TypeError(`refusalOf should have refused a contract of type ${call.type}`);
  }
}

function trigger(
  state: Journal,
  call: Extract<ContractCall, { kind: 'trigger' }>,
  { id, feeLimitSun, netBytes }: { id: string; feeLimitSun: bigint; netBytes: number },
): Execution {
  const affordable = state.get(trxKey(call.owner));
  const limitSun = feeLimitSun < affordable ? feeLimitSun : affordable;
  const energyLimit = limitSun / ENERGY_PRICE_SUN;
  const attempt = createJournal(state);
  const outcome = callContract(attempt, call);
  const needed = BigInt(outcome?.energy ?? REVERT_ENERGY);
  const exhausted = needed > energyLimit;
  const used = exhausted ? energyLimit : needed;
  const fee = used * ENERGY_PRICE_SUN;
  const contractRet = exhausted ? 'OUT_OF_ENERGY' : outcome === null ? 'REVERT' : 'SUCCESS';
  if (contractRet === 'SUCCESS') keepChanges(attempt, state);
  state.add(trxKey(call.owner), -fee);
  const body = {
    ...feeField(fee),
    contractResult: [contractRet === 'SUCCESS' && outcome !== null ? outcome.output : ''],
    contract_address: `41${call.contract}`,
    receipt: {
      ...(fee > 0n ? { energy_fee: Number(fee) } : {}),
      ...(used > 0n ? { energy_usage_total: Number(used) } : {}),
      net_usage: netBytes,
      result: contractRet,
    },
  } as const;
  if (contractRet === 'SUCCESS') {
    const { logs = [], calls = [], noise } = outcome ?? {};
    const internal = calls.map((called, index) => internalTransaction({ id, index, caller: call.contract, called }));
    return {
      contractRet,
      info: {
        ...body,
        ...(logs.length > 0 ? { log: logs } : {}),
        ...(internal.length > 0 ? { internal_transactions: internal } : {}),
        ...(noise === undefined ? {} : { noise }),
      },
    };
  }
  const message = exhausted
    ? `Not enough energy for 'SSTORE' operation executing: curInvokeEnergyLimit[${energyLimit}], curOpEnergy[20000], usedEnergy[${used}]`
    : REVERT_MESSAGE;
  return { contractRet, info: { ...body, result: 'FAILED', resMessage: messageHex(message) } };
}

/** Returns the hex of the message's UTF-8 bytes, which is how the node writes messages. */
export function messageHex(text: string): string {
  return bytesToHex(utf8ToBytes(text));
}

function transferFee(state: StateReader, call: Extract<ContractCall, { kind: 'transfer' }>): bigint {
  return state.get(createdKey(call.to)) === 0n ? CREATE_ACCOUNT_SUN : 0n;
}

function feeField(fee: bigint): { fee?: number } {
  return fee === 0n ? {} : { fee: Number(fee) };
}
