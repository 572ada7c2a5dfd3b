import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { bytesField, int64Field, readMessage, repeatedBytesField, writeBytes } from '@quittance/tron/protobuf';
import { type Question, wholeMessage } from './question.ts';

/** A contract's answer, as `words` of 32 bytes in hex, or `null` if the call reverts. If the node refused the call, the reason. */
export type ConstantAnswer = { kind: 'answered'; words: string[] | null } | { kind: 'refused'; reason: string };

const SELECTOR_BYTES = 4;
const WORD = /^(?:[0-9a-f]{64})+$/i;

/**
 * Asks for the result of a contract method, such as `balanceOf(address)`, with one 32-byte argument in hex or none. Nodes only know the
 * state of their newest block and of their newest irreversible block.
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
      read: readJson,
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
 * result is true as well, but there is no word. The message of a refusal is hex-encoded UTF-8.
 */
function readJson(json: unknown): ConstantAnswer {
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
  if (!isRun) return { kind: 'refused', reason: message === '' ? 'no reason' : message };
  const words = WORD.test(hex) && !message.startsWith('REVERT') ? (hex.match(/.{64}/g) ?? []) : null;
  return { kind: 'answered', words };
}

/** Decodes a message that the node has hex-encoded. Returns other text unchanged. */
function decodeMessage(message: unknown): string {
  if (typeof message !== 'string') return '';
  const isHex = message.length % 2 === 0 && /^[0-9a-f]+$/i.test(message);
  return isHex ? Buffer.from(message, 'hex').toString('utf8') : message;
}
