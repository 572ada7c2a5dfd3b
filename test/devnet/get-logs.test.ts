import type { Devnet } from '@quittance/devnet';
import { type AccountHex, parseAddress } from '@quittance/tron/address';
import { TRANSFER_TOPIC } from '@quittance/tron/usdt';
import { expect, test } from 'vitest';
import { askNode, askNodeText, payerOf, startTestDevnet } from '../support/devnet.ts';
import { longTest } from '../support/some-cases.ts';
import { readBlock } from './read-block.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const OTHER = 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK';

type FilteredLog = {
  blockNumber: string;
  blockHash: string;
  transactionHash: string;
  transactionIndex: string;
  logIndex: string;
  address: string;
  data: string;
  topics: string[];
};
type Answer = { result?: FilteredLog[]; error?: { code: number; message: string; data?: string } };

function accountOf(address: string): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  return parsed.account;
}

function wordOf(address: string): string {
  return `0x${accountOf(address).padStart(64, '0')}`;
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}

/**
 * Starts a devnet whose blocks 2 to 21 are empty. The next one has 9 fake USDT, a direct 1, 2 and 3 through a contract, and failed
 * transactions.
 */
async function mixedDevnet() {
  const devnet = await startTestDevnet();
  devnet.mine(20);
  const payer = payerOf(devnet);
  const contract = devnet.usdtContract;
  await payer.transfer({ contract: devnet.fakeUsdtContract, to: RECIPIENT, amountMicro: 9n });
  await payer.transfer({ contract, to: RECIPIENT, amountMicro: 1n });
  await payer.multisend({
    multisendContract: devnet.multisendContract,
    token: contract,
    transfers: [
      { to: RECIPIENT, amountMicro: 2n },
      { to: OTHER, amountMicro: 3n },
    ],
  });
  await payer.transfer({ contract, to: RECIPIENT, amountMicro: 10n ** 18n });
  devnet.mine();
  const number = devnet.head().number;
  return { devnet, number, payer, usdt: `0x${accountOf(contract)}` };
}

function callOf(filter: unknown, id: number | string = 1) {
  return { jsonrpc: '2.0', id, method: 'eth_getLogs', params: [filter] };
}

function logsOf({ url }: Pick<Devnet, 'url'>, filter: object): Promise<Answer> {
  return askNode<Answer>(url, '/jsonrpc', callOf(filter));
}

function amountsOf({ result = [] }: Answer): number[] {
  return result.map(({ data }) => Number(data));
}

test('a log is shown as java-tron shows it: counted within its block, with its fields by the alphabet', async () => {
  const { devnet, number, usdt } = await mixedDevnet();
  const filter = { fromBlock: '0x1', toBlock: hex(number), address: usdt };
  const { infos } = await readBlock(devnet.url, number);
  const logs = infos.flatMap(({ id, log = [] }, index) => log.map((each) => ({ ...each, id, index })));
  const expected = logs.map(({ address, data, topics, id, index }, logIndex) => ({
    address: `0x${address}`,
    blockHash: `0x${devnet.head().id}`,
    blockNumber: hex(number),
    data: `0x${data}`,
    logIndex: hex(logIndex),
    removed: false,
    topics: topics.map((topic) => `0x${topic}`),
    transactionHash: `0x${id}`,
    transactionIndex: hex(index),
  }));
  expect(expected).toHaveLength(4);
  const { status, text } = await askNodeText(devnet.url, '/jsonrpc', callOf(filter, 'mine'));
  expect(status).toBe(200);
  expect(text).toBe(`${JSON.stringify({ jsonrpc: '2.0', id: 'mine', result: expected.slice(1) })}\n`);
  expect((await logsOf(devnet, { ...filter, address: undefined })).result).toEqual(expected);
});

test('a log of many megabytes that does not match is counted all the same', async () => {
  const { devnet, payer, usdt } = await mixedDevnet();
  devnet.poison('huge-infos', { bytes: 1_000_000, shape: 'log', transactions: 2 });
  await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
  const [block] = devnet.mine();
  const { result = [] } = await logsOf(devnet, { blockHash: block?.id, address: usdt });
  const infos = (await readBlock(devnet.url, block?.number ?? 0)).infos;
  const before = infos.slice(0, Number(result[0]?.transactionIndex)).flatMap(({ log = [] }) => log).length;
  expect(before).toBeGreaterThan(0);
  expect(result.map(({ logIndex }) => Number(logIndex))).toEqual([before]);
});

