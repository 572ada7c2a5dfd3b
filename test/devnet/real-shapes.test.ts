import { blockIdOf } from '@quittance/tron/block-header';
import { bytesField } from '@quittance/tron/protobuf';
import { expect, test } from 'vitest';
import { askNode, askNodeText, payerOf, startTestDevnet, temporaryDirectory } from '../support/devnet.ts';
import { findSteadyPort } from '../support/steady-port.ts';
import { askGrpc, fieldsOf, judge, numberMessage } from './grpc-call.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

const PARSE = 'class org.tron.core.services.http.JsonFormat$ParseException';

/** The literal answers of a java-tron 4.8.0. */
const ANSWERS: [string, object, unknown][] = [
  ['getblock', { id_or_num: 5 }, { Error: `${PARSE} : 1:14: Expected string.` }],
  ['getblock', { id_or_num: '5', detail: 1 }, { Error: `${PARSE} : 1:27: Expected "true" or "false".` }],
  ['getblock', { id_or_num: 'latest' }, { Error: 'id must be legal block hash.' }],
  ['getblock', { id_or_num: '0x3' }, { Error: 'id must be legal block hash.' }],
  ['getblock', { id_or_num: `00000000000f${'0'.repeat(51)}a` }, { Error: 'id must be legal block hash.' }],
  ['getblock', { id_or_num: `0000000000000003${'a'.repeat(48)}` }, {}],
  ['getblock', { id_or_num: '-1' }, { Error: 'num must be non-positive number.' }],
  ['getblock', { id_or_num: '999999' }, {}],
  ['getblockbynum', { num: '5' }, { Error: `${PARSE} : 1:8: Couldn't parse integer: For input string: ""5""` }],
  ['getblockbynum', { num: 1.5 }, { Error: `${PARSE} : 1:8: Couldn't parse integer: For input string: "1.5"` }],
  ['getblockbynum', { num: -5 }, {}],
  ['gettransactioninfobyblocknum', { num: 0 }, {}],
  ['gettransactioninfobyblocknum', {}, {}],
  ['gettransactioninfobyblocknum', { num: -1 }, {}],
  ['gettransactioninfobyblocknum', { num: 3 }, []],
  ['gettransactioninfobyblocknum', { num: 99_999 }, []],
  [
    'gettransactioninfobyblocknum',
    { num: '5' },
    { Error: `${PARSE} : 1:8: Couldn't parse integer: For input string: ""5""` },
  ],
  ['getblockbylimitnext', { startNum: 9_999, endNum: 10_000 }, { block: [] }],
  ['getblockbylimitnext', { startNum: -3, endNum: 1 }, { block: [] }],
  ['getblockbylimitnext', { startNum: 5, endNum: 106 }, {}],
  ['getblockbylimitnext', { startNum: 5, endNum: 5 }, {}],
  ['getblockbylimitnext', {}, {}],
  [
    'getblockbylimitnext',
    { startNum: '5', endNum: 6 },
    { Error: `${PARSE} : 1:13: Couldn't parse integer: For input string: ""5""` },
  ],
  ['gettransactionbyid', { value: 'zz' }, { Error: `${PARSE} : 1:10: INVALID hex String` }],
  ['gettransactionbyid', { value: 5 }, { Error: `${PARSE} : 1:10: Expected string.` }],
  ['gettransactionbyid', { value: 'abc' }, {}],
  ['gettransactioninfobyid', { value: 'zz' }, { Error: `${PARSE} : 1:10: INVALID hex String` }],
  ['getblockbyid', { value: 'abcd' }, {}],
  ['getaccount', { address: 'zz' }, { Error: `${PARSE} : 1:12: INVALID hex String` }],
  ['getaccount', { address: '4100000000000000000000000000000000000000aa' }, {}],
  ['getaccount', {}, {}],
];

test.each(ANSWERS)('%s %j is answered as by a real node', async (name, body, expected) => {
  const devnet = await startTestDevnet();
  devnet.mineUntilSolid();
  devnet.mine(10);
  for (const [url, api] of [
    [devnet.url, '/wallet'],
    [devnet.solidityUrl, '/walletsolidity'],
  ] as const) {
    expect(await askNode(url, `${api}/${name}`, body)).toEqual(expected);
  }
});

