import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Devnet, startDevnet } from '../devnet/devnet.ts';
import { createPayer } from '../devnet/payer.ts';
import { type AccountHex, parseAddress } from '../tron/address.ts';
import { createNodeClient, type NodeClient } from './node-client.ts';
import { readHeader, verifyBlock } from './verify-block.ts';

// biome-ignore lint/suspicious/noExplicitAny: the answers are bent in every way.
type Bent = any;

let devnet: Devnet;
let node: NodeClient;
let usdt: AccountHex;
let number: number;
let block: Bent;
let infos: Bent;
let to: string;

beforeAll(async () => {
  devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  node = createNodeClient({ url: devnet.url, apiKey: null });
  const parsed = parseAddress(devnet.usdtContract);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  usdt = parsed.account;
  const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
  to = devnet.multisendContract;
  await payer.transfer({ contract: devnet.usdtContract, to, amountMicro: 25_000_009n });
  await payer.transfer({ contract: devnet.fakeUsdtContract, to, amountMicro: 25_000_009n });
  await payer.transfer({ contract: devnet.usdtContract, to, amountMicro: 10n ** 30n });
  await payer.sendTrx({ to, amountSun: 5n });
  number = devnet.mine()[0]?.number ?? 0;
  block = await node.post('/wallet/getblock', { id_or_num: String(number), detail: true });
  infos = await node.post('/wallet/gettransactioninfobyblocknum', { num: number });
});
afterAll(async () => {
  await node.close();
  await devnet.stop();
});

const bent = (change: (block: Bent, infos: Bent) => void) => {
  const copy = structuredClone({ block, infos });
  change(copy.block, copy.infos);
  return () => verifyBlock(number, copy.block, copy.infos, usdt);
};

test('only successful transfers of the USDT contract are read, with their log index', () => {
  const { transfers, id, parentId } = verifyBlock(number, block, infos, usdt);
  expect({ id, parentId }).toEqual({ id: block.blockID, parentId: block.block_header.raw_data.parentHash });
  expect(transfers).toHaveLength(1);
  expect(transfers[0]).toMatchObject({ txId: block.transactions[0].txID, logIndex: 0, amount: 25_000_009n });
});

test('an empty block has no transactions field and needs empty infos', async () => {
  const [mined] = devnet.mine();
  const empty: Bent = await node.post('/wallet/getblock', { id_or_num: String(mined?.number), detail: true });
  expect(empty).not.toHaveProperty('transactions');
  expect(verifyBlock(mined?.number ?? 0, empty, [], usdt).transfers).toEqual([]);
});

test.each<[string, (block: Bent, infos: Bent) => void]>([
  ['no infos for a block with transactions', (_b, i) => i.splice(0)],
  ['one info too few', (_b, i) => i.pop()],
  ['one info too many', (_b, i) => i.push(i[0])],
  ['infos in another order', (_b, i) => i.reverse()],
  ['an info of another block', (_b, i) => (i[0].blockNumber += 1)],
  ['an info without its block number', (_b, i) => delete i[0].blockNumber],
  ['a null info', (_b, i) => (i[0] = null)],
  ['logs that are no list', (_b, i) => (i[0].log = 'x')],
  ['transactions that are no list', (b) => (b.transactions = {})],
  ['a transaction without id', (b) => delete b.transactions[0].txID],
  ['a null transaction', (b) => (b.transactions[0] = null)],
  ['an id that is not the number’s', (b) => (b.blockID = `${'0'.repeat(16)}${b.blockID.slice(16)}`)],
  ['an id that is no hash', (b) => (b.blockID = 'abc')],
  ['no header', (b) => delete b.block_header],
  ['a number that is text', (b) => (b.block_header.raw_data.number = String(b.block_header.raw_data.number))],
  ['no parent', (b) => delete b.block_header.raw_data.parentHash],
  ['a time that is no number', (b) => (b.block_header.raw_data.timestamp = 'now')],
  [
    'another block',
    (b) =>
      Object.assign(b, {
        blockID: `${(number + 1).toString(16).padStart(16, '0')}${b.blockID.slice(16)}`,
        block_header: { raw_data: { ...b.block_header.raw_data, number: number + 1 } },
      }),
  ],
])('an answer with %s is refused', (_what, change) => {
  expect(bent(change)).toThrow(expect.objectContaining({ code: 'NODE_REFUSED', retryable: true }));
});

test.each<[string, (block: Bent, infos: Bent) => void]>([
  ['contractRet is not SUCCESS', (b) => (b.transactions[0].ret[0].contractRet = 'REVERT')],
  ['contractRet is missing', (b) => delete b.transactions[0].ret],
  ['the receipt does not say SUCCESS', (_b, i) => (i[0].receipt.result = 'OUT_OF_ENERGY')],
  ['the receipt has no result', (_b, i) => delete i[0].receipt.result],
  ['the info says FAILED', (_b, i) => (i[0].result = 'FAILED')],
  ['the log is of another contract', (_b, i) => (i[0].log[0].address = '00'.repeat(20))],
  ['the topic is another event', (_b, i) => (i[0].log[0].topics[0] = '00'.repeat(32))],
  ['the value is zero', (_b, i) => (i[0].log[0].data = '00'.repeat(32))],
  ['the log is null', (_b, i) => (i[0].log[0] = null)],
])('a transfer does not count when %s', (_what, change) => {
  expect(bent(change)().transfers).toEqual([]);
});

test('an unknown block, which a node answers as {}, is refused', () => {
  expect(() => readHeader({})).toThrow(expect.objectContaining({ code: 'NODE_REFUSED' }));
});
