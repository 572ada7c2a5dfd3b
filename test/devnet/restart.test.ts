import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Devnet } from '@quittance/devnet';
import { expect, onTestFinished, test } from 'vitest';
import { askNode, payerOf, startTestDevnet, temporaryDirectory } from '../support/devnet.ts';
import { longTest } from '../support/some-cases.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

/** Returns everything that a client can see of the chain. */
async function seen(devnet: Devnet) {
  const blocks: unknown[] = [];
  for (let number = 0; number <= devnet.head().number; number += 1) {
    blocks.push(await askNode(devnet.url, '/wallet/getblockbynum', { num: number }));
    blocks.push(await askNode(devnet.url, '/wallet/gettransactioninfobyblocknum', { num: number }));
  }
  return { head: devnet.head(), solid: devnet.solid(), pending: devnet.pendingCount(), blocks };
}

/** Creates a network with payments, a fork and a pending transaction. */
async function history(dataDir: string): Promise<Devnet> {
  const devnet = await startTestDevnet({ dataDir, producers: 7 });
  const payer = payerOf(devnet);
  const pay = (amountMicro: bigint) => payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro });
  for (const amount of [1n, 2n, 3n]) {
    await pay(amount);
    devnet.mine(4);
  }
  await pay(4n);
  devnet.mine();
  devnet.fork({ depth: 3 });
  await pay(5n);
  return devnet;
}

test('a network that stops goes on where it was', async () => {
  const dataDir = temporaryDirectory();
  const before = await history(dataDir);
  const expected = await seen(before);
  await before.stop();
  const after = await startTestDevnet({ dataDir });
  expect(await seen(after)).toEqual(expected);
  expect(expected.pending).toBe(2);
  after.mine();
  expect(after.pendingCount()).toBe(0);
  expect(after.head().number).toBe(expected.head.number + 1);
});

test('a network that is killed has lost nothing it served', async () => {
  const dataDir = temporaryDirectory();
  const before = await history(dataDir);
  const expected = await seen(before);
  // The first one is still running, as if it had been killed: nothing was written at its end.
  const after = await startTestDevnet({ dataDir });
  expect(await seen(after)).toEqual(expected);
});

longTest('a network that is killed while it makes blocks has kept every block it showed', async () => {
  const dataDir = temporaryDirectory();
  const program = `
    import { startDevnet } from ${JSON.stringify(new URL('../../packages/devnet/src/index.ts', import.meta.url).href)};
    const devnet = await startDevnet({ dataDir: ${JSON.stringify(dataDir)}, blockMs: 1 });
    setInterval(() => console.log(JSON.stringify(devnet.head())), 1);`;
  const child = spawn(
    process.execPath,
    ['--conditions=@quittance/source', '--import', 'ts-blank-space/register', '--input-type=module', '--eval', program],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const closed = once(child, 'close');
  const shown: ReturnType<Devnet['head']>[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    shown.push(JSON.parse(line));
    if (shown.length === 30) child.kill('SIGKILL');
  }
  await closed;
  const devnet = await startTestDevnet({ dataDir });
  expect(shown.length).toBeGreaterThanOrEqual(30);
  for (const { number, id } of shown) {
    expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: String(number) })).toMatchObject({ blockID: id });
  }
});

test('a line that was being written at the end is cut off, wherever it was torn', async () => {
  const dataDir = temporaryDirectory();
  const log = join(dataDir, 'chain.log');
  const before = await history(dataDir);
  const expected = await seen(before);
  const sound = readFileSync(log);
  const [torn] = before.mine();
  const line = readFileSync(log).subarray(sound.length);
  expect(torn?.number).toBe(expected.head.number + 1);
  for (const length of [1, 50, line.length - 1]) {
    writeFileSync(log, Buffer.concat([sound, line.subarray(0, length)]));
    const after = await startTestDevnet({ dataDir });
    expect(readFileSync(log)).toEqual(sound);
    expect(after.head()).toEqual(expected.head);
    expect(after.pendingCount()).toBe(expected.pending);
  }
});

longTest('snapshots change nothing: with, without and with an outdated one the chain is the same', async () => {
  const dataDir = temporaryDirectory();
  const first = await history(dataDir);
  first.mine(600);
  await payerOf(first).transfer({ contract: first.usdtContract, to: RECIPIENT, amountMicro: 6n });
  first.mine(20);
  const id = await payerOf(first).transfer({ contract: first.usdtContract, to: RECIPIENT, amountMicro: 8n });
  first.mine();
  const snapshot = readFileSync(join(dataDir, 'snapshot.json'));
  const [head, solid] = [first.head(), first.solid()];
  const sample = (devnet: Devnet) =>
    Promise.all([1, 5, 900, head.number].map((num) => askNode(devnet.url, '/wallet/getblockbynum', { num })));
  const blocks = await sample(first);
  await first.stop();
  const check = async () => {
    const again = await startTestDevnet({ dataDir });
    expect([again.head(), again.solid(), await sample(again)]).toEqual([head, solid, blocks]);
    expect(await askNode(again.url, '/wallet/gettransactioninfobyid', { value: id })).toMatchObject({
      blockNumber: head.number,
    });
    await again.stop();
  };
  await check();
  writeFileSync(join(dataDir, 'snapshot.json'), snapshot);
  await check();
  rmSync(join(dataDir, 'snapshot.json'));
  await check();
  truncateSync(join(dataDir, 'blocks.index'), 80);
  await check();
  appendFileSync(join(dataDir, 'transactions.index'), 'rest of an interrupted write');
  await check();
});

test('a directory keeps its producers and its genesis', async () => {
  const dataDir = temporaryDirectory();
  const first = await startTestDevnet({ dataDir, producers: 3 });
  const genesis = await askNode(first.url, '/wallet/getblock', { id_or_num: '0' });
  await first.stop();
  const again = await startTestDevnet({ dataDir, producers: 9, genesisTimestampMs: 3_000 });
  expect(await askNode(again.url, '/wallet/getblock', { id_or_num: '0' })).toEqual(genesis);
  expect(await askNode<{ witnesses: [] }>(again.url, '/wallet/listwitnesses')).toMatchObject({
    witnesses: [{}, {}, {}],
  });
});

test('a directory that is older than genesis blocks like real ones keeps its own, and its network goes on', async () => {
  const dataDir = temporaryDirectory();
  writeFileSync(join(dataDir, 'chain.log'), '{"t":"genesis","producers":3,"timestampMs":3000}\n');
  const devnet = await startTestDevnet({ dataDir });
  devnet.mine(3);
  const genesis = await askNode<{ blockID: string }>(devnet.url, '/wallet/getblock', { id_or_num: '0', detail: true });
  expect(genesis).toMatchObject({ block_header: { raw_data: { timestamp: 3_000 } } });
  expect(genesis.blockID).toBe('00000000000000007d00bd9d314629d7cf70779f5b5ab76485fdfde289adf134');
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: '1' })).toMatchObject({
    block_header: { raw_data: { parentHash: genesis.blockID } },
  });
});

test('a log that does not begin with a genesis is refused', async () => {
  const dataDir = temporaryDirectory();
  writeFileSync(join(dataDir, 'chain.log'), '{"t":"fork","to":0,"keepTransactions":true}\n');
  await expect(startTestDevnet({ dataDir })).rejects.toThrow('the directory is damaged');
});
