import { connect, type IncomingHttpHeaders } from 'node:http2';
import { bytesToHex } from '@noble/hashes/utils.js';
import { accountFromHex41, accountToAddress } from '@quittance/tron/address';
import { blockIdOf, recoverWitness } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import {
  bytesField,
  int64Field,
  type ProtobufField,
  readMessage,
  repeatedBytesField,
  writeBytes,
  writeInt64,
} from '@quittance/tron/protobuf';
import { txIdOf } from '@quittance/tron/transaction';

/** The result of a call: the HTTP status, the gRPC status (undefined if there was none), and the messages. */
interface CallResult {
  readonly http: number | undefined;
  readonly status: string | undefined;
  readonly text: string | undefined;
  readonly body: Buffer;
  readonly chunks: number;
}

/** Calls a method (`Wallet/GetBlock`) with a message in gRPC framing, and waits for the end of the stream. */
export function callGrpc(url: string, method: string, message: Uint8Array = new Uint8Array(0)): Promise<CallResult> {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return callRaw(url, `/protocol.${method}`, Buffer.concat([prefix, message]));
}

export function callRaw(
  url: string,
  path: string,
  body: Uint8Array,
  headers: IncomingHttpHeaders = {},
): Promise<CallResult> {
  const session = connect(url.replace('grpc://', 'http://'), { settings: { initialWindowSize: 1024 * 1024 } });
  return new Promise((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    let answered: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on('response', (received) => {
      answered = received;
    });
    stream.on('trailers', (received) => {
      trailers = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => undefined);
    stream.on('close', () => {
      session.close();
      const ended = { ...answered, ...trailers } as Record<string, string | undefined>;
      resolve({
        http: answered[':status'] as number | undefined,
        status: ended['grpc-status'],
        text: ended['grpc-message'],
        body: Buffer.concat(chunks),
        chunks: chunks.length,
      });
    });
    stream.end(body);
  });
}

/** Returns the only message of a successful answer. */
export async function askGrpc(url: string, method: string, request?: Uint8Array): Promise<Buffer> {
  const { status, body, text } = await callGrpc(url, method, request);
  if (status !== '0') throw new Error(`${method}: status ${status}: ${text}`);
  if (body.length < 5 || body.readUInt32BE(1) !== body.length - 5) throw new Error(`${method}: not one message`);
  return body.subarray(5);
}

export function fieldsOf(message: Uint8Array): ProtobufField[] {
  const fields = readMessage(message);
  if (fields === null) throw new Error(`not a message: ${bytesToHex(message)}`);
  return fields;
}

export const numberMessage = (num: number): Uint8Array => writeInt64(1, num);

export const bytesMessage = (hex: string): Uint8Array => writeBytes(1, Buffer.from(hex, 'hex'));

/** Reads a block with `GetBlockByNum2` and verifies its bytes with independent hashing. */
export async function readExactBlock(url: string, number: number, service = 'Wallet') {
  return judge(await askGrpc(url, `${service}/GetBlockByNum2`, numberMessage(number)), number);
}

/** Verifies a BlockExtention. */
export function judge(message: Uint8Array, number: number) {
  const block = fieldsOf(message);
  const header = fieldsOf(bytesField(block, 2));
  const raw = bytesField(header, 1);
  const shown = fieldsOf(raw);
  const extended = repeatedBytesField(block, 1).map(fieldsOf);
  const transactions = extended.map((each) => bytesField(each, 1));
  const signer = recoverWitness(raw, bytesToHex(bytesField(header, 2)));
  const producer = accountFromHex41(bytesToHex(bytesField(shown, 9)));
  return {
    id: bytesToHex(bytesField(block, 3)),
    number: Number(int64Field(shown, 7)),
    parentId: bytesToHex(bytesField(shown, 3)),
    transactions: transactions.map((each) => bytesToHex(each)),
    txIds: extended.map((each) => bytesToHex(bytesField(each, 2))),
    areTxIdsRight: extended.every(
      (each, index) =>
        txIdOf(bytesField(fieldsOf(transactions[index] ?? new Uint8Array(0)), 1)) === bytesToHex(bytesField(each, 2)),
    ),
    isIdRight: blockIdOf(raw, number) === bytesToHex(bytesField(block, 3)),
    isRootRight: txTrieRoot(transactions) === bytesToHex(bytesField(shown, 2)),
    producer: producer === null ? null : accountToAddress(producer),
    signer: signer === null ? null : accountToAddress(signer),
  };
}
