import { expect, test } from 'vitest';
import { askNode, payerOf, startTestDevnet } from '../support/devnet.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

test.each([
  [1, 0],
  [2, 1],
  [5, 3],
  [27, 18],
])('with %i producers the solid block is %i behind the head', async (producers, behind) => {
  const devnet = await startTestDevnet({ producers });
  for (let round = 0; round < 3 * producers; round += 1) {
    const before = devnet.solid().number;
    const [block] = devnet.mine();
    const number = block?.number ?? 0;
    expect(devnet.solid().number).toBeGreaterThanOrEqual(before);
    expect(devnet.solid().number).toBe(number < producers ? Math.max(0, number - behind) : number - behind);
  }
});

test('until enough producers have had a turn, only genesis is solid', async () => {
  const devnet = await startTestDevnet({ producers: 27 });
  devnet.mine(17);
  expect(devnet.solid().number).toBe(0);
  devnet.mine();
  expect(devnet.solid().number).toBe(1);
});

test('mineUntilSolid makes everything that waits solid', async () => {
  const devnet = await startTestDevnet();
  const id = await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
  expect(await askNode(devnet.url, '/walletsolidity/gettransactioninfobyid', { value: id })).toEqual({});
  const head = devnet.head().number;
  devnet.mineUntilSolid();
  expect(await askNode(devnet.url, '/walletsolidity/gettransactioninfobyid', { value: id })).toMatchObject({
    blockNumber: head + 1,
  });
});

test('a fork replaces blocks silently; its transactions enter a later block', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  const id = await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
  const old = devnet.mine(2);
  const solid = devnet.solid();
  const branch = devnet.fork({ depth: 2 });
  expect(branch.map(({ number }) => number)).toEqual(
    [...old, { number: devnet.head().number }].map(({ number }) => number),
  );
  for (const { number, id: orphaned } of old) {
    const served = await askNode<{ blockID: string }>(devnet.url, '/wallet/getblock', { id_or_num: String(number) });
    expect(served.blockID).not.toBe(orphaned);
    expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: orphaned })).toEqual({});
  }
  expect(devnet.solid().number).toBeGreaterThanOrEqual(solid.number);
  expect(await askNode(devnet.url, '/walletsolidity/getblock', { id_or_num: String(solid.number) })).toMatchObject({
    blockID: solid.id,
  });
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', { value: id })).toEqual({});
  expect(devnet.pendingCount()).toBe(1);
  const [next] = devnet.mine();
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', { value: id })).toMatchObject({
    blockNumber: next?.number,
  });
});

test('a fork that drops its transactions undoes them', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  const balance = async () => {
    const answer = await askNode<{ constant_result: string[] }>(devnet.url, '/wallet/triggerconstantcontract', {
      owner_address: devnet.payer.address,
      contract_address: devnet.usdtContract,
      function_selector: 'balanceOf(address)',
      parameter: '000000000000000000000000c8599111f29c1e1e061265b4af93ea1f274ad78a',
      visible: true,
    });
    return BigInt(`0x${answer.constant_result[0]}`);
  };
  const payer = payerOf(devnet);
  const id = await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
  devnet.mine();
  expect(await balance()).toBe(7n);
  devnet.fork({ depth: 1, keepTransactions: false });
  expect(await balance()).toBe(0n);
  devnet.mineUntilSolid();
  expect(await askNode(devnet.url, '/wallet/gettransactionbyid', { value: id })).toEqual({});
  await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 9n });
  devnet.mine();
  expect(await balance()).toBe(9n);
});

test('a solid block cannot be forked away', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  expect(() => devnet.fork({ depth: 4 })).toThrow('1 to 3 blocks');
  expect(() => devnet.fork({ depth: 0 })).toThrow(RangeError);
  for (let round = 0; round < 10; round += 1) {
    const solid = devnet.solid();
    devnet.fork({ depth: devnet.head().number - solid.number });
    expect(devnet.solid().number).toBeGreaterThanOrEqual(solid.number);
    expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: String(solid.number) })).toMatchObject({
      blockID: solid.id,
    });
  }
});

test('a constant call on the solid endpoint sees the solid state only', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(5);
  await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
  devnet.mine();
  const body = {
    owner_address: devnet.payer.address,
    contract_address: devnet.usdtContract,
    function_selector: 'balanceOf(address)',
    parameter: '000000000000000000000000c8599111f29c1e1e061265b4af93ea1f274ad78a',
    visible: true,
  };
  const [full, solid] = ['7'.padStart(64, '0'), '0'.repeat(64)];
  expect(await askNode(devnet.url, '/wallet/triggerconstantcontract', body)).toMatchObject({ constant_result: [full] });
  expect(await askNode(devnet.url, '/walletsolidity/triggerconstantcontract', body)).toMatchObject({
    constant_result: [solid],
  });
});

test('time jumps forward when told to and never stands still', async () => {
  const devnet = await startTestDevnet();
  const { timestampMs } = devnet.head();
  const day = 24 * 60 * 60 * 1000;
  const [first, second] = devnet.mine(2, { timestampMs: timestampMs + day });
  expect([first?.timestampMs, second?.timestampMs]).toEqual([timestampMs + day, timestampMs + day + 3000]);
  expect(() => devnet.mine(1, { timestampMs: timestampMs + day })).toThrow('must be later');
});
