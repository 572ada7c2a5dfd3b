import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { type PoisonKind, poisoned } from '@quittance/devnet';
import { encodeTransaction } from '@quittance/tron/transaction';
import { TronWeb } from 'tronweb';
import { expect, test } from 'vitest';
import { askNode, askNodeText, payerOf, startTestDevnet, temporaryDirectory } from '../support/devnet.ts';
import { amountsOf, readBlock } from './read-block.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const INFOS = '/wallet/gettransactioninfobyblocknum';

/** Poisons whose bytes JSON omits, or shows with more precision than a JavaScript number has. */
const IN_TRANSACTION: PoisonKind[] = ['unknown-outer-field', 'unknown-result-field', 'order-id', 'result-beyond-2^53'];

/** Starts a devnet with one poisoned block that also contains a payment. */
async function poisonedDevnet(kind: PoisonKind, dataDir: string | null = null) {
  const devnet = await startTestDevnet({ dataDir });
  devnet.mine(3);
  const id = devnet.poison(kind, { bytes: 100_000 });
  await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
  const number = devnet.mine()[0]?.number ?? 0;
  devnet.mine(3);
  return { devnet, id, number };
}

test.each(IN_TRANSACTION)(
  '%s: the JSON of a block does not reproduce its root, and nothing else is wrong',
  async (kind) => {
    const { devnet, id, number } = await poisonedDevnet(kind);
    const read = await readBlock(devnet.url, number);
    expect(read).toMatchObject({ isIdRight: true, isRootRight: false });
    expect(read.txIds).toHaveLength(2);
    expect(read.txIds).toContain(id);
    expect(read.results).toEqual(['SUCCESS', 'SUCCESS']);
    expect(amountsOf(read.infos)).toEqual([7n]);
    expect(await readBlock(devnet.url, number + 1)).toMatchObject({ isIdRight: true, isRootRight: true });
  },
);

test('unknown-header-field: the JSON of a header does not reproduce its id, the signature is over what it hides, and the next one links', async () => {
  const { devnet, id, number } = await poisonedDevnet('unknown-header-field');
  expect(id).toBeNull();
  const read = await readBlock(devnet.url, number);
  expect(read).toMatchObject({ isIdRight: false, isRootRight: true });
  const next = await readBlock(devnet.url, number + 1);
  expect(next).toMatchObject({ isIdRight: true, isRootRight: true });
  expect(next.block.block_header.raw_data.parentHash).toBe(read.block.blockID);
});

test('java-tron knows an order id and large integers of a Result, and shows them', async () => {
  const devnet = await startTestDevnet();
  const order = devnet.poison('order-id');
  const beyond = devnet.poison('result-beyond-2^53');
  devnet.mine();
  const shown = async (id: string | null) =>
    (await askNodeText(devnet.url, '/wallet/gettransactionbyid', { value: id })).text;
  expect(await shown(order)).toContain('"ret":[{"contractRet":"SUCCESS","orderId":"6f726465726964"}]');
  expect(await shown(beyond)).toContain('"ret":[{"contractRet":"SUCCESS","withdraw_amount":9007199254740993}]');
});

/** Creates a payment of 5 micro-USDT, signed by TronWeb. */
async function signedPayment() {
  const devnet = await startTestDevnet();
  const tronWeb = new TronWeb({ fullHost: devnet.url, privateKey: devnet.payer.privateKey });
  const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(
    devnet.usdtContract,
    'transfer(address,uint256)',
    { feeLimit: 100_000_000 },
    [
      { type: 'address', value: RECIPIENT },
      { type: 'uint256', value: 5 },
    ],
    devnet.payer.address,
  );
  const { signature, raw_data_hex: rawHex } = await tronWeb.trx.sign(transaction);
  const bytes = encodeTransaction({ rawData: hexToBytes(rawHex), signatures: signature.map(hexToBytes), results: [] });
  return { devnet, tronWeb, bytes, id: transaction.txID };
}

test.each(IN_TRANSACTION)(
  '%s: a peer can append it to a payment; the payment is made, and its id stays',
  async (kind) => {
    const { devnet, tronWeb, bytes, id } = await signedPayment();
    expect(devnet.relay(bytesToHex(poisoned(bytes, kind)))).toBe(id);
    const [mined] = devnet.mine();
    const read = await readBlock(devnet.url, mined?.number ?? 0);
    expect(read).toMatchObject({ isIdRight: true, isRootRight: false, txIds: [id] });
    expect(amountsOf(read.infos)).toEqual([5n]);
    const usdt = await tronWeb.contract().at(devnet.usdtContract);
    expect(await usdt['balanceOf'](RECIPIENT).call()).toBe(5n);
  },
);

