import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, accountToAddress, parseAddress, type TronAddress } from '@quittance/tron/address';
import { encodeRawTransaction } from '@quittance/tron/raw-transaction';
import { signMessage } from '@quittance/tron/signature';
import { encodeTransaction } from '@quittance/tron/transaction';
import { encodeTransferCall, encodeTransferFromCall } from '@quittance/tron/usdt';
import { request } from 'undici';
import { accountWord, selectorOf, uintWord } from './evm/abi.ts';
import { keyPairOf } from './evm/keys.ts';
import { encodeMultisendCall, MAX_RECIPIENTS } from './evm/multisend.ts';

/**
 * A wallet that knows nothing but a node's URL and a private key. Every payment promise resolves to the transaction id as soon as the node
 * has accepted the transaction.
 */
export interface Payer {
  readonly address: TronAddress;
  /** The default `feeLimitSun` is more than enough. If the limit is too low, the call runs out of energy. */
  transfer(payment: {
    readonly contract: string;
    readonly to: string;
    readonly amountMicro: bigint;
    readonly feeLimitSun?: bigint;
  }): Promise<string>;
  transferFrom(payment: {
    readonly contract: string;
    readonly from: string;
    readonly to: string;
    readonly amountMicro: bigint;
  }): Promise<string>;
  approve(payment: {
    readonly contract: string;
    readonly spender: string;
    readonly amountMicro: bigint;
  }): Promise<string>;
  /** Pays up to 200 recipients in one transaction. The recipients appear only in the token's logs. */
  multisend(payment: {
    readonly multisendContract: string;
    readonly token: string;
    readonly transfers: readonly { readonly to: string; readonly amountMicro: bigint }[];
  }): Promise<string>;
  sendTrx(payment: { readonly to: string; readonly amountSun: bigint }): Promise<string>;
  /** Returns a wallet for another private key, on the same node. */
  withKey(privateKey: string): Payer;
}

/** Sends a request to a node and resolves to its JSON response. */
export type Ask = (path: string, body: object) => Promise<object>;

/** Nodes respond within milliseconds. A broken node must not block a test or a command for long. */
const TIMEOUT_MS = 5_000;

/** The largest response read here is a block, and real blocks have about 400 kB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** This is enough for a multisend to 200 recipients who had no balance before. */
const FEE_LIMIT_SUN = 5_000_000_000n;

/** This lifetime is longer than a fork lasts. Nodes refuse a lifetime of more than a day. */
const EXPIRATION_MS = 60 * 60 * 1000;

/** Builds, signs and broadcasts payments with a 32-byte private key in hex. */
export function createPayer({
  nodeUrl,
  solidityUrl = nodeUrl,
  privateKey,
  ask = (path, body) => post(path.startsWith('/walletsolidity/') ? solidityUrl : nodeUrl, path, body),
  now = Date.now,
}: {
  readonly nodeUrl: string;
  /** The URL of the port that serves `/walletsolidity`. Default: `nodeUrl`. */
  readonly solidityUrl?: string;
  readonly privateKey: string;
  /** Sends requests to the node. By default, over HTTP. */
  readonly ask?: Ask;
  readonly now?: () => number;
}): Payer {
  const keys = keyPairOf(hexToBytes(privateKey));
  const owner = keys.account;
  let lastTimestampMs = 0;

  const send = async (
    contract: Parameters<typeof encodeRawTransaction>[0]['contract'],
    feeLimitSun = FEE_LIMIT_SUN,
  ): Promise<string> => {
    const reference = await solidBlock(nodeUrl, ask);
    // Two equal payments in the same millisecond would be the same transaction, so each gets a different time.
    lastTimestampMs = Math.max(now(), lastTimestampMs + 1);
    const rawData = encodeRawTransaction({
      refBlockBytes: reference.blockID.slice(12, 16),
      refBlockHash: reference.blockID.slice(16, 32),
      expirationMs: reference.timestampMs + EXPIRATION_MS,
      timestampMs: lastTimestampMs,
      feeLimitSun: contract.kind === 'trigger' ? feeLimitSun : 0n,
      memo: '',
      permissionId: 0,
      contract,
    });
    const signatures = [hexToBytes(signMessage(rawData, keys.privateKey))];
    return broadcast(nodeUrl, ask, bytesToHex(encodeTransaction({ rawData, signatures, results: [] })));
  };
  const call = (contract: string, data: string, feeLimitSun?: bigint) =>
    send({ kind: 'trigger', owner, contract: accountOf(contract), data, callValueSun: 0n }, feeLimitSun);

  return {
    address: accountToAddress(owner),
    transfer: async ({ contract, to, amountMicro, feeLimitSun }) =>
      call(contract, encodeTransferCall(accountOf(to), amountMicro), feeLimitSun),
    transferFrom: async ({ contract, from, to, amountMicro }) =>
      call(contract, encodeTransferFromCall(accountOf(from), accountOf(to), amountMicro)),
    approve: async ({ contract, spender, amountMicro }) =>
      call(contract, selectorOf('approve(address,uint256)') + accountWord(accountOf(spender)) + uintWord(amountMicro)),
    async multisend({ multisendContract, token, transfers }) {
      if (transfers.length < 1 || transfers.length > MAX_RECIPIENTS) {
        throw new RangeError(`a multisend pays 1 to ${MAX_RECIPIENTS} recipients, not ${transfers.length}`);
      }
      const parts = transfers.map(({ to, amountMicro }) => ({ to: accountOf(to), value: amountMicro }));
      return call(multisendContract, encodeMultisendCall(accountOf(token), parts));
    },
    sendTrx: async ({ to, amountSun }) => send({ kind: 'transfer', owner, to: accountOf(to), amountSun }),
    withKey: (otherKey) => createPayer({ nodeUrl, solidityUrl, privateKey: otherKey, ask, now }),
  };
}

