import { decodeTransferLog } from '@quittance/tron/usdt';
import { TronWeb } from 'tronweb';
import { expect, test } from 'vitest';
import { askNode, startTestDevnet } from '../support/devnet.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const STRANGER_KEY = '01'.repeat(32);

interface Info {
  readonly result?: string;
  readonly resMessage?: string;
  readonly receipt: { readonly result: string; readonly energy_usage_total: number };
  readonly log?: readonly { address: string; topics: string[]; data: string }[];
}

async function walletOn(privateKey?: string) {
  const devnet = await startTestDevnet();
  const tronWeb = new TronWeb({ fullHost: devnet.url, privateKey: privateKey ?? devnet.payer.privateKey });
  const infoOf = (id: string) => askNode<Info>(devnet.url, '/wallet/gettransactioninfobyid', { value: id });
  return { devnet, tronWeb, infoOf };
}

test('TronWeb pays USDT with a transaction the node builds', async () => {
  const { devnet, tronWeb, infoOf } = await walletOn();
  const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(
    devnet.usdtContract,
    'transfer(address,uint256)',
    { feeLimit: 100_000_000 },
    [
      { type: 'address', value: RECIPIENT },
      { type: 'uint256', value: 12_345_678 },
    ],
    devnet.payer.address,
  );
  const sent = await tronWeb.trx.sendRawTransaction(await tronWeb.trx.sign(transaction));
  expect(sent).toMatchObject({ result: true, txid: transaction.txID });
  devnet.mine();
  const info = await infoOf(transaction.txID);
  expect(info).toMatchObject({ receipt: { result: 'SUCCESS', energy_usage_total: 130_285 } });
  expect(info).not.toHaveProperty('result');
  expect((info.log ?? []).map(decodeTransferLog)).toEqual([
    {
      contract: tronWeb.address.toHex(devnet.usdtContract).slice(2),
      from: tronWeb.address.toHex(devnet.payer.address).slice(2),
      to: tronWeb.address.toHex(RECIPIENT).slice(2),
      value: 12_345_678n,
    },
  ]);
  expect(await tronWeb.trx.getTransaction(transaction.txID)).toMatchObject({ ret: [{ contractRet: 'SUCCESS' }] });
});

test('TronWeb pays USDT through a contract object and reads the balance back', async () => {
  const { devnet, tronWeb, infoOf } = await walletOn();
  const usdt = await tronWeb.contract().at(devnet.usdtContract);
  const id: string = await usdt['transfer'](RECIPIENT, 5_000_000).send({ feeLimit: 100_000_000 });
  devnet.mine();
  expect(await usdt['balanceOf'](RECIPIENT).call()).toBe(5_000_000n);
  expect(await usdt['symbol']().call()).toBe('USDT');
  expect(await usdt['decimals']().call()).toBe(6n);
  expect(await usdt['isBlackListed'](RECIPIENT).call()).toBe(false);
  expect((await infoOf(id)).log).toHaveLength(1);
  const again: string = await usdt['transfer'](RECIPIENT, 5_000_000).send({ feeLimit: 100_000_000 });
  devnet.mine();
  expect((await infoOf(again)).receipt.energy_usage_total).toBe(64_285);
});

test('TronWeb pays with a transaction it builds itself', async () => {
  const { devnet, tronWeb, infoOf } = await walletOn();
  const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(
    devnet.usdtContract,
    'transfer(address,uint256)',
    { feeLimit: 100_000_000, txLocal: true },
    [
      { type: 'address', value: RECIPIENT },
      { type: 'uint256', value: 1 },
    ],
    devnet.payer.address,
  );
  expect(await tronWeb.trx.sendRawTransaction(await tronWeb.trx.sign(transaction))).toMatchObject({ result: true });
  devnet.mine();
  expect((await infoOf(transaction.txID)).receipt.result).toBe('SUCCESS');
});

test('TronWeb sends TRX, which opens the account', async () => {
  const { devnet, tronWeb } = await walletOn();
  expect(await tronWeb.trx.sendTransaction(RECIPIENT, 7_000_000)).toMatchObject({ result: true });
  devnet.mineUntilSolid();
  expect(await tronWeb.trx.getBalance(RECIPIENT)).toBe(7_000_000);
  expect(await tronWeb.trx.getUnconfirmedBalance(RECIPIENT)).toBe(7_000_000);
});

test('a payment beyond the balance is accepted, reverts in its block and costs its fee', async () => {
  const { devnet, tronWeb, infoOf } = await walletOn();
  const usdt = await tronWeb.contract().at(devnet.usdtContract);
  const id: string = await usdt['transfer'](RECIPIENT, (10n ** 18n).toString()).send({ feeLimit: 100_000_000 });
  devnet.mine();
  const info = await infoOf(id);
  expect(info).toMatchObject({ result: 'FAILED', receipt: { result: 'REVERT' } });
  expect(tronWeb.toUtf8(info.resMessage ?? '')).toBe('REVERT opcode executed');
  expect(info).not.toHaveProperty('log');
  expect(await tronWeb.trx.getTransaction(id)).toMatchObject({ ret: [{ contractRet: 'REVERT' }] });
});

test('a fee limit too low for the energy ends in OUT_OF_ENERGY', async () => {
  const { devnet, tronWeb, infoOf } = await walletOn();
  const usdt = await tronWeb.contract().at(devnet.usdtContract);
  const id: string = await usdt['transfer'](RECIPIENT, 1).send({ feeLimit: 1_000_000 });
  devnet.mine();
  expect(await infoOf(id)).toMatchObject({
    fee: 1_000_000,
    result: 'FAILED',
    receipt: { result: 'OUT_OF_ENERGY', energy_usage_total: 10_000 },
  });
});

test('a payment signed by someone else is refused', async () => {
  const { devnet, tronWeb } = await walletOn(STRANGER_KEY);
  const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(
    devnet.usdtContract,
    'transfer(address,uint256)',
    {},
    [
      { type: 'address', value: RECIPIENT },
      { type: 'uint256', value: 1 },
    ],
    devnet.payer.address,
  );
  const forged = {
    ...transaction,
    signature: [
      tronWeb.utils.crypto.ECKeySign(
        tronWeb.utils.code.hexStr2byteArray(transaction.txID),
        tronWeb.utils.code.hexStr2byteArray(STRANGER_KEY),
      ),
    ],
  };
  const answer = await askNode<object>(devnet.url, '/wallet/broadcasttransaction', forged);
  expect(answer).toMatchObject({ code: 'SIGERROR', txid: transaction.txID });
  expect(answer).not.toHaveProperty('result');
});
