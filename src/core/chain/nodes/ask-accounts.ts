import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { bytesField, int64Field, readMessage, repeatedBytesField, writeBytes } from '@quittance/tron/protobuf';
import { visitFields } from '@quittance/tron/scan-message';
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
        if (isRead === null) throw new TypeError('its answer is not a list of witnesses');
        return active;
      }),
    },
  };
}

/**
 * `address` is in the node's format. `witnessKey` is the address whose key signs blocks for this account, if it isn't the account's own.
 */
export type ShownAccount = { address: unknown; isContract: boolean; witnessKey: unknown };

/** Asks for an account. The answer is `null` if it was never activated. */
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
        if (isRead === null) throw new TypeError('its answer is not an account');
        return { address, isContract, witnessKey };
      }),
    },
  };
}
