import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { encodeRawTransaction, type RawTransaction } from '../../tron/raw-transaction.ts';
import { txIdOf } from '../../tron/transaction.ts';
import { referenceOf } from '../chain/admission.ts';
import type { Ledger, LedgerView, SubmitResult } from '../chain/ledger.ts';
import {
  accountParameter,
  hexParameter,
  integerParameter,
  ParameterError,
  type Parameters,
  textParameter,
} from '../chain/parameters.ts';
import { selectorOf } from '../evm/abi.ts';
import { callContract, contractAt } from '../evm/contracts.ts';
import { messageHex } from '../evm/execute.ts';
import { createJournal } from '../evm/state.ts';
import { readSent, type SentTransaction, withoutResult } from '../wire/hidden-fields.ts';
import type { EndpointContext } from './endpoint.ts';
import { transactionOfJson, unsignedTransactionJson } from './transaction-json.ts';

/** How long a transaction that the node builds may wait (java-tron `trx.expiration.timeInMilliseconds`). */
const NODE_EXPIRATION_MS = 60_000;

/** The energy that a constant call is charged when it reverts. */
const REVERTED_CALL_ENERGY = 4_100;

type Trigger = Extract<RawTransaction['contract'], { kind: 'trigger' }>;

/** `triggersmartcontract`: builds an unsigned call. Its reference is the solid block (java-tron's default), which no fork takes away. */
export function triggerJson({ ledger, parameters, visible, now }: EndpointContext): unknown {
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

/** `triggerconstantcontract`: runs a call on the state of the endpoint's head and keeps nothing of it. */
export function constantCallJson({ ledger, view, parameters, visible, now }: EndpointContext): unknown {
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

/** `estimateenergy`: the energy of a call on the state of the endpoint's head. */
export function estimateEnergyJson({ view, parameters, visible }: EndpointContext): unknown {
  const contract = triggerOf(parameters);
  if (contractAt(contract.contract) === null) return missingContractJson(visible);
  const outcome = callContract(createJournal(view.state()), contract);
  if (outcome !== null) return { result: { result: true }, energy_required: outcome.energy };
  return { result: { code: 'CONTRACT_EXE_ERROR', message: messageHex('REVERT opcode executed') } };
}

/** `broadcasttransaction`: the signed transaction as JSON. */
export function broadcastJson({ ledger, parameters }: EndpointContext): unknown {
  const submitted = submit(ledger, transactionOfJson(parameters));
  if (submitted.kind === 'accepted') return { result: true, txid: submitted.id };
  const { code, message } = submitted.refusal;
  return { code, txid: submitted.id, message: messageHex(message) };
}

/**
 * `broadcasthex`: the signed transaction as the hex of its bytes. Unknown fields stay (java-tron with `allowProtoFilterNum` 0, as on
 * the main network), and results are cleared (`Wallet.broadcastTransaction`). Unlike in `broadcasttransaction`, messages are plain text.
 */
export function broadcastHexJson({ ledger, parameters }: EndpointContext): unknown {
  const transaction = readSent(hexToBytes(hexParameter(parameters, 'transaction')));
  if (transaction === null) throw new ParameterError('transaction is not the hex of a Transaction');
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

/** The frame of a transaction the node builds. */
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

/** The call in a request: `data`, or `function_selector` and `parameter` as TronWeb sends them. */
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

/** A message is hex, but text where addresses are to be read by people. */
function shownMessage(text: string, visible: boolean): string {
  return visible ? text : messageHex(text);
}
