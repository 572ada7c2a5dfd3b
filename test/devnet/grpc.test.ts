import { once } from 'node:events';
import { connect } from 'node:http2';
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { POISONS } from '@quittance/devnet';
import type { Fault } from '@quittance/devnet/faults/faults';
import { parseAddress } from '@quittance/tron/address';
import { bytesField, int64Field, repeatedBytesField, writeBytes, writeInt64 } from '@quittance/tron/protobuf';
import { decodeTransferLog } from '@quittance/tron/usdt';
import { expect, test } from 'vitest';
import { askNode, payerOf, startTestDevnet, temporaryDirectory } from '../support/devnet.ts';
import {
  askGrpc,
  bytesMessage,
  callGrpc,
  callRaw,
  fieldsOf,
  judge,
  numberMessage,
  readExactBlock,
} from './grpc-call.ts';
import { readBlock, witnessKeyOf } from './read-block.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

const text = (message: string) => Buffer.from(message);
const blockRequest = (idOrNum: string, detail: boolean) =>
  concatBytes(writeBytes(1, text(idOrNum)), writeInt64(2, detail ? 1 : 0));
const limit = (start: number, end: number) => concatBytes(writeInt64(1, start), writeInt64(2, end));
const hexOf = (address: string) => {
  const parsed = parseAddress(address);
  return parsed.kind === 'ok' ? `41${parsed.account}` : '';
};

/** Starts a devnet whose block `number` contains a payment of 7 micro-USDT. */
async function paidDevnet() {
  const devnet = await startTestDevnet();
  devnet.mine(20);
  const id = await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
  const number = devnet.mine()[0]?.number ?? 0;
  devnet.mine(2);
  return { devnet, id, number };
}

test.each(POISONS)(
  '%s: the bytes of gRPC reproduce root, id and signature of every block, also after a restart',
  async (kind) => {
    const dataDir = temporaryDirectory();
    const devnet = await startTestDevnet({ dataDir });
    devnet.mine(3);
    devnet.poison(kind, { bytes: 100_000 });
    await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
    const number = devnet.mine()[0]?.number ?? 0;
    devnet.mine(3);
    const read = await readExactBlock(devnet.grpcUrl, number);
    expect(read).toMatchObject({ number, isIdRight: true, isRootRight: true, areTxIdsRight: true });
    expect(read.signer).toBe(await witnessKeyOf(devnet.url, read.producer));
    const json = await readBlock(devnet.url, number);
    expect(json.block.blockID).toBe(read.id);
    expect(json.txIds).toEqual(read.txIds);
    expect(json.isIdRight && json.isRootRight).toBe(kind === 'huge-infos');
    expect((await readExactBlock(devnet.grpcUrl, number + 1)).parentId).toBe(read.id);
    await devnet.stop();
    const again = await startTestDevnet({ dataDir });
    expect(await readExactBlock(again.grpcUrl, number)).toEqual(read);
  },
);

test('unknown-outer-field ends with the bytes that a real java-tron mined', async () => {
  const devnet = await startTestDevnet();
  devnet.poison('unknown-outer-field');
  devnet.poison('unknown-result-field');
  devnet.poison('order-id');
  const { transactions } = await readExactBlock(devnet.grpcUrl, devnet.mine()[0]?.number ?? 0);
  expect(transactions.map((each) => /2a(?:02|05|0c).{4,24}$/.exec(each)?.[0])).toEqual([
    '2a0218013001',
    '2a051801d03e01',
    '2a0c1801ca01076f726465726964',
  ]);
});

test('a block is the same by every method and on both services once it is solid', async () => {
  const { devnet, id, number } = await paidDevnet();
  expect(await askGrpc(devnet.grpcSolidityUrl, 'WalletSolidity/GetBlockByNum2', numberMessage(number))).toHaveLength(0);
  devnet.mineUntilSolid();
  const extended = await askGrpc(devnet.grpcUrl, 'Wallet/GetBlockByNum2', numberMessage(number));
  for (const service of ['Wallet', 'WalletSolidity']) {
    const url = service === 'Wallet' ? devnet.grpcUrl : devnet.grpcSolidityUrl;
    const ask = (method: string, request?: Uint8Array) => askGrpc(url, `${service}/${method}`, request);
    expect(await ask('GetBlockByNum2', numberMessage(number))).toEqual(extended);
    expect(await ask('GetBlock', blockRequest(String(number), true))).toEqual(extended);
    const plain = fieldsOf(await ask('GetBlockByNum', numberMessage(number)));
    const { transactions } = judge(extended, number);
    expect(repeatedBytesField(plain, 1).map((each) => bytesToHex(each))).toEqual(transactions);
    expect(bytesField(plain, 2)).toEqual(bytesField(fieldsOf(extended), 2));
    expect(bytesToHex(await ask('GetTransactionById', bytesMessage(id)))).toBe(transactions[0]);
    const header = fieldsOf(await ask('GetBlock', blockRequest(String(number), false)));
    expect(header.map((each) => each.number)).toEqual([2, 3]);
    const head = service === 'Wallet' ? devnet.head() : devnet.solid();
    expect(judge(await ask('GetNowBlock2'), head.number).id).toBe(head.id);
    expect(judge(await ask('GetBlock'), head.number).id).toBe(head.id);
    expect(bytesField(fieldsOf(await ask('GetNowBlock')), 2)).toEqual(
      bytesField(fieldsOf(await ask('GetNowBlock2')), 2),
    );
  }
  const byId = blockRequest(devnet.head().id.toUpperCase(), false);
  expect(judge(await askGrpc(devnet.grpcUrl, 'Wallet/GetBlock', byId), devnet.head().number).id).toBe(devnet.head().id);
});

