import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { bytesField, int64Field, readMessage, repeatedBytesField, writeBytes } from '@quittance/tron/protobuf';
import { visitFields } from '@quittance/tron/scan-message';
import { printableText } from '../../domain/text.ts';
import { type Question, wholeMessage } from './question.ts';

/** The main network's few hundred witnesses take less than 100 KB. */
const WITNESSES_BYTES = 1024 * 1024;
/** Tron.proto `AccountType`. */
const CONTRACT_TYPE = 2;

/** Asks for the addresses of the active super representatives, in the node's format: 21 bytes in hex. */
export function activeWitnesses(): Question<unknown[]> {
  return {
    http: {
      path: '/wallet/listwitnesses',
      body: {},
      // {"witnesses":[{"address":"41b2f713…94ba","voteCount":…,"isJobs":true}, …]}; `isJobs` is left out if it's false.
      read: (json) => {
        const { witnesses } = json as { witnesses?: unknown };
        const list = Array.isArray(witnesses) ? (witnesses as { address?: unknown; isJobs?: unknown }[]) : [];
        return list.filter((witness) => witness?.isJobs === true).map(({ address }) => address);
      },
    },
    grpc: {
      path: '/protocol.Wallet/ListWitnesses',
      maxBytes: WITNESSES_BYTES,
      request: new Uint8Array(0),
      // WitnessList: witnesses=1; Witness: address=1, isJobs=9.
      newSink: wholeMessage((bytes) => {
        const active: string[] = [];
        const isRead = visitFields(bytes, 0, bytes.length, ({ number, start, end }) => {
          const fields = number === 1 ? readMessage(bytes.subarray(start, end)) : null;
          if (fields !== null && int64Field(fields, 9) === 1n) active.push(bytesToHex(bytesField(fields, 1)));
          return true;
        });
        if (isRead === null) throw new TypeError('its response is not a list of witnesses');
        return active;
      }),
    },
  };
}

/**
 * `address` is in the node's format. `witnessKey` is the address whose key signs blocks for this account, if it isn't the account's own.
 */
type ShownAccount = { address: unknown; isContract: boolean; witnessKey: unknown };

/** Asks for an account. The answer is `null` if the account was never activated. */
export function accountAt(account: AccountHex): Question<ShownAccount | null> {
  return {
    http: {
      path: '/wallet/getaccount',
      body: { address: `41${account}` },
      // {"address":"41…","type":"Contract","witness_permission":{"type":"Witness","keys":[{"address":"41…","weight":1}]}, …}
      read: (json) => {
        const {
          address,
          type,
          witness_permission: permission,
        } = json as {
          address?: unknown;
          type?: unknown;
          witness_permission?: { keys?: { address?: unknown }[] };
        };
        if (Object.keys(json as object).length === 0) return null;
        const witnessKey = Array.isArray(permission?.keys) ? permission.keys[0]?.address : undefined;
        return { address, isContract: type === 'Contract', witnessKey };
      },
    },
    grpc: {
      path: '/protocol.Wallet/GetAccount',
      request: writeBytes(3, hexToBytes(`41${account}`)),
      // Account: type=2, address=3, witness_permission=32; Permission: keys=7; Key: address=1. An account may hold thousands of tokens.
      newSink: wholeMessage((bytes) => {
        if (bytes.length === 0) return null;
        let witnessKey: string | undefined;
        let address = '';
        let isContract = false;
        const isRead = visitFields(bytes, 0, bytes.length, ({ number, start, end, low32 }) => {
          if (number === 2) isContract = low32 === CONTRACT_TYPE;
          if (number === 3) address = bytesToHex(bytes.subarray(start, end));
          if (number !== 32) return true;
          const [key] = repeatedBytesField(readMessage(bytes.subarray(start, end)) ?? [], 7);
          if (key !== undefined) witnessKey = bytesToHex(bytesField(readMessage(key) ?? [], 1));
          return true;
        });
        if (isRead === null) throw new TypeError('its response is not an account');
        return { address, isContract, witnessKey };
      }),
    },
  };
}

/** A contract's answer as 32-byte `words` in hex, which are `null` if the call reverts, or the reason if the node refused the call. */
type ConstantAnswer = { kind: 'answered'; words: string[] | null } | { kind: 'refused'; reason: string };

const SELECTOR_BYTES = 4;
const WORD = /^(?:[0-9a-f]{64})+$/i;

/**
 * Asks for the result of calling a contract method, such as `balanceOf(address)`, with one 32-byte argument in hex or none. Nodes only know
 * the state at their newest block and at their newest irreversible block.
 */
