import type { Fault } from '@quittance/devnet/faults/faults';
import { expect, test } from 'vitest';
import { askNode, askNodeText, payerOf, startTestDevnet } from '../support/devnet.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const INFOS = '/wallet/gettransactioninfobyblocknum';

/** Starts a devnet with three payments in its head. */
async function busyDevnet() {
  const devnet = await startTestDevnet();
  devnet.mine(20);
  const payer = payerOf(devnet);
  for (const amountMicro of [1n, 2n, 3n]) {
    await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro });
  }
  devnet.mine();
  const num = devnet.head().number;
  const ids = async () => (await askNode<{ id: string }[]>(devnet.url, INFOS, { num })).map(({ id }) => id);
  return { devnet, num, ids };
}

test.each<[Fault['kind'], number, string]>([
  ['error-200', 200, '{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}'],
  ['bare-text', 200, 'this API is closed because this node is a lite fullnode'],
  ['html', 502, '502 Bad Gateway'],
  [
    'suspended-403',
    403,
    '{"Success":false,"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s","StatusCode":403}',
  ],
  ['not-found-404', 404, 'Not Found'],
  ['not-allowed-405', 405, 'HTTP method POST is not supported by this URL'],
  ['too-large-413', 413, '413 Request Entity Too Large'],
  ['limited-429', 429, 'Too Many Requests'],
  ['unavailable-503', 503, '503 Service Unavailable'],
])('%s answers with status %i', async (kind, status, text) => {
  const devnet = await startTestDevnet();
  devnet.setFault({ kind });
  const answer = await askNodeText(devnet.url, '/wallet/getnowblock');
  expect(answer.status).toBe(status);
  expect(answer.text).toContain(text);
  devnet.setFault();
  expect(await askNode(devnet.url, '/wallet/getnowblock')).toMatchObject({ blockID: devnet.head().id });
});

test('truncated sends half of the JSON', async () => {
  const { devnet } = await busyDevnet();
  const whole = (await askNodeText(devnet.url, '/wallet/getnowblock')).text;
  devnet.setFault({ kind: 'truncated' });
  const half = (await askNodeText(devnet.url, '/wallet/getnowblock')).text;
  expect(whole.startsWith(half)).toBe(true);
  expect(() => JSON.parse(half)).toThrow(SyntaxError);
});

test('reset breaks the connection', async () => {
  const devnet = await startTestDevnet();
  devnet.setFault({ kind: 'reset' });
  await expect(fetch(`${devnet.url}/wallet/getnowblock`)).rejects.toThrow('fetch failed');
});

test('hang never answers, and does not keep the node from stopping', async () => {
  const devnet = await startTestDevnet();
  devnet.setFault({ kind: 'hang', paths: ['/wallet/getnowblock'] });
  const hanging = fetch(`${devnet.url}/wallet/getnowblock`).then(
    () => 'answered',
    () => 'broken off',
  );
  // The node answers another path meanwhile, which proves that the request above has reached it.
  await askNode(devnet.url, '/wallet/getblock');
  await devnet.addNode();
  await devnet.stop();
  expect(await hanging).toBe('broken off');
});

test('infos can be missing, swapped or gone while the block is whole', async () => {
  const { devnet, ids } = await busyDevnet();
  const [first, second, third] = await ids();
  devnet.setFault({ kind: 'missing-info' });
  expect(await ids()).toEqual([first, second]);
  devnet.setFault({ kind: 'swapped-infos' });
  expect(await ids()).toEqual([second, first, third]);
  devnet.setFault({ kind: 'empty-infos' });
  expect(await ids()).toEqual([]);
  expect(await askNode<{ transactions: [] }>(devnet.url, '/wallet/getnowblock')).toMatchObject({
    transactions: [{}, {}, {}],
  });
});

test('a block can be without its transactions, together with its infos', async () => {
  const { devnet, num, ids } = await busyDevnet();
  devnet.setFault({ kind: 'empty-block' }, { kind: 'empty-infos' });
  const block = await askNode(devnet.url, '/wallet/getblock', { id_or_num: String(num), detail: true });
  expect(block).toMatchObject({ blockID: devnet.head().id });
  expect(block).not.toHaveProperty('transactions');
  expect(await ids()).toEqual([]);
  const range = await askNode<{ block: object[] }>(devnet.url, '/wallet/getblockbylimitnext', {
    startNum: num,
    endNum: num + 1,
  });
  expect(range.block[0]).not.toHaveProperty('transactions');
});

test('a lagging node is behind everywhere; the others of the network are not', async () => {
  const { devnet, num } = await busyDevnet();
  const other = await devnet.addNode();
  devnet.setFault({ kind: 'lag', blocks: 4 });
  const headOf = async (url: string, path: string) => {
    const { block_header } = await askNode<{ block_header: { raw_data: { number: number } } }>(url, path);
    return block_header.raw_data.number;
  };
  expect(await headOf(devnet.url, '/wallet/getnowblock')).toBe(num - 4);
  expect(await headOf(devnet.url, '/walletsolidity/getnowblock')).toBe(devnet.solid().number - 4);
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: String(num) })).toEqual({});
  expect(await askNode(devnet.url, INFOS, { num })).toEqual([]);
  expect(await headOf(other.url, '/wallet/getnowblock')).toBe(num);
});