test('contracts and topics are chosen from lists; null, an empty list and nothing allow all', async () => {
  const { devnet, number, usdt } = await mixedDevnet();
  const fake = `0x${accountOf(devnet.fakeUsdtContract)}`;
  const block = { fromBlock: hex(number), toBlock: hex(number) };
  const chosen = async (filter: object) => amountsOf(await logsOf(devnet, { ...block, ...filter }));
  expect(await chosen({ address: [usdt, fake] })).toEqual([9, 1, 2, 3]);
  expect(await chosen({ address: usdt.toUpperCase().replace('0X', '') })).toEqual([1, 2, 3]);
  expect(await chosen({ address: [] })).toEqual([9, 1, 2, 3]);
  const transfer = `0x${TRANSFER_TOPIC}`;
  expect(await chosen({ address: usdt, topics: [transfer, null, wordOf(OTHER)] })).toEqual([3]);
  expect(await chosen({ address: usdt, topics: [[], null, [wordOf(OTHER), wordOf(RECIPIENT)]] })).toEqual([1, 2, 3]);
  expect(await chosen({ address: usdt, topics: [wordOf(OTHER)] })).toEqual([]);
  expect(await chosen({ address: usdt, topics: [null, null, null, null] })).toEqual([]);
});

test('the range ends at the head, tags name blocks, and blocks above the head are no error', async () => {
  const { devnet, number, payer, usdt } = await mixedDevnet();
  await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 4n });
  const head = devnet.mine()[0]?.number ?? 0;
  const asked = async (filter: object) => amountsOf(await logsOf(devnet, { address: usdt, ...filter }));
  expect(await asked({ fromBlock: hex(number), toBlock: hex(head + 1_000_000) })).toEqual([1, 2, 3, 4]);
  expect(await asked({ fromBlock: 'earliest', toBlock: 'latest' })).toEqual([1, 2, 3, 4]);
  expect(await asked({ fromBlock: 'earliest', toBlock: 'finalized' })).toEqual([]);
  expect(await asked({ toBlock: hex(number) })).toEqual([1, 2, 3]);
  expect(await asked({ fromBlock: hex(number) })).toEqual([1, 2, 3, 4]);
  expect(await asked({})).toEqual([4]);
  expect(await asked({ blockHash: `0x${devnet.head().id}` })).toEqual([4]);
  expect(await asked({ fromBlock: hex(head + 1), toBlock: hex(head + 9) })).toEqual([]);
});

longTest('the last block of a range may be 5,000 above the first, and not one more', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(5_001);
  const head = devnet.head().number;
  expect(await logsOf(devnet, { fromBlock: hex(head - 5_000), toBlock: hex(head) })).toHaveProperty('result', []);
  expect(await logsOf(devnet, { fromBlock: hex(head - 5_000), toBlock: hex(head + 9_000) })).toHaveProperty('result');
  expect(await logsOf(devnet, { fromBlock: hex(head - 5_001), toBlock: hex(head) })).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32602, message: 'exceed max block range: 5000', data: '{}' },
  });
});

longTest('more than 10,000 logs are an error, and 10,000 are not', async () => {
  const devnet = await startTestDevnet();
  const payer = payerOf(devnet);
  const [token, multisendContract] = [devnet.usdtContract, devnet.multisendContract];
  const transfers = Array.from({ length: 200 }, () => ({ to: RECIPIENT, amountMicro: 1n }));
  for (let sent = 0; sent < 50; sent += 1) {
    await payer.multisend({ multisendContract, token, transfers });
    devnet.mine();
  }
  const all = { fromBlock: '0x1', toBlock: 'latest' };
  expect((await logsOf(devnet, all)).result).toHaveLength(10_000);
  await payer.transfer({ contract: token, to: RECIPIENT, amountMicro: 1n });
  devnet.mine();
  expect((await logsOf(devnet, all)).error).toEqual({
    code: -32005,
    message: 'query returned more than 10000 results',
    data: '{}',
  });
});

test.each<[string, unknown, number, string]>([
  ['an address with its 41', { address: `0x41${'00'.repeat(20)}` }, -32602, `invalid address: 0x41${'00'.repeat(20)}`],
  ['a short one in a list', { address: [`0x${'00'.repeat(20)}`, '0x12'] }, -32602, 'invalid address at index 1: 0x12'],
  ['an address that is a number', { address: 7 }, -32602, 'invalid addresses in query'],
  ['five topics', { topics: [null, null, null, null, null] }, -32602, 'topics size should be <= 4'],
  ['a topic that is not one', { topics: ['0x12'] }, -32602, 'invalid topic(s): 0x12'],
  ['bounds that cross', { fromBlock: '0x2', toBlock: '0x1' }, -32602, 'please verify: fromBlock <= toBlock'],
  ['a decimal bound', { fromBlock: '12' }, -32602, 'Incorrect hex syntax'],
  ['a bound that is no number', { fromBlock: '0xz' }, -32001, 'For input string: "z"'],
  ['pending', { toBlock: 'pending' }, -32602, 'TAG pending not supported'],
  ['an unknown block', { blockHash: '00'.repeat(32) }, -32602, 'invalid blockHash'],
  [
    'a block and a bound',
    { blockHash: '00'.repeat(32), toBlock: '0x1' },
    -32602,
    'cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other',
  ],
  ['an unknown field', { limit: 5 }, -32700, 'JSON parse error'],
])('%s is refused as by java-tron', async (_what, filter, code, message) => {
  const devnet = await startTestDevnet();
  const { status, text } = await askNodeText(devnet.url, '/jsonrpc', callOf(filter));
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', error: { code, message } });
});

