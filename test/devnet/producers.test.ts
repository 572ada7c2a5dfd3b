import type { Devnet } from '@quittance/devnet';
import { expect, test, vi } from 'vitest';
import { askNode, payerOf, startTestDevnet, temporaryDirectory } from '../support/devnet.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { readBlock, witnessKeyOf } from './read-block.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const SLOT_MS = 3_000;

interface WitnessAnswer {
  readonly address: string;
  readonly isJobs?: true;
  readonly latestBlockNum?: number;
}

const listed = async ({ url }: Devnet) =>
  (await askNode<{ witnesses: WitnessAnswer[] }>(url, '/wallet/listwitnesses', { visible: true })).witnesses;

/** Returns the producer indexes of the last blocks, oldest first. */
async function makersOf(devnet: Devnet, count: number): Promise<(number | undefined)[]> {
  const head = devnet.head().number;
  const blocks = await Promise.all(
    Array.from({ length: count }, (_, back) => readBlock(devnet.url, head - count + 1 + back)),
  );
  return blocks.map(({ producer }) => devnet.witnesses().find(({ address }) => address === producer)?.index);
}

test('every fork of depth 1 to 17 replaces that many blocks of 27 producers, signed by their witness keys', async () => {
  const devnet = await startTestDevnet({ producers: 27 });
  devnet.mine(40);
  for (let depth = 1; depth <= 17; depth += 1) {
    const payer = payerOf(devnet);
    await payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
    const old = devnet.mine(depth);
    const branch = devnet.fork({ depth, keepTransactions: depth % 2 === 0 });
    expect(branch).toHaveLength(depth + 1);
    for (const [index, { number, id }] of old.entries())
      expect(branch[index]).toMatchObject({ number, id: expect.not.stringContaining(id) });
  }
  for (let number = devnet.head().number - 30; number <= devnet.head().number; number += 1) {
    const { signer, producer, isIdRight, block } = await readBlock(devnet.url, number);
    expect(isIdRight).toBe(true);
    expect(await witnessKeyOf(devnet.url, producer)).toBe(signer);
    expect(
      await askNode(devnet.url, '/wallet/getblock', { id_or_num: block.block_header.raw_data.parentHash }),
    ).toHaveProperty('blockID');
  }
});

test('the slots of stalled producers pass without a block: a gap in time, none in height', async () => {
  const devnet = await startTestDevnet({ producers: 5 });
  devnet.mine(4);
  expect(await makersOf(devnet, 5)).toEqual([0, 1, 2, 3, 4]);
  const before = devnet.head();
  devnet.stall([0, 1, 3]);
  const [first, second, third] = devnet.mine(3);
  expect(await makersOf(devnet, 3)).toEqual([2, 4, 2]);
  expect([first?.number, second?.number]).toEqual([before.number + 1, before.number + 2]);
  expect(first?.timestampMs).toBe(before.timestampMs + 3 * SLOT_MS);
  expect(second?.timestampMs).toBe(before.timestampMs + 5 * SLOT_MS);
  expect(third?.timestampMs).toBe(before.timestampMs + 8 * SLOT_MS);
  devnet.unstall();
  expect(devnet.mine(1)[0]?.timestampMs).toBe(before.timestampMs + 9 * SLOT_MS);
  expect(await makersOf(devnet, 1)).toEqual([3]);
});

test('nothing becomes solid while more than 30 % of 27 producers are stalled, and all of it afterwards', async () => {
  const devnet = await startTestDevnet({ producers: 27 });
  devnet.mine(60);
  devnet.stall([0, 1, 2, 3, 4, 5, 6, 7]);
  const [block] = devnet.mineUntilSolid();
  expect(devnet.solid().number).toBeGreaterThanOrEqual((block?.number ?? 0) - 1);
  devnet.stall([8]);
  devnet.mine(40);
  const { number: solid } = devnet.solid();
  devnet.mine(80);
  expect(devnet.solid().number).toBe(solid);
  expect(() => devnet.mineUntilSolid()).toThrow('did not become solid');
  devnet.unstall();
  const { number: head } = devnet.head();
  devnet.mine(27);
  expect(devnet.solid().number).toBeGreaterThanOrEqual(head);
});

test('when every producer is stalled no block can be made, and nobody unknown can be stalled', async () => {
  const devnet = await startTestDevnet({ producers: 3 });
  devnet.mine(3);
  devnet.stall([0, 1, 2]);
  expect(() => devnet.mine()).toThrow('every producer is stalled');
  expect(() => devnet.fork({ depth: 1 })).toThrow('every producer is stalled');
  devnet.unstall();
  expect(devnet.mine()).toHaveLength(1);
  expect(() => devnet.stall([3])).toThrow('there is no producer 3');
});

