import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { AccountHex } from '@quittance/tron/address';

/** A block of a private java-tron 4.8.0 network, as one node returned it through both of its APIs. `raw_data` is omitted from the JSON. */
type RealBlock = {
  number: number;
  /** `Wallet/GetBlockByNum`. */
  bytes: Uint8Array;
  /** `/wallet/getblock`, as text, because JSON.parse would round numbers above 2^53. */
  json: string;
  /** `Wallet/GetTransactionInfoByBlockNum`, and `/wallet/gettransactioninfobyblocknum` without internal transactions. */
  infoBytes: Uint8Array;
  infosJson: string;
};

/**
 * The blocks' peculiarities. Those from `outer-field` to `header-raw` contain bytes that JSON doesn't show, or that readers interpret
 * differently. Anyone can cause such a block, except for `header-raw`.
 */
export type Oddity =
  | 'outer-field'
  | 'result-1002'
  | 'order-id'
  | 'result-2^53'
  | 'header-raw'
  | 'long-signature'
  | 'payout'
  | 'fee-direct'
  | 'out-of-energy';

type Stored = Record<Oddity, Omit<RealBlock, 'bytes' | 'infoBytes'> & { bytes: string; infoBytes: string }>;

const stored = JSON.parse(readFileSync(join(import.meta.dirname, 'real-blocks.json'), 'utf8')) as Stored;

/** The USDT contract of that network, which has Tether's code. */
export const REAL_USDT = '34cbbbe312b8ca4a0f2a61ef34643d481ac8ab9f' as AccountHex;

export function realBlock(oddity: Oddity): RealBlock {
  const { bytes, infoBytes, ...rest } = stored[oddity];
  return { ...rest, bytes: fromBase64(bytes), infoBytes: fromBase64(infoBytes) };
}

/** Doesn't return a Buffer, so that equal bytes compare as equal values. */
function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'base64'));
}

/** Block 79072107 of the main network, as gRPC returns it: one of its 619 transactions has a field 1002 in its result. */
export function mainNetworkBlock(): Uint8Array {
  return gunzipSync(readFileSync(join(import.meta.dirname, '../../packages/tron/example/block-79072107.pb.gz')));
}
