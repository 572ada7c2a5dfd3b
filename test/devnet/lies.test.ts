import { FAULT_KINDS, type Fault } from '@quittance/devnet/faults/faults';
import { accountToAddress } from '@quittance/tron/address';
import { decodeTransferLog } from '@quittance/tron/usdt';
import { expect, test } from 'vitest';
import { askNode, askNodeText, payerOf, startTestDevnet } from '../support/devnet.ts';
import { amountsOf, readBlock, witnessKeyOf } from './read-block.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const ATTACKER = 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK';

/** Starts a devnet whose head contains a direct transfer of 1 micro-USDT, a multisend of 2 and 3, a failing transfer and one of TRX. */
async function mixedDevnet() {
  const devnet = await startTestDevnet();
  devnet.mine(20);
  const payer = payerOf(devnet);
  const contract = devnet.usdtContract;
  const direct = await payer.transfer({ contract, to: RECIPIENT, amountMicro: 1n });
  const inside = await payer.multisend({
    multisendContract: devnet.multisendContract,
    token: contract,
    transfers: [
      { to: RECIPIENT, amountMicro: 2n },
      { to: RECIPIENT, amountMicro: 3n },
    ],
  });
  const failing = await payer.transfer({ contract, to: RECIPIENT, amountMicro: 10n ** 18n });
  const trx = await payer.sendTrx({ to: RECIPIENT, amountSun: 1_000_000n });
  devnet.mine();
  const ids = [direct, inside, failing, trx];
  const number = devnet.head().number;
  const sick = async (...faults: Fault[]) => {
    devnet.setFault(...faults);
    return readBlock(devnet.url, number);
  };
  return { devnet, ids, number, sick, truth: await readBlock(devnet.url, number) };
}

test('the truth: everything fits, and the producer has signed it', async () => {
  const { devnet, truth, ids } = await mixedDevnet();
  expect(truth).toMatchObject({ isIdRight: true, isRootRight: true, txIds: ids });
  expect(truth.results).toEqual(['SUCCESS', 'SUCCESS', 'REVERT', 'SUCCESS']);
  expect(await witnessKeyOf(devnet.url, truth.producer)).toBe(truth.signer);
  expect(amountsOf(truth.infos)).toEqual([1n, 2n, 3n]);
});

test('omitted-transaction takes the last transaction from block and infos, and the root does not match', async () => {
  const { sick, ids, truth } = await mixedDevnet();
  const lie = await sick({ kind: 'omitted-transaction' });
  expect(lie).toMatchObject({ txIds: ids.slice(0, 3), isRootRight: false, isIdRight: true, signer: truth.signer });
  expect(lie.infos.map(({ id }) => id)).toEqual(ids.slice(0, 3));
  expect(lie.block.blockID).toBe(truth.block.blockID);
});

test('hidden-log and hidden-direct-log drop the Transfer logs of calls inside contracts, or of direct ones', async () => {
  const { sick } = await mixedDevnet();
  const inside = await sick({ kind: 'hidden-log' });
  expect(inside).toMatchObject({ isRootRight: true, isIdRight: true });
  expect(amountsOf(inside.infos)).toEqual([1n]);
  expect(amountsOf((await sick({ kind: 'hidden-direct-log' })).infos)).toEqual([2n, 3n]);
});

test('forged-log adds a Transfer to a call inside a contract, or changes an amount', async () => {
  const { sick, ids } = await mixedDevnet();
  const added = await sick({ kind: 'forged-log', to: ATTACKER, amountMicro: 77n });
  expect(added).toMatchObject({ isRootRight: true, isIdRight: true });
  expect(amountsOf(added.infos)).toEqual([1n, 2n, 3n, 77n]);
  expect(added.infos.find(({ id }) => id === ids[1])?.log).toHaveLength(3);
  expect(amountsOf((await sick({ kind: 'forged-log' })).infos)).toEqual([1n, 3n, 3n]);
  expect(amountsOf((await sick({ kind: 'forged-log', amountMicro: 9n })).infos)).toEqual([1n, 9n, 3n]);
});

test('forged-direct-log changes the amount in the log of a direct transfer', async () => {
  const { sick } = await mixedDevnet();
  const lie = await sick({ kind: 'forged-direct-log', amountMicro: 25n });
  expect(lie).toMatchObject({ isRootRight: true });
  expect(amountsOf(lie.infos)).toEqual([25n, 2n, 3n]);
  expect(amountsOf((await sick({ kind: 'forged-direct-log' })).infos)).toEqual([2n, 2n, 3n]);
});

test('fee-split shows a direct transfer as two: to somebody else, and the rest to its recipient', async () => {
  const { devnet, sick } = await mixedDevnet();
  await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 10n });
  const number = devnet.mine()[0]?.number ?? 0;
  const split = async (amountMicro?: bigint) => {
    devnet.setFault({ kind: 'fee-split', to: ATTACKER, ...(amountMicro === undefined ? {} : { amountMicro }) });
    const { infos, isRootRight } = await readBlock(devnet.url, number);
    expect(isRootRight).toBe(true);
    return (infos[0]?.log ?? []).map((each) => {
      const { to, value } = decodeTransferLog(each) ?? {};
      return [to === undefined ? '' : accountToAddress(to), value];
    });
  };
  expect(await split()).toEqual([
    [ATTACKER, 5n],
    [RECIPIENT, 5n],
  ]);
  expect(await split(3n)).toEqual([
    [ATTACKER, 3n],
    [RECIPIENT, 7n],
  ]);
  expect(await split(10n)).toEqual([
    [ATTACKER, 10n],
    [RECIPIENT, 0n],
  ]);
  expect(await split(11n)).toEqual([[RECIPIENT, 10n]]);
  // Transfers inside a contract don't change.
  expect(amountsOf((await sick({ kind: 'fee-split' })).infos)).toEqual([0n, 1n, 2n, 3n]);
});

