import { startDevnet } from '@quittance/devnet';
import { TronWeb } from 'tronweb';

const devnet = await startDevnet({ dataDir: null, blockMs: 100 });
const tronWeb = new TronWeb({ fullHost: devnet.url, privateKey: devnet.payer.privateKey });
const { address } = await tronWeb.createAccount().then(({ address: { base58 } }) => ({ address: base58 }));

// 12.34 USDT from the wallet that holds them all.
const parameters = [
  { type: 'address', value: address },
  { type: 'uint256', value: 12_340_000 },
];
const call = ['transfer(address,uint256)', { feeLimit: 100_000_000 }, parameters];
const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(devnet.usdtContract, ...call);
const { txid } = await tronWeb.trx.sendRawTransaction(await tronWeb.trx.sign(transaction));
devnet.mineUntilSolid();
const { receipt } = await tronWeb.trx.getTransactionInfo(txid);
console.log(`sent 12.34 USDT: ${receipt.result}`);

const usdt = await tronWeb.contract().at(devnet.usdtContract);
console.log(`received: ${Number(await usdt.balanceOf(address).call()) / 1e6} USDT`);
await devnet.stop();