test('ids are found in capitals as well', async () => {
  const devnet = await startTestDevnet();
  const id = await payerOf(devnet).sendTrx({ to: RECIPIENT, amountSun: 5n });
  devnet.mine();
  const capitals = { value: id.toUpperCase() };
  expect(await askNode(devnet.url, '/wallet/gettransactionbyid', capitals)).toMatchObject({ txID: id });
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', capitals)).toMatchObject({ id });
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: devnet.head().id.toUpperCase() })).toMatchObject({
    blockID: devnet.head().id,
  });
});

test('each API has a port of its own; the first answers both unless ports are separate', async () => {
  const path = '/walletsolidity/getnowblock';
  const both = await startTestDevnet();
  expect(await askNode(both.url, path)).toEqual(await askNode(both.solidityUrl, path));
  const separate = await startTestDevnet({ separatePorts: true });
  expect(await askNode(separate.solidityUrl, path)).toHaveProperty('blockID');
  expect(await askNode(separate.url, '/wallet/getnowblock')).toHaveProperty('blockID');
  for (const devnet of [both, separate]) {
    expect((await askNodeText(devnet.solidityUrl, '/wallet/getnowblock')).status).toBe(405);
  }
  expect((await askNodeText(separate.url, path)).status).toBe(405);
  expect((await askNodeText((await separate.addNode()).url, path)).status).toBe(405);
  await payerOf(separate).transfer({ contract: separate.usdtContract, to: RECIPIENT, amountMicro: 1n });
  expect(separate.pendingCount()).toBe(1);
});

test('ports can be chosen, and a port that is taken leaves no other one open', async () => {
  const found = new Set<number>();
  while (found.size < 4) found.add(await findSteadyPort());
  const [port = 0, solidityPort = 0, grpcPort = 0, grpcSolidityPort = 0] = found;
  const ports = { port, solidityPort, grpcPort, grpcSolidityPort };
  const first = await startTestDevnet(ports);
  const portOf = (url: string) => Number(new URL(url.replace('grpc', 'http')).port);
  expect([first.url, first.solidityUrl, first.grpcUrl, first.grpcSolidityUrl].map(portOf)).toEqual(
    Object.values(ports),
  );
  await first.stop();
  const other = await startTestDevnet({ port: ports.grpcSolidityPort });
  await expect(startTestDevnet(ports)).rejects.toThrow('EADDRINUSE');
  await other.stop();
  await startTestDevnet(ports);
});

test('genesis has no time, the producer of every TRON network, and the gifts from nobody; its bytes hash to its id', async () => {
  const devnet = await startTestDevnet();
  const genesis = await askNode<{
    blockID: string;
    block_header: { raw_data: object };
    transactions: Record<string, unknown>[];
  }>(devnet.url, '/wallet/getblock', { id_or_num: '0', detail: true });
  expect(Object.keys(genesis.block_header)).toEqual(['raw_data']);
  expect(Object.keys(genesis.block_header.raw_data)).toEqual(['txTrieRoot', 'parentHash', 'witness_address']);
  expect(genesis.block_header.raw_data).toHaveProperty(
    'witness_address',
    '41206e65772073797374656d206d75737420616c6c6f77206578697374696e672073797374656d7320746f206265206c696e6b656420746f67657468657220776974686f757420726571756972696e6720616e792063656e7472616c20636f6e74726f6c206f7220636f6f7264696e6174696f6e',
  );
  expect(genesis.transactions.map((each) => Object.keys(each))).toEqual([
    ['txID', 'raw_data', 'raw_data_hex'],
    ['txID', 'raw_data', 'raw_data_hex'],
  ]);
  expect(genesis.transactions[0]?.['raw_data']).toEqual({
    contract: [
      {
        parameter: {
          value: {
            amount: 1_000_000_000_000_000,
            owner_address: '3078303030303030303030303030303030303030303030',
            to_address: expect.stringMatching(/^41[0-9a-f]{40}$/),
          },
          type_url: 'type.googleapis.com/protocol.TransferContract',
        },
        type: 'TransferContract',
      },
    ],
  });
  const bytes = await askGrpc(devnet.grpcUrl, 'Wallet/GetBlockByNum2', numberMessage(0));
  expect(judge(bytes, 0)).toMatchObject({
    id: genesis.blockID,
    isIdRight: true,
    isRootRight: true,
    areTxIdsRight: true,
  });
  const raw = bytesField(fieldsOf(bytesField(fieldsOf(bytes), 2)), 1);
  expect(fieldsOf(raw).map(({ number }) => number)).toEqual([2, 3, 9]);
  expect(blockIdOf(raw, 0)).toBe(genesis.blockID);
});