test('forged-direct-transfer adds a transfer to every block of the range; their roots do not match', async () => {
  const { devnet, sick, truth, number } = await mixedDevnet();
  const lie = await sick({ kind: 'forged-direct-transfer', to: ATTACKER, amountMicro: 5n, fromBlock: number });
  expect(lie).toMatchObject({ isRootRight: false, isIdRight: true });
  expect(lie.txIds.slice(0, 4)).toEqual(truth.txIds);
  expect(lie.infos.map(({ id }) => id)).toEqual(lie.txIds);
  expect(decodeTransferLog(lie.infos[4]?.log?.[0] ?? {})).toMatchObject({ value: 5n });
  expect((await readBlock(devnet.url, number - 1)).txIds).toEqual([]);
  devnet.mine();
  expect((await readBlock(devnet.url, number + 1)).txIds).toHaveLength(1);
});

test('flipped-result swaps success and failure of contract calls in block and infos alike', async () => {
  const { sick } = await mixedDevnet();
  const lie = await sick({ kind: 'flipped-result' });
  expect(lie).toMatchObject({ isRootRight: false, isIdRight: true });
  expect(lie.results).toEqual(['REVERT', 'REVERT', 'SUCCESS', 'SUCCESS']);
  expect(lie.infos.map(({ result, receipt }) => [result, receipt.result])).toEqual([
    ['FAILED', 'REVERT'],
    ['FAILED', 'REVERT'],
    [undefined, 'SUCCESS'],
    [undefined, undefined],
  ]);
  expect(amountsOf(lie.infos)).toEqual([10n ** 18n]);
});

test('flipped-info-result swaps them in the infos only', async () => {
  const { sick, truth } = await mixedDevnet();
  const lie = await sick({ kind: 'flipped-info-result' });
  expect(lie.block).toEqual(truth.block);
  expect(lie.infos[0]?.result).toBe('FAILED');
});

test('forged-signature and forged-header change one thing of the header each', async () => {
  const { sick, truth } = await mixedDevnet();
  const signature = await sick({ kind: 'forged-signature' });
  expect(signature).toMatchObject({ isIdRight: true, isRootRight: true });
  expect(signature.signer).not.toBe(truth.signer);
  expect(signature.block.block_header.raw_data).toEqual(truth.block.block_header.raw_data);
  const header = await sick({ kind: 'forged-header' });
  expect(header).toMatchObject({ isIdRight: false, isRootRight: true, block: { blockID: truth.block.blockID } });
});

test('a lie is told at every endpoint that shows a block, solid or not, and is the same on every node', async () => {
  const { devnet, number } = await mixedDevnet();
  devnet.mineUntilSolid();
  const other = await devnet.addNode();
  const fault: Fault = { kind: 'forged-direct-transfer', to: ATTACKER, amountMicro: 5n };
  devnet.setFault(fault);
  other.setFault(fault);
  const asked = [
    ['getblock', { id_or_num: String(number), detail: true }],
    ['getblockbynum', { num: number }],
    ['getblockbylimitnext', { startNum: number, endNum: number + 3 }],
    ['gettransactioninfobyblocknum', { num: number }],
    ['getnowblock', {}],
  ] as const;
  for (const [name, body] of asked) {
    for (const prefix of ['/wallet', '/walletsolidity']) {
      const said = (await askNodeText(devnet.url, `${prefix}/${name}`, body)).text;
      expect((await askNodeText(other.url, `${prefix}/${name}`, body)).text).toBe(said);
      devnet.setFault();
      expect((await askNodeText(devnet.url, `${prefix}/${name}`, body)).text).not.toBe(said);
      devnet.setFault(fault);
    }
  }
});

test('a lie can be limited to a path and to blocks', async () => {
  const { sick, truth } = await mixedDevnet();
  const paths = ['/wallet/gettransactioninfobyblocknum'];
  const lie = await sick({ kind: 'omitted-transaction', paths });
  expect(lie.txIds).toHaveLength(4);
  expect(lie.infos).toHaveLength(3);
  expect(await sick({ kind: 'omitted-transaction', toBlock: 5 })).toEqual(truth);
});

test('every kind of fault can be set alone, without options, and ends when it is taken back', async () => {
  const { devnet, truth, number } = await mixedDevnet();
  for (const kind of FAULT_KINDS) {
    devnet.setFault({ kind });
    if (kind !== 'hang' && kind !== 'slow-drip' && kind !== 'reset') {
      expect((await askNodeText(devnet.url, '/wallet/getnowblock')).text).not.toBe('');
    }
    devnet.setFault();
    expect(await readBlock(devnet.url, number)).toEqual(truth);
  }
  expect(() => devnet.setFault({ kind: 'forged-log', to: 'nobody' })).toThrow('not a TRON address');
  expect(await askNode(devnet.url, '/wallet/getnowblock')).toHaveProperty('blockID');
});