test('ranges end before their end, have at most 100 blocks, and are served by Wallet alone', async () => {
  const { devnet, number } = await paidDevnet();
  const range = async (start: number, end: number, method = 'GetBlockByLimitNext2') =>
    repeatedBytesField(fieldsOf(await askGrpc(devnet.grpcUrl, `Wallet/${method}`, limit(start, end))), 1);
  expect(
    (await range(number - 1, number + 50)).map((each, index) => judge(each, number - 1 + index).isRootRight),
  ).toEqual([true, true, true, true]);
  expect(await range(number - 1, number + 1, 'GetBlockByLimitNext')).toHaveLength(2);
  for (const [start, end] of [
    [5, 106],
    [5, 5],
    [9, 5],
    [-3, 1],
    [500, 505],
  ] as const) {
    expect(await range(start, end)).toEqual([]);
  }
  expect(await callGrpc(devnet.grpcSolidityUrl, 'WalletSolidity/GetBlockByLimitNext2', limit(1, 2))).toMatchObject({
    status: '12',
    text: 'Method not found: protocol.WalletSolidity/GetBlockByLimitNext2',
  });
});

test('infos hold what those of JSON do', async () => {
  const { devnet, id, number } = await paidDevnet();
  const infoOf = fieldsOf(await askGrpc(devnet.grpcUrl, 'Wallet/GetTransactionInfoById', bytesMessage(id)));
  const [json] = await askNode<Record<string, string>[]>(devnet.url, '/wallet/gettransactioninfobyblocknum', {
    num: number,
  });
  const all = fieldsOf(await askGrpc(devnet.grpcUrl, 'Wallet/GetTransactionInfoByBlockNum', numberMessage(number)));
  expect(repeatedBytesField(all, 1).map(fieldsOf)).toEqual([infoOf]);
  expect(bytesToHex(bytesField(infoOf, 1))).toBe(id);
  expect(int64Field(infoOf, 2)).toBe(BigInt(json?.['fee'] ?? 0));
  expect(int64Field(infoOf, 3)).toBe(BigInt(number));
  const log = fieldsOf(bytesField(infoOf, 8));
  const shown = {
    address: bytesToHex(bytesField(log, 1)),
    topics: repeatedBytesField(log, 2).map((each) => bytesToHex(each)),
    data: bytesToHex(bytesField(log, 3)),
  };
  expect([shown]).toEqual(json?.['log']);
  expect(decodeTransferLog(shown)).toMatchObject({ value: 7n });
});

test.each(['log', 'contractResult', 'internal_transactions'] as const)(
  'huge infos come in one message, at half of their size in JSON or less: %s',
  async (shape) => {
    const devnet = await startTestDevnet();
    devnet.poison('huge-infos', { bytes: 8_000_000, shape });
    const [mined] = devnet.mine();
    const message = await askGrpc(
      devnet.grpcUrl,
      'Wallet/GetTransactionInfoByBlockNum',
      numberMessage(mined?.number ?? 0),
    );
    expect(message.length).toBeGreaterThan(2_000_000);
    expect(message.length).toBeLessThan(4_100_000);
  },
);