/**
 * Returns the solid block, because a transaction that refers to it can't be lost in a fork. If the solid block is genesis, which has no
 * time, returns the head.
 */
async function solidBlock(nodeUrl: string, ask: Ask): Promise<{ blockID: string; timestampMs: number }> {
  const answer = await ask('/walletsolidity/getnowblock', {});
  const block = readMark(answer) ?? readMark(await ask('/wallet/getnowblock', {}));
  if (block === null) throw new Error(`the node at ${nodeUrl} did not return a block: ${excerpt(answer)}`);
  return block;
}

function readMark(answer: object): { blockID: string; timestampMs: number } | null {
  const { blockID, block_header } = answer as {
    blockID?: unknown;
    block_header?: { raw_data?: { timestamp?: unknown } };
  };
  const timestampMs = block_header?.raw_data?.timestamp;
  const isBlock = typeof blockID === 'string' && /^[0-9a-f]{64}$/.test(blockID) && typeof timestampMs === 'number';
  return isBlock ? { blockID, timestampMs } : null;
}

async function broadcast(nodeUrl: string, ask: Ask, transaction: string): Promise<string> {
  const answer = await ask('/wallet/broadcasthex', { transaction });
  const { result, txid, code, message } = answer as Record<'result' | 'txid' | 'code' | 'message', unknown>;
  if (result === true && typeof txid === 'string') return txid;
  if (typeof code === 'string')
    throw new Error(`the node at ${nodeUrl} refused the payment: ${code}: ${String(message)}`);
  throw new Error(`the node at ${nodeUrl} did not accept the payment: ${excerpt(answer)}`);
}

/** Sends a request to a node over HTTP. Errors contain the node's URL and quote its response. */
export async function post(nodeUrl: string, path: string, body: object): Promise<object> {
  const url = nodeUrl.replace(/\/+$/, '') + path;
  const { statusCode, body: stream } = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    signal: AbortSignal.timeout(2 * TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw new Error(`the node at ${url} cannot be reached: ${cause instanceof Error ? cause.message : ''}`, { cause });
  });
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) throw new Error(`the node at ${url} returned more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  if (statusCode !== 200) throw new Error(`the node at ${url} returned status ${statusCode}: ${text.slice(0, 200)}`);
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {
    // Reported below, together with the node's response.
  }
  throw new Error(`the node at ${url} did not return JSON: ${text.slice(0, 200)}`);
}

function accountOf(address: string): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind === 'ok') return parsed.account;
  throw new TypeError(`${address} is not a TRON address: ${parsed.reason}`);
}

function excerpt(answer: unknown): string {
  return JSON.stringify(answer).slice(0, 200);
}