test('slow-drip sends byte after byte and no end, and does not keep the node from stopping', async () => {
  const { devnet } = await busyDevnet();
  devnet.setFault({ kind: 'slow-drip' });
  const response = await fetch(`${devnet.url}/wallet/getnowblock`);
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  const arrived = [await reader?.read(), await reader?.read(), await reader?.read()];
  expect(arrived.map((each) => each?.value?.length)).toEqual([1, 1, 1]);
  await devnet.stop();
  await expect(reader?.read()).rejects.toThrow('terminated');
});

test('slow-large-answer sends the whole truth, never faster than its rate and never pausing', async () => {
  const { devnet, num } = await busyDevnet();
  const truth = await askNodeText(devnet.url, INFOS, { num });
  const bytesPerSecond = truth.text.length * 2;
  devnet.setFault({ kind: 'slow-large-answer', bytesPerSecond });
  const before = performance.now();
  const response = await fetch(`${devnet.url}${INFOS}?num=${num}`);
  const pieces: string[] = [];
  for await (const piece of response.body ?? []) pieces.push(Buffer.from(piece).toString());
  expect(pieces.join('')).toBe(truth.text);
  expect(pieces.length).toBeGreaterThan(5);
  expect(performance.now() - before).toBeGreaterThan(400);
});

test.each([100, 5_000_000])('bracket-bomb answers JSON of so many bytes: %i', async (bytes) => {
  const devnet = await startTestDevnet();
  devnet.setFault({ kind: 'bracket-bomb', bytes });
  const { status, text } = await askNodeText(devnet.url, '/wallet/getnowblock');
  expect(status).toBe(200);
  expect(Math.abs(text.length - bytes)).toBeLessThan(4);
  expect(text).toMatch(/^\[\{\},\{\}.*\{\}\]$/);
});

test('missing-history leaves the last blocks and genesis; older ones are as unknown as future ones', async () => {
  const { devnet, num } = await busyDevnet();
  const id = (await askNode<{ id: string }[]>(devnet.url, INFOS, { num }))[0]?.id;
  devnet.mine(6);
  devnet.setFault({ kind: 'missing-history', blocks: 5 });
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: String(num), detail: true })).toEqual({});
  expect(await askNode(devnet.url, INFOS, { num })).toEqual([]);
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', { value: id })).toEqual({});
  expect(await askNode(devnet.url, '/wallet/getblockbylimitnext', { startNum: num - 3, endNum: num + 1 })).toEqual({
    block: [],
  });
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: String(num + 1) })).toHaveProperty('blockID');
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: '0' })).toHaveProperty('blockID');
});

test('solid-ahead calls the head solid', async () => {
  const { devnet, num } = await busyDevnet();
  expect(await askNode(devnet.url, '/walletsolidity/getblock', { id_or_num: String(num) })).toEqual({});
  devnet.setFault({ kind: 'solid-ahead' });
  expect(await askNode(devnet.url, '/walletsolidity/getnowblock')).toMatchObject({ blockID: devnet.head().id });
});

test('wrong-balance is a micro too little, for balanceOf alone', async () => {
  const { devnet } = await busyDevnet();
  const call = async (function_selector: string, parameter: string) => {
    const { constant_result } = await askNode<{ constant_result: string[] }>(
      devnet.url,
      '/wallet/triggerconstantcontract',
      {
        owner_address: RECIPIENT,
        contract_address: devnet.usdtContract,
        function_selector,
        parameter,
        visible: true,
      },
    );
    return BigInt(`0x${constant_result[0]}`);
  };
  const balance = () => call('balanceOf(address)', '000000000000000000000000c8599111f29c1e1e061265b4af93ea1f274ad78a');
  const supply = await call('totalSupply()', '');
  expect(await balance()).toBe(6n);
  devnet.setFault({ kind: 'wrong-balance' });
  expect(await balance()).toBe(5n);
  expect(await call('totalSupply()', '')).toBe(supply);
});

test('a fault can be limited to some paths', async () => {
  const { devnet, ids } = await busyDevnet();
  devnet.setFault({ kind: 'limited-429', paths: ['/wallet/getblock'] });
  expect((await askNodeText(devnet.url, '/wallet/getblock')).status).toBe(429);
  expect(await ids()).toHaveLength(3);
});

test('a path or a method that no servlet answers gets a page like Jetty’s', async () => {
  const devnet = await startTestDevnet();
  expect(await askNodeText(devnet.url, '/wallet/nothing')).toMatchObject({
    status: 405,
    text: expect.stringContaining('<title>Error 405 HTTP method POST is not supported by this URL</title>'),
  });
  expect((await askNodeText(devnet.url, '/walletsolidity/broadcasttransaction')).status).toBe(405);
  const found = await fetch(`${devnet.url}/wallet/nothing`);
  expect([found.status, await found.text()]).toEqual([
    404,
    expect.stringContaining('<title>Error 404 Not Found</title>'),
  ]);
  const put = await fetch(`${devnet.url}/wallet/getblock`, { method: 'PUT' });
  expect([put.status, await put.text()]).toEqual([405, '']);
});

test('a body that is no JSON object, or too big, is answered with an error', async () => {
  const devnet = await startTestDevnet();
  const post = async (body: string) => (await fetch(`${devnet.url}/wallet/getblock`, { method: 'POST', body })).json();
  expect(await post('{')).toMatchObject({ Error: expect.stringContaining('JSONException : syntax error') });
  expect(await post('[]')).toEqual({ Error: 'class com.alibaba.fastjson.JSONException : can not cast to JSONObject.' });
  expect(await post(' '.repeat(4 * 1024 * 1024 + 1))).toEqual({
    Error: 'class java.lang.Exception : body size is too big, the limit is 4194304',
  });
});