test('what is missing is a message without fields, and what cannot be asked is an error', async () => {
  const { devnet } = await paidDevnet();
  const nothing: [string, Uint8Array][] = [
    ['GetBlock', blockRequest('99999', true)],
    ['GetBlock', blockRequest('00'.repeat(32), true)],
    ['GetBlockByNum2', numberMessage(99_999)],
    ['GetBlockByNum', numberMessage(-1)],
    ['GetTransactionById', bytesMessage('00'.repeat(32))],
    ['GetTransactionById', new Uint8Array(0)],
    ['GetTransactionInfoById', bytesMessage('ff')],
    ['GetTransactionInfoByBlockNum', numberMessage(0)],
    ['GetTransactionInfoByBlockNum', numberMessage(2)],
    ['GetTransactionInfoByBlockNum', numberMessage(99_999)],
    ['GetAccount', writeBytes(3, hexToBytes(`41${'00'.repeat(20)}`))],
    ['GetAccount', new Uint8Array(0)],
  ];
  for (const [method, request] of nothing) {
    expect([method, await askGrpc(devnet.grpcUrl, `Wallet/${method}`, request)]).toEqual([method, Buffer.alloc(0)]);
  }
  const call = (method: string, request?: Uint8Array) => callGrpc(devnet.grpcUrl, method, request);
  expect(await call('Wallet/GetBlock', blockRequest('latest', true))).toMatchObject({
    http: 200,
    status: '3',
    text: 'id must be legal block hash.',
  });
  expect(await call('Wallet/GetBlock', blockRequest('-1', true))).toMatchObject({
    status: '3',
    text: 'num must be non-positive number.',
  });
  expect(await call('Wallet/Nothing')).toMatchObject({
    status: '12',
    text: 'Method not found: protocol.Wallet/Nothing',
  });
  expect(await call('WalletSolidity/GetNowBlock')).toMatchObject({ status: '12' });
  expect(await call('Wallet/GetBlock', hexToBytes('ffffff'))).toMatchObject({
    status: '2',
    text: 'Application error processing RPC',
  });
  const path = '/protocol.Wallet/GetNowBlock2';
  expect(await callRaw(devnet.grpcUrl, path, Buffer.alloc(0))).toMatchObject({ status: '13' });
  expect(await callRaw(devnet.grpcUrl, path, Buffer.alloc(10))).toMatchObject({
    status: '13',
    text: 'Too many requests',
  });
  expect(await callRaw(devnet.grpcUrl, path, Buffer.alloc(5), { 'content-type': 'text/plain' })).toMatchObject({
    http: 415,
  });
  expect(await callRaw(devnet.grpcUrl, path, Buffer.alloc(5 * 1024 * 1024))).toMatchObject({
    http: undefined,
    status: undefined,
  });
});

test('accounts, witnesses and balances are those of JSON', async () => {
  const { devnet } = await paidDevnet();
  const witnesses = repeatedBytesField(fieldsOf(await askGrpc(devnet.grpcUrl, 'Wallet/ListWitnesses')), 1).map(
    fieldsOf,
  );
  const { witnesses: shown } = await askNode<{ witnesses: { address: string; voteCount: number }[] }>(
    devnet.url,
    '/wallet/listwitnesses',
  );
  expect(witnesses.map((each) => [bytesToHex(bytesField(each, 1)), int64Field(each, 9)])).toEqual(
    shown.map(({ address }) => [address, 1n]),
  );
  const producer = devnet.witnesses()[1];
  const account = fieldsOf(
    await askGrpc(devnet.grpcUrl, 'Wallet/GetAccount', writeBytes(3, hexToBytes(hexOf(producer?.address ?? '')))),
  );
  const [key] = repeatedBytesField(fieldsOf(bytesField(account, 32)), 7).map(fieldsOf);
  expect(bytesToHex(bytesField(key ?? [], 1))).toBe(hexOf(producer?.signerAddress ?? ''));
  const balance = async (contract: string) =>
    fieldsOf(
      await askGrpc(
        devnet.grpcUrl,
        'Wallet/TriggerConstantContract',
        concatBytes(
          writeBytes(2, hexToBytes(hexOf(contract))),
          writeBytes(4, hexToBytes(`70a08231${hexOf(RECIPIENT).slice(2).padStart(64, '0')}`)),
        ),
      ),
    );
  const answer = await balance(devnet.usdtContract);
  expect(BigInt(`0x${bytesToHex(bytesField(answer, 3))}`)).toBe(7n);
  expect(bytesToHex(bytesField(answer, 4))).toBe('0801');
  const refused = fieldsOf(bytesField(await balance(RECIPIENT), 4));
  expect(int64Field(refused, 2)).toBe(2n);
  expect(Buffer.from(bytesField(refused, 3)).toString()).toBe('Contract validate error : Smart contract is not exist.');
});