export function constantCall(
  side: 'solid' | 'any',
  contract: AccountHex,
  method: string,
  argument = '',
): Question<ConstantAnswer> {
  const selector = keccak_256(utf8ToBytes(method)).subarray(0, SELECTOR_BYTES);
  const account = `41${contract}`;
  return {
    http: {
      path: side === 'solid' ? '/walletsolidity/triggerconstantcontract' : '/wallet/triggerconstantcontract',
      body: {
        owner_address: account,
        contract_address: account,
        function_selector: method,
        parameter: argument,
        visible: false,
      },
      read: readConstantResult,
    },
    grpc: {
      path: `/protocol.${side === 'solid' ? 'WalletSolidity' : 'Wallet'}/TriggerConstantContract`,
      // TriggerSmartContract: owner_address=1, contract_address=2, data=4.
      request: Buffer.concat([
        writeBytes(1, hexToBytes(account)),
        writeBytes(2, hexToBytes(account)),
        writeBytes(4, Buffer.concat([selector, hexToBytes(argument)])),
      ]),
      newSink: wholeMessage(readExtention),
    },
  };
}

/**
 * For example, a balance of 25 USDT:
 * `{"result":{"result":true},"energy_used":935,"constant_result":["00…017d7840"],"transaction":{"ret":[{}], …}}`. If the call reverts, the
 * result is true as well, but there are no words. A refusal's message is hex-encoded UTF-8.
 */
function readConstantResult(json: unknown): ConstantAnswer {
  const { result = {}, constant_result: list } = json as {
    result?: { result?: unknown; message?: unknown };
    constant_result?: unknown;
  };
  const [first]: unknown[] = Array.isArray(list) ? list : [];
  const isRun = result.result === true && Array.isArray(list);
  return answerOf(isRun, typeof first === 'string' ? first : '', decodeMessage(result.message));
}

/** TransactionExtention: constant_result=3, result=4; Return: result=1, message=3. */
function readExtention(bytes: Uint8Array): ConstantAnswer {
  const fields = readMessage(bytes) ?? [];
  const result = readMessage(bytesField(fields, 4)) ?? [];
  const [first = new Uint8Array(0)] = repeatedBytesField(fields, 3);
  return answerOf(int64Field(result, 1) === 1n, bytesToHex(first), Buffer.from(bytesField(result, 3)).toString('utf8'));
}

function answerOf(isRun: boolean, hex: string, message: string): ConstantAnswer {
  if (!isRun) return { kind: 'refused', reason: message === '' ? 'no reason' : printableText(message) };
  const words = WORD.test(hex) && !message.startsWith('REVERT') ? (hex.match(/.{64}/g) ?? []) : null;
  return { kind: 'answered', words };
}

/** Decodes a message that the node has hex-encoded. Returns other text unchanged. */
function decodeMessage(message: unknown): string {
  if (typeof message !== 'string') return '';
  const isHex = message.length % 2 === 0 && /^[0-9a-f]+$/i.test(message);
  return isHex ? Buffer.from(message, 'hex').toString('utf8') : message;
}

/** The energy price in sun per energy unit, or `null` if the node returns no price or one that no real network has ever had. */
type EnergyPrice = number | null;

/** The network's votes have always set it between 10 and 420. A wrong price must not deter payers. */
const MAX_SUN = 1000;
const PRICE_KEY = 'getEnergyFee';
/** About eighty parameters, which take 4 KB. */
const PARAMETERS_BYTES = 64 * 1024;

/** Asks for the energy price, which is one of the chain parameters. */
export const ENERGY_PRICE: Question<EnergyPrice> = {
  maxBytes: PARAMETERS_BYTES,
  http: { path: '/wallet/getchainparameters', body: {}, read: readChainParameters },
  grpc: {
    path: '/protocol.Wallet/GetChainParameters',
    request: new Uint8Array(0),
    newSink: wholeMessage(readParameterMessage),
  },
};

/** `{"chainParameter":[{"key":"getMaintenanceTimeInterval","value":21600000},{"key":"getEnergyFee","value":100}, …]}`. */
function readChainParameters(json: unknown): EnergyPrice {
  const { chainParameter: list } = Object(json) as { chainParameter?: unknown };
  const named: { key?: unknown; value?: unknown }[] = Array.isArray(list) ? list.map(Object) : [];
  return inBounds(named.find(({ key }) => key === PRICE_KEY)?.value);
}

/** ChainParameters: chainParameter=1 {key=1, value=2}. */
function readParameterMessage(bytes: Uint8Array): EnergyPrice {
  for (const parameter of repeatedBytesField(readMessage(bytes) ?? [], 1)) {
    const fields = readMessage(parameter) ?? [];
    if (Buffer.from(bytesField(fields, 1)).toString('latin1') === PRICE_KEY)
      return inBounds(Number(int64Field(fields, 2)));
  }
  return null;
}

function inBounds(value: unknown): EnergyPrice {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_SUN ? Number(value) : null;
}