test('another time makes another genesis', async () => {
  const idOf = async (genesisTimestampMs: number) => {
    const devnet = await startTestDevnet({ genesisTimestampMs, dataDir: temporaryDirectory() });
    return (await askNode<{ blockID: string }>(devnet.url, '/wallet/getblock', { id_or_num: '0' })).blockID;
  };
  expect(await idOf(3_000)).not.toBe(await idOf(6_000));
});

test('listwitnesses counts what each producer made, as of the head of its API, also after a fork and a restart', async () => {
  const dataDir = temporaryDirectory();
  const devnet = await startTestDevnet({ dataDir, producers: 3 });
  devnet.mine(300);
  devnet.fork({ depth: 1 });
  type Answer = { witnesses: { totalProduced: number; latestBlockNum: number; latestSlotNum: number }[] };
  const witnessesOf = async (url: string, api: string) =>
    (await askNode<Answer>(url, `${api}/listwitnesses`)).witnesses;
  const total = (witnesses: Answer['witnesses']) => witnesses.reduce((sum, each) => sum + each.totalProduced, 0);
  const seen = await witnessesOf(devnet.url, '/wallet');
  expect(total(seen)).toBe(devnet.head().number);
  expect(total(await witnessesOf(devnet.solidityUrl, '/walletsolidity'))).toBe(devnet.solid().number);
  const newest = seen.find(({ latestBlockNum }) => latestBlockNum === devnet.head().number);
  expect(newest?.latestSlotNum).toBe(Math.floor(devnet.head().timestampMs / 3_000));
  await devnet.stop();
  const again = await startTestDevnet({ dataDir });
  expect(await witnessesOf(again.url, '/wallet')).toEqual(seen);
});

test('an account shows its windows and that it has staked nothing', async () => {
  const devnet = await startTestDevnet();
  const { address } = devnet.payer;
  expect(await askNode(devnet.url, '/wallet/getaccount', { address, visible: true })).toMatchObject({
    net_window_size: 28_800,
    account_resource: { energy_window_size: 28_800 },
    frozenV2: [{}, { type: 'ENERGY' }, { type: 'TRON_POWER' }],
  });
});

test('who opens an account pays for bandwidth, and a contract that calls another has internal transactions', async () => {
  const devnet = await startTestDevnet();
  const payer = payerOf(devnet);
  const opening = await payer.sendTrx({ to: RECIPIENT, amountSun: 5n });
  const calling = await payer.multisend({
    multisendContract: devnet.multisendContract,
    token: devnet.usdtContract,
    transfers: [{ to: RECIPIENT, amountMicro: 2n }],
  });
  devnet.mine();
  const second = await payer.sendTrx({ to: RECIPIENT, amountSun: 5n });
  devnet.mine();
  const infoOf = (value: string) => askNode(devnet.url, '/wallet/gettransactioninfobyid', { value, visible: true });
  expect(await infoOf(opening)).toMatchObject({ fee: 1_100_000, receipt: { net_fee: 100_000 } });
  expect(await infoOf(second)).toMatchObject({ receipt: { net_usage: expect.any(Number) } });
  expect(await infoOf(calling)).toMatchObject({
    internal_transactions: [
      {
        caller_address: devnet.multisendContract,
        transferTo_address: devnet.usdtContract,
        callValueInfo: [{}],
        note: '63616c6c',
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ],
  });
});

test('a message is text where addresses are, and hex else', async () => {
  const devnet = await startTestDevnet();
  const call = (visible: boolean, address: string) =>
    askNode(devnet.url, '/wallet/triggerconstantcontract', {
      owner_address: address,
      contract_address: address,
      function_selector: 'x()',
      visible,
    });
  expect(await call(true, RECIPIENT)).toEqual({
    result: { code: 'CONTRACT_VALIDATE_ERROR', message: 'Smart contract is not exist.' },
  });
  expect(await call(false, `41${'11'.repeat(20)}`)).toEqual({
    result: {
      code: 'CONTRACT_VALIDATE_ERROR',
      message: Buffer.from('Smart contract is not exist.').toString('hex'),
    },
  });
});