test('a network with a block time passes over the slots of stalled producers by itself', async () => {
  const devnet = await startTestDevnet({ producers: 3, blockMs: 20, genesisTimestampMs: Date.now() });
  devnet.stall([1]);
  const { number } = devnet.head();
  await vi.waitFor(() => expect(devnet.head().number).toBeGreaterThan(number + 5), { timeout: PATIENCE_MS });
  await devnet.stop();
});

test('replaced producers take over the turns; the old ones stay known without a job', async () => {
  const devnet = await startTestDevnet({ producers: 27 });
  devnet.mine(40);
  const old = devnet.witnesses();
  expect(devnet.replaceProducers(3)).toEqual([27, 28, 29]);
  devnet.mine(27);
  const made = await makersOf(devnet, 27);
  expect(new Set(made)).toEqual(new Set(Array.from({ length: 27 }, (_, turn) => turn + 3)));
  const witnesses = await listed(devnet);
  expect(witnesses).toHaveLength(30);
  for (const [index, { address, isJobs, latestBlockNum = 0 }] of witnesses.entries()) {
    expect(isJobs).toBe(index < 3 ? undefined : true);
    expect(await witnessKeyOf(devnet.url, address)).toBe(devnet.witnesses()[index]?.signerAddress);
    if (index >= 3) expect(latestBlockNum).toBeGreaterThan(devnet.head().number - 27);
  }
  expect(witnesses.slice(0, 3).map(({ address }) => address)).toEqual(old.slice(0, 3).map(({ address }) => address));
});

test('the solid block counts the active producers only', async () => {
  const devnet = await startTestDevnet({ producers: 27 });
  devnet.mine(60);
  const { number: solid } = devnet.solid();
  devnet.replaceProducers(9);
  devnet.stall([27, 28, 29, 30, 31, 32, 33, 34, 35]);
  devnet.mine(40);
  expect(devnet.solid().number).toBe(solid);
  devnet.setProducers(Array.from({ length: 18 }, (_, turn) => turn + 9));
  devnet.mine(18);
  expect(devnet.solid().number).toBeGreaterThan(solid + 40);
});

test('producers are different indexes, at least one and at most 27', async () => {
  const devnet = await startTestDevnet();
  for (const wrong of [[], [1, 1], [-1], [1_000], [0.5], Array.from({ length: 28 }, (_, index) => index)]) {
    expect(() => devnet.setProducers(wrong)).toThrow(RangeError);
  }
  expect(() => devnet.replaceProducers(6)).toThrow('1 to 5 producers');
});

test('a rotated key signs the next block of its producer, and its account shows it', async () => {
  const devnet = await startTestDevnet({ producers: 3 });
  devnet.mine(3);
  const [before] = devnet.witnesses();
  devnet.rotateSigner(0);
  const [after] = devnet.witnesses();
  expect(after).toMatchObject({
    address: before?.address,
    signerAddress: expect.not.stringContaining(before?.signerAddress ?? ''),
  });
  expect(await witnessKeyOf(devnet.url, before?.address ?? null)).toBe(after?.signerAddress);
  devnet.mine(3);
  const blocks = await Promise.all([0, 1, 2].map((back) => readBlock(devnet.url, devnet.head().number - back)));
  expect(blocks.find(({ producer }) => producer === before?.address)?.signer).toBe(after?.signerAddress);
});

test('stalls, replacements and rotations survive a stop and a kill, before and after a snapshot', async () => {
  const dataDir = temporaryDirectory();
  const first = await startTestDevnet({ dataDir, producers: 7 });
  first.mine(20);
  first.replaceProducers(2);
  first.mine(10);
  first.rotateSigner(4);
  first.mine(280);
  first.stall([3]);
  first.mine(5);
  first.replaceProducers(1);
  first.mine(2);
  first.fork({ depth: 3 });
  const seen = (devnet: Devnet) => [devnet.witnesses(), devnet.head(), devnet.solid()];
  const expected = seen(first);
  const killed = await startTestDevnet({ dataDir });
  expect(seen(killed)).toEqual(expected);
  await killed.stop();
  const next = first.mine(30);
  await first.stop();
  const stopped = await startTestDevnet({ dataDir });
  expect(stopped.head()).toEqual(next.at(-1));
  expect(stopped.witnesses()).toEqual(expected[0]);
  expect(stopped.solid()).toEqual(first.solid());
});