test.each<[Fault['kind'], object]>([
  ['error-200', { http: 200, status: '8', text: undefined }],
  ['limited-429', { http: 200, status: '8' }],
  ['unavailable-503', { http: 200, status: '14' }],
  ['bare-text', { status: '14', text: 'this API is closed because this node is a lite fullnode' }],
  ['html', { http: 502, status: undefined }],
  ['suspended-403', { http: 403, status: undefined }],
  ['not-found-404', { http: 404, status: undefined }],
  ['reset', { http: undefined, status: undefined }],
])('%s by gRPC', async (kind, expected) => {
  const { devnet } = await paidDevnet();
  devnet.setFault({ kind });
  expect(await callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2')).toMatchObject(expected);
  devnet.setFault();
  expect(await callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2')).toMatchObject({ status: '0' });
});

test('truncated ends a message in its middle, without a status', async () => {
  const { devnet } = await paidDevnet();
  const whole = await callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2');
  devnet.setFault({ kind: 'truncated' });
  const half = await callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2');
  expect(half).toMatchObject({ http: 200, status: undefined });
  expect(half.body).toEqual(whole.body.subarray(0, half.body.length));
  expect(half.body.length).toBeLessThan(whole.body.length);
});

test('bracket-bomb is a list of that many bytes of empty messages', async () => {
  const devnet = await startTestDevnet();
  devnet.setFault({ kind: 'bracket-bomb', bytes: 5_000_000 });
  const message = await askGrpc(devnet.grpcUrl, 'Wallet/GetTransactionInfoByBlockNum', numberMessage(1));
  expect(message).toHaveLength(5_000_000);
  expect(message.subarray(-6).toString('hex')).toBe('0a000a000a00');
});

test('slow-large-answer sends the whole message at its rate', async () => {
  const { devnet } = await paidDevnet();
  const whole = await callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2');
  devnet.setFault({ kind: 'slow-large-answer', bytesPerSecond: whole.body.length * 2 });
  const before = performance.now();
  const slow = await callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2');
  expect(slow).toMatchObject({ status: '0', body: whole.body });
  expect(slow.chunks).toBeGreaterThan(5);
  expect(performance.now() - before).toBeGreaterThan(400);
});

test('the third PING without a call in between ends the connection', async () => {
  const devnet = await startTestDevnet();
  const session = connect(devnet.grpcUrl.replace('grpc', 'http'));
  const goneAway = once(session, 'goaway');
  session.on('error', () => undefined);
  await once(session, 'connect');
  for (let ping = 0; ping < 3; ping += 1) session.ping(() => undefined);
  const [code, , reason] = await goneAway;
  expect([code, Buffer.from(reason).toString()]).toEqual([11, 'too_many_pings']);
  session.destroy();
});

test('a node that hangs or drips does not keep the devnet from stopping', async () => {
  const { devnet } = await paidDevnet();
  devnet.setFault({ kind: 'hang', paths: ['/wallet/getnowblock'] }, { kind: 'slow-drip', paths: ['/wallet/getblock'] });
  const calls = [callGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2'), callGrpc(devnet.grpcUrl, 'Wallet/GetBlock')];
  // The node answers another method meanwhile, which proves that the calls above have reached it.
  await askGrpc(devnet.grpcUrl, 'Wallet/ListWitnesses');
  await devnet.stop();
  for (const { status } of await Promise.all(calls)) expect(status).toBeUndefined();
});

test('a browser cannot call it: without TLS browsers speak HTTP/1.1, and HTTP/2 needs a content type that they ask for first', async () => {
  const { devnet } = await paidDevnet();
  const page = await fetch(devnet.grpcUrl.replace('grpc:', 'http:'), { method: 'POST', body: 'x' }).then(
    ({ status }) => status,
    () => 'no answer',
  );
  expect([403, 'no answer']).toContain(page);
  const session = connect(devnet.grpcUrl.replace('grpc:', 'http:'));
  const call = session.request({
    ':method': 'POST',
    ':path': '/protocol.Wallet/GetNowBlock2',
    'content-type': 'text/plain',
  });
  const [{ ':status': status }] = await once(call.end(), 'response');
  expect(status).toBe(415);
  session.destroy();
});

test('lies are told by gRPC as by JSON', async () => {
  const { devnet, number } = await paidDevnet();
  const sick = async (fault: Fault) => {
    devnet.setFault(fault);
    return readExactBlock(devnet.grpcUrl, number);
  };
  expect(await sick({ kind: 'omitted-transaction' })).toMatchObject({ txIds: [], isRootRight: false, isIdRight: true });
  expect(await sick({ kind: 'empty-block' })).toMatchObject({ txIds: [], isRootRight: false });
  expect(await sick({ kind: 'flipped-result' })).toMatchObject({ isRootRight: false, areTxIdsRight: true });
  expect(await sick({ kind: 'forged-header' })).toMatchObject({ isIdRight: false });
  expect(await sick({ kind: 'forged-block', fromBlock: number })).toMatchObject({ isIdRight: true, isRootRight: true });
  devnet.setFault({ kind: 'empty-infos' });
  expect(await askGrpc(devnet.grpcUrl, 'Wallet/GetTransactionInfoByBlockNum', numberMessage(number))).toHaveLength(0);
  devnet.setFault({ kind: 'lag', blocks: 5 });
  expect(judge(await askGrpc(devnet.grpcUrl, 'Wallet/GetNowBlock2'), devnet.head().number - 5).isIdRight).toBe(true);
});