test('what is no call of eth_getLogs is answered as by jsonrpc4j, and a list with a list', async () => {
  const devnet = await startTestDevnet();
  const ask = (body: object) => askNode(devnet.url, '/jsonrpc', body);
  const unknown = { jsonrpc: '2.0', id: 8, error: { code: -32601, message: 'method not found' } };
  expect(await ask({ jsonrpc: '2.0', id: 8, method: 'eth_getLoggs', params: [] })).toEqual(unknown);
  const empty = { jsonrpc: '2.0', id: 9, error: { code: -32602, message: 'method parameters invalid' } };
  expect(await ask({ jsonrpc: '2.0', id: 9, method: 'eth_getLogs', params: [] })).toEqual(empty);
  const good = { jsonrpc: '2.0', id: 1, result: [] };
  expect(await ask([callOf({}), { jsonrpc: '2.0', id: 8, method: 'eth_getLoggs' }])).toEqual([good, unknown]);
  const broken = await fetch(`${devnet.url}/jsonrpc`, { method: 'POST', body: '{"jsonrpc":' });
  expect(broken.headers.get('content-type')).toBe('application/json-rpc');
  expect(await broken.json()).toEqual({
    jsonrpc: '2.0',
    id: 'null',
    error: { code: -32700, message: 'JSON parse error' },
  });
});

test('JSON-RPC is spoken at the port of /wallet, and by POST alone', async () => {
  const devnet = await startTestDevnet({ separatePorts: true });
  expect(await logsOf(devnet, {})).toHaveProperty('result', []);
  expect((await fetch(`${devnet.url}/jsonrpc`)).status).toBe(405);
  expect((await askNodeText(devnet.solidityUrl, '/jsonrpc', callOf({}))).status).toBe(405);
  expect((await askNodeText(devnet.url, '/jsonrpc/eth_getLogs', callOf({}))).status).toBe(405);
});

test('lies about logs stand in eth_getLogs as they stand in the infos', async () => {
  const { devnet, number, usdt } = await mixedDevnet();
  const all = { fromBlock: '0x1', toBlock: hex(number), address: usdt };
  const shown = async () => amountsOf(await logsOf(devnet, all));
  devnet.setFault({ kind: 'hidden-log' });
  expect(await shown()).toEqual([1]);
  devnet.setFault({ kind: 'forged-log', to: OTHER, amountMicro: 77n });
  expect(await shown()).toEqual([77, 1, 2, 3]);
  devnet.setFault({ kind: 'forged-block', fromBlock: number, amountMicro: 88n });
  const { result = [] } = await logsOf(devnet, all);
  expect(amountsOf({ result })).toEqual([1, 2, 3, 88]);
  expect(result[3]?.blockHash).toBe(`0x${(await readBlock(devnet.url, number)).block.blockID}`);
  devnet.setFault({ kind: 'lag', blocks: 1 });
  expect(await shown()).toEqual([]);
});

test('a node without the index of some blocks answers no log of them, and says nothing of it', async () => {
  const { devnet, number, payer, usdt } = await mixedDevnet();
  await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 4n });
  devnet.mine(30);
  const all = { fromBlock: '0x1', toBlock: 'latest', address: usdt };
  devnet.setFault({ kind: 'missing-logs' });
  expect(await logsOf(devnet, all)).toEqual({ jsonrpc: '2.0', id: 1, result: [] });
  expect((await readBlock(devnet.url, number)).infos).toHaveLength(4);
  devnet.setFault({ kind: 'missing-logs', toBlock: number });
  expect(amountsOf(await logsOf(devnet, all))).toEqual([4]);
  devnet.setFault({ kind: 'missing-history', blocks: 20 });
  expect(await logsOf(devnet, all)).toHaveProperty('result', []);
});

test('a node can leave out the transfers to one recipient', async () => {
  const { devnet, number, usdt } = await mixedDevnet();
  devnet.setFault({ kind: 'missing-logs', to: RECIPIENT });
  const { result = [] } = await logsOf(devnet, { fromBlock: hex(number), address: usdt });
  expect(result).toMatchObject([{ logIndex: '0x3', topics: [`0x${TRANSFER_TOPIC}`, {}, wordOf(OTHER)] }]);
});

test('a provider can refuse with an error of JSON-RPC, or not know the path', async () => {
  const { devnet } = await mixedDevnet();
  devnet.setFault({ kind: 'limited-logs' });
  expect(await logsOf(devnet, {})).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32005, message: 'Limit exceeded' },
  });
  for (const [kind, status] of [['not-found-404', 404] as const, ['not-allowed-405', 405] as const]) {
    devnet.setFault({ kind, paths: ['/jsonrpc'] });
    expect((await askNodeText(devnet.url, '/jsonrpc', callOf({}))).status).toBe(status);
    expect(await askNode(devnet.url, '/wallet/getnowblock')).toMatchObject({ blockID: devnet.head().id });
  }
});