test.each(IN_TRANSACTION)('%s: a client can append it only outside of a Result, which nodes clear', async (kind) => {
  const { devnet, bytes, id } = await signedPayment();
  const transaction = bytesToHex(poisoned(bytes, kind));
  const answer = await askNode(devnet.url, '/wallet/broadcasthex', { transaction });
  expect(answer).toMatchObject({ result: true, txid: id });
  const [mined] = devnet.mine();
  const { isRootRight } = await readBlock(devnet.url, mined?.number ?? 0);
  expect(isRootRight).toBe(kind !== 'unknown-outer-field');
});

test.each([...IN_TRANSACTION, 'unknown-header-field', 'huge-infos'] as const)(
  '%s: a restart, with and without a snapshot, and a fork keep the bytes',
  async (kind) => {
    const dataDir = temporaryDirectory();
    const { devnet, number } = await poisonedDevnet(kind, dataDir);
    const before = await readBlock(devnet.url, number);
    const killed = await startTestDevnet({ dataDir });
    expect(await readBlock(killed.url, number)).toEqual(before);
    await devnet.stop();
    const again = await startTestDevnet({ dataDir });
    expect(await readBlock(again.url, number)).toEqual(before);
    expect(again.head()).toEqual(killed.head());
  },
);

test('an orphaned poisoned transaction enters a later block with the same bytes', async () => {
  const dataDir = temporaryDirectory();
  const devnet = await startTestDevnet({ dataDir });
  devnet.mine(10);
  devnet.poison('unknown-outer-field');
  devnet.mine();
  devnet.fork({ depth: 1 });
  expect(devnet.pendingCount()).toBe(1);
  const again = await startTestDevnet({ dataDir });
  const [mined] = again.mine();
  expect(await readBlock(again.url, mined?.number ?? 0)).toMatchObject({ isRootRight: false, isIdRight: true });
});

test.each(['log', 'contractResult', 'internal_transactions'] as const)(
  'huge-infos: the infos of one transaction have the size that was asked for, as %s, and the payment beside it is there',
  async (shape) => {
    const devnet = await startTestDevnet();
    devnet.poison('huge-infos', { bytes: 2_000_000, shape });
    await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 7n });
    const [mined] = devnet.mine();
    const { text } = await askNodeText(devnet.url, INFOS, { num: mined?.number });
    expect(text.length).toBeGreaterThan(2_000_000);
    expect(text.length).toBeLessThan(2_010_000);
    expect(JSON.parse(text)).toHaveLength(2);
    expect(amountsOf(JSON.parse(text).slice(1))).toEqual([7n]);
    expect(await readBlock(devnet.url, mined?.number ?? 0)).toMatchObject({ isIdRight: true, isRootRight: true });
  },
);

test('huge-infos can be spread over many transactions, as a real contract has to', async () => {
  const devnet = await startTestDevnet();
  devnet.poison('huge-infos', { bytes: 1_000_000, shape: 'contractResult', transactions: 20 });
  const [mined] = devnet.mine();
  const infos = await askNode<{ contractResult: string[] }[]>(devnet.url, INFOS, { num: mined?.number });
  expect(infos.map(({ contractResult }) => contractResult[0]?.length)).toEqual(Array(20).fill(50_000));
});

test('a small answer comes with its length, and a large one without', async () => {
  const devnet = await startTestDevnet();
  devnet.poison('huge-infos', { bytes: 1_000_000 });
  const [mined] = devnet.mine();
  const lengthOf = async (path: string) => (await fetch(devnet.url + path)).headers.get('content-length');
  expect(Number(await lengthOf('/wallet/getnowblock'))).toBeGreaterThan(100);
  expect(await lengthOf(`${INFOS}?num=${mined?.number}`)).toBeNull();
});

test('huge-infos has 26 MiB by default, more than a client may take, for less than 10,000 TRX', async () => {
  const devnet = await startTestDevnet();
  const id = devnet.poison('huge-infos');
  devnet.mine();
  const { text } = await askNodeText(devnet.url, '/wallet/gettransactioninfobyid', { value: id });
  expect(text.length).toBeGreaterThan(26 * 1024 * 1024);
  expect(Number(/"fee":(\d+)/.exec(text)?.[1])).toBeLessThan(10_000_000_000);
});
