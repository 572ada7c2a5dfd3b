import type { Fault } from '@quittance/devnet/faults/faults';
import { expect, test } from 'vitest';
import { askNode, payerOf, startTestDevnet } from '../support/devnet.ts';
import { amountsOf, readBlock, witnessKeyOf } from './read-block.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const ATTACKER = 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK';

/** Starts a devnet with 27 producers, a payment in block `paid`, and a second node that never lies. */
async function network() {
  const devnet = await startTestDevnet({ producers: 27 });
  devnet.mine(30);
  await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
  const paid = devnet.mine()[0]?.number ?? 0;
  devnet.mine(3);
  return { devnet, honest: await devnet.addNode(), paid };
}

/** Reads blocks from..to of a node. For each, checks whether it links to the previous one and has the claimed producer's signature. */
async function chainOf(url: string, from: number, to: number) {
  let parentId = (await readBlock(url, from - 1)).block.blockID;
  const chain: { isLinked: boolean; isSigned: boolean; isSound: boolean; txs: number; amounts: bigint[] }[] = [];
  for (let number = from; number <= to; number += 1) {
    const read = await readBlock(url, number);
    chain.push({
      isLinked: read.block.block_header.raw_data.parentHash === parentId,
      isSigned: (await witnessKeyOf(url, read.producer)) === read.signer,
      isSound: read.isIdRight && read.isRootRight,
      txs: read.txIds.length,
      amounts: amountsOf(read.infos),
    });
    parentId = read.block.blockID;
  }
  return chain;
}

test('forged-block with the attacker’s producers is a lie that fits in itself, from block 1 to the head', async () => {
  const { devnet, honest } = await network();
  devnet.setFault(
    { kind: 'forged-block', to: ATTACKER, amountMicro: 5n, fromBlock: 1 },
    { kind: 'replayed-producers', producers: 'attacker' },
  );
  devnet.mine(2);
  const head = devnet.head().number;
  const [lie, truth] = [await chainOf(devnet.url, 1, head), await chainOf(honest.url, 1, head)];
  expect(lie.every(({ isLinked, isSigned, isSound }) => isLinked && isSigned && isSound)).toBe(true);
  expect(truth.every(({ isLinked, isSigned, isSound }) => isLinked && isSigned && isSound)).toBe(true);
  for (const [index, { amounts, txs }] of lie.entries()) {
    expect(amounts).toEqual([...(truth[index]?.amounts ?? []), 5n]);
    expect(txs).toBe((truth[index]?.txs ?? 0) + 1);
  }
  const witnesses = (url: string) => askNode(url, '/wallet/listwitnesses');
  expect(await witnesses(devnet.url)).toEqual(await witnesses(honest.url));
});

test('forged-block alone begins above the solid block, and only its signatures do not fit', async () => {
  const { devnet, honest } = await network();
  const solid = devnet.solid().number;
  devnet.setFault({ kind: 'forged-block', to: ATTACKER, amountMicro: 5n });
  expect(await readBlock(devnet.url, solid)).toEqual(await readBlock(honest.url, solid));
  const lie = await chainOf(devnet.url, solid + 1, devnet.head().number);
  expect(lie.every(({ isLinked, isSound }) => isLinked && isSound)).toBe(true);
  expect(lie.some(({ isSigned }) => isSigned)).toBe(false);
  const head = await askNode<{ blockID: string }>(devnet.url, '/wallet/getnowblock');
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: head.blockID })).toMatchObject({
    blockID: head.blockID,
  });
  expect(await askNode(devnet.url, '/wallet/getblock', { id_or_num: devnet.head().id })).toEqual({});
});

test('omitted-transaction-resealed hides a payment; from its block on only the signatures do not fit', async () => {
  const { devnet, paid } = await network();
  devnet.setFault({ kind: 'omitted-transaction-resealed' });
  const lie = await chainOf(devnet.url, paid - 2, devnet.head().number);
  expect(lie.every(({ isLinked, isSound, txs }) => isLinked && isSound && txs === 0)).toBe(true);
  expect(lie.map(({ isSigned }) => isSigned)).toEqual([true, true, false, false, false, false]);
});

test('other-network has another genesis and other ids, and links up to its head', async () => {
  const { devnet, honest } = await network();
  devnet.setFault({ kind: 'other-network' });
  const genesis = (url: string) => askNode<{ blockID: string }>(url, '/wallet/getblock', { id_or_num: '0' });
  expect((await genesis(devnet.url)).blockID).not.toBe((await genesis(honest.url)).blockID);
  expect((await genesis(devnet.url)).blockID).toMatch(/^0{16}/);
  const head = devnet.head().number;
  const lie = await chainOf(devnet.url, 1, head);
  expect(lie.every(({ isLinked, isSound }) => isLinked && isSound)).toBe(true);
  expect((await readBlock(devnet.url, head)).block.blockID).not.toBe(devnet.head().id);
});

test('replayed-producers of the genesis are the first ones with their first keys', async () => {
  const { devnet, honest } = await network();
  const before = await askNode<{ witnesses: { address: string }[] }>(honest.url, '/wallet/listwitnesses', {
    visible: true,
  });
  const [first, second] = devnet.witnesses();
  devnet.replaceProducers(1);
  devnet.rotateSigner(1);
  devnet.setFault({ kind: 'replayed-producers', producers: 'genesis' });
  const replayed = await askNode<typeof before>(devnet.url, '/wallet/listwitnesses', { visible: true });
  const jobs = ({ witnesses }: typeof before) => witnesses.map((each) => [each.address, 'isJobs' in each]);
  expect(jobs(replayed)).toEqual(jobs(before));
  expect(await witnessKeyOf(devnet.url, second?.address ?? null)).toBe(second?.signerAddress);
  expect(await witnessKeyOf(honest.url, second?.address ?? null)).not.toBe(second?.signerAddress);
  expect(jobs(await askNode(honest.url, '/wallet/listwitnesses', { visible: true }))[0]).toEqual([
    first?.address,
    false,
  ]);
});

test('two nodes with the same lie, set at the same height, tell it word for word; a fork renews it', async () => {
  const { devnet, honest: second } = await network();
  const fault: Fault = { kind: 'forged-block', to: ATTACKER, amountMicro: 5n };
  devnet.setFault(fault);
  second.setFault(fault);
  const head = devnet.head().number;
  expect(await readBlock(devnet.url, head)).toEqual(await readBlock(second.url, head));
  devnet.fork({ depth: 3 });
  const lie = await chainOf(devnet.url, head - 5, devnet.head().number);
  expect(lie.every(({ isLinked, isSound }) => isLinked && isSound)).toBe(true);
});

test('a lie about results can be resealed with a forged block', async () => {
  const { devnet, paid } = await network();
  devnet.setFault({ kind: 'flipped-result' }, { kind: 'forged-block', fromBlock: paid });
  const lie = await readBlock(devnet.url, paid);
  expect(lie).toMatchObject({ isIdRight: true, isRootRight: true, results: ['REVERT', 'SUCCESS'] });
});
