import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { blockIdOf } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import { writeBytes, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { txIdOf } from '@quittance/tron/transaction';
import { PAYER, PENNILESS } from '../evm/keys.ts';
import { type Block, type BlockTransaction, headerBytes, transactionBytesOf } from './block.ts';

/** The payer's TRX at genesis, in sun. */
export const PAYER_SUN = 1_000_000_000_000_000n;

/** This pays the fees of about two million reverting calls. */
export const PENNILESS_SUN = 1_000_000_000_000n;

const NO_PRODUCER = -1;

/** The producer in the genesis block of every TRON network. Like addresses, it starts with the byte 41. */
const WITNESS =
  'A new system must allow existing systems to be linked together without requiring any central control or coordination';

/** In wire format, the genesis allocations belong to this text instead of an address. */
const NOBODY = bytesToHex(utf8ToBytes('0x000000000000000000000'));

const TRANSFER_URL = 'type.googleapis.com/protocol.TransferContract';

const FIRST_TEXT = 'quittance devnet genesis';

/** The parent of another network's genesis block. */
export const OTHER_GENESIS_PARENT = bytesToHex(sha256(utf8ToBytes('quittance devnet: another genesis')));

const GIFTS: readonly { readonly to: AccountHex; readonly amountSun: bigint }[] = [
  { to: PAYER.account, amountSun: PAYER_SUN },
  { to: PENNILESS.account, amountSun: PENNILESS_SUN },
];

/** Returns block 0, whose id identifies the network. Its header contains no time, but its parent is derived from the time. */
export function genesisBlock(timestampMs: number): Block {
  const transactions = GIFTS.map(giftTransaction);
  const header = {
    number: 0,
    txTrieRoot: txTrieRoot(transactions.map(transactionBytesOf)),
    witness_address: bytesToHex(utf8ToBytes(WITNESS)),
    parentHash: bytesToHex(sha256(utf8ToBytes(`${FIRST_TEXT} ${timestampMs}`))),
    timestamp: timestampMs,
  };
  const block = { header, hidesTime: true, turn: NO_PRODUCER, signature: '', transactions };
  return { ...block, id: blockIdOf(headerBytes(block), 0) };
}

/** Returns the block 0 that older directories contain. It resembles a real block 0 less. */
export function firstGenesisBlock(timestampMs: number): Block {
  const parentHash = bytesToHex(sha256(utf8ToBytes(FIRST_TEXT)));
  const header = { number: 0, txTrieRoot: txTrieRoot([]), parentHash, timestamp: timestampMs };
  return { id: blockIdOf(headerBytes({ header }), 0), header, turn: NO_PRODUCER, signature: '', transactions: [] };
}

/** Returns the `raw_data` of a genesis transaction, or null for any other transaction. */
export function giftJson(rawDataHex: string): object | null {
  const gift = GIFTS.find((each) => rawDataOf(each) === rawDataHex);
  if (gift === undefined) return null;
  const value = { amount: Number(gift.amountSun), owner_address: NOBODY, to_address: `41${gift.to}` };
  return { contract: [{ parameter: { value, type_url: TRANSFER_URL }, type: 'TransferContract' }] };
}

function giftTransaction(gift: (typeof GIFTS)[number]): BlockTransaction {
  const rawDataHex = rawDataOf(gift);
  const id = txIdOf(hexToBytes(rawDataHex));
  return { id, rawDataHex, signatures: [], contractRet: 'DEFAULT', info: { contractResult: [], receipt: {} } };
}

function rawDataOf({ to, amountSun }: (typeof GIFTS)[number]): string {
  const value = concatBytes(
    writeBytes(1, hexToBytes(NOBODY)),
    writeBytes(2, hexToBytes(`41${to}`)),
    writeInt64(3, amountSun),
  );
  const parameter = concatBytes(writeBytes(1, utf8ToBytes(TRANSFER_URL)), writeBytes(2, value));
  return bytesToHex(writeElement(11, concatBytes(writeInt64(1, 1), writeElement(2, parameter))));
}
