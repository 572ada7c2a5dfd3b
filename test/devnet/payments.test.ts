import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import type { Devnet } from '@quittance/devnet';
import { PENNILESS } from '@quittance/devnet/evm/keys';
import { createPayer } from '@quittance/devnet/payer';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { encodeRawTransaction, type RawTransaction } from '@quittance/tron/raw-transaction';
import { signMessage } from '@quittance/tron/signature';
import { encodeTransaction } from '@quittance/tron/transaction';
import { decodeTransferLog, encodeTransferCall, type TransferLog } from '@quittance/tron/usdt';
import { expect, test, vi } from 'vitest';
import { payScenario, type ScenarioOptions } from '../../src/developer/scenarios/pay-scenario.ts';
import { SCENARIO_NAMES, type Scenario, scenarioOf } from '../../src/developer/scenarios/scenarios.ts';
import { askNode, contractsOf, payerOf, startTestDevnet, temporaryDirectory } from '../support/devnet.ts';
import { PATIENCE_MS } from '../support/patience.ts';

const INVOICE = { address: 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', amountMicro: 25_000_014n };
const SECOND = { address: 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK', amountMicro: 3_000_001n };
const RETIRED = 'TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx';
const OTHER_KEY = '02'.repeat(32);

type Info = { result?: string; fee?: number; receipt: { result?: string }; log?: object[] };

const infoOf = (devnet: Devnet, txId: string) =>
  askNode<Info>(devnet.url, '/wallet/gettransactioninfobyid', { value: txId });

async function transfersIn(devnet: Devnet, txId: string): Promise<TransferLog[]> {
  const { log = [] } = await infoOf(devnet, txId);
  return log.map(decodeTransferLog).filter((transfer) => transfer !== null);
}

function optionsOf(devnet: Devnet, scenario: Scenario): ScenarioOptions {
  return {
    scenario,
    contracts: contractsOf(devnet),
    invoice: INVOICE,
    second: SECOND,
    requestedMicro: 25_000_000n,
    retiredAddress: RETIRED,
  };
}

const FAILING: [Scenario, string, number][] = [
  ['reverted', 'REVERT', 410_000],
  ['out-of-energy', 'OUT_OF_ENERGY', 1_000_000],
];
const SUCCEEDING = SCENARIO_NAMES.filter((name) => !FAILING.some(([failing]) => failing === name));

test.each(SUCCEEDING)('the scenario %s sends what its name says', async (scenario) => {
  const amounts = scenarioOf(scenario).example;
  const devnet = await startTestDevnet();
  const paid = await payScenario(payerOf(devnet), optionsOf(devnet, scenario));
  devnet.mine();
  const logs = (await Promise.all(paid.txIds.map((id) => transfersIn(devnet, id)))).flat();
  expect(logs.map(({ value }) => value)).toEqual(amounts);
  expect(paid.sent.map(({ amountMicro }) => amountMicro)).toEqual(amounts);
  expect(logs.map(({ to }) => accountToAddress(to))).toEqual(paid.sent.map(({ to }) => to));
  expect(logs.map(({ contract }) => accountToAddress(contract))).toEqual(paid.sent.map(({ contract }) => contract));
  const token = scenario === 'fake-token' ? devnet.fakeUsdtContract : devnet.usdtContract;
  expect(new Set(paid.sent.map(({ contract }) => contract))).toEqual(new Set([token]));
  const recipient = paid.sent[0]?.to;
  if (scenario === 'to-retired') expect(recipient).toBe(RETIRED);
  else if (scenario === 'wrong-address') expect([INVOICE.address, SECOND.address, RETIRED]).not.toContain(recipient);
  else expect(recipient).toBe(INVOICE.address);
});

test.each(FAILING)(
  'the scenario %s stands in its block as %s, costs its fee and moves nothing',
  async (scenario, result, fee) => {
    const devnet = await startTestDevnet();
    const { TronWeb } = await import('tronweb');
    const reader = new TronWeb({ fullHost: devnet.url, privateKey: OTHER_KEY });
    const balance = async (address: string) => {
      const usdt = await reader.contract().at(devnet.usdtContract);
      return BigInt(await usdt['balanceOf'](address).call());
    };
    const before = await balance(devnet.payer.address);
    const paid = await payScenario(payerOf(devnet), optionsOf(devnet, scenario));
    expect(paid.sent).toEqual([
      { txId: paid.txIds[0], contract: devnet.usdtContract, to: INVOICE.address, amountMicro: INVOICE.amountMicro },
    ]);
    const [mined] = devnet.mineUntilSolid();
    const [txId = ''] = paid.txIds;
    // As TronWeb reads it: the block, the transaction and its info agree.
    const block = await reader.trx.getBlock(mined?.number ?? 0);
    expect(block.transactions).toMatchObject([{ txID: txId, ret: [{ contractRet: result }] }]);
    expect(await reader.trx.getTransaction(txId)).toMatchObject({ ret: [{ contractRet: result }] });
    const info = await reader.trx.getTransactionInfo(txId);
    expect(info).toMatchObject({ fee, result: 'FAILED', receipt: { result, energy_fee: fee }, contractResult: [''] });
    expect(reader.toUtf8(info.resMessage)).toMatch(/^(?:REVERT opcode executed|Not enough energy for )/);
    expect(info).not.toHaveProperty('log');
    expect(await balance(devnet.payer.address)).toBe(before);
    expect(await balance(INVOICE.address)).toBe(0n);
  },
);

test('a scenario says what it lacks', async () => {
  const devnet = await startTestDevnet();
  const pay = (scenario: Scenario, amountMicro = INVOICE.amountMicro) =>
    payScenario(payerOf(devnet), { scenario, contracts: contractsOf(devnet), invoice: { ...INVOICE, amountMicro } });
  await expect(pay('two-in-one')).rejects.toThrow('second invoice');
  await expect(pay('to-retired')).rejects.toThrow('retired address');
  await expect(pay('requested-amount')).rejects.toThrow('requested amount');
  await expect(pay('rounded', 25_000_000n)).rejects.toThrow(RangeError);
  expect((await pay('short', 5n)).sent[0]?.amountMicro).toBe(2n);
});

test('a directory from before the wallet without tokens has it once it is opened', async () => {
  const dataDir = temporaryDirectory();
  const before = await startTestDevnet({ dataDir });
  before.mineUntilSolid();
  await before.stop();
  const path = join(dataDir, 'snapshot.json');
  const snapshot = JSON.parse(readFileSync(path, 'utf8')) as { state: [string, string][] };
  const state = snapshot.state.filter(([key]) => !key.endsWith(PENNILESS.account));
  expect(state).toHaveLength(snapshot.state.length - 2);
  writeFileSync(path, JSON.stringify({ ...snapshot, state }));
  const devnet = await startTestDevnet({ dataDir });
  const { txIds } = await payScenario(payerOf(devnet), optionsOf(devnet, 'reverted'));
  devnet.mine();
  expect(await infoOf(devnet, txIds[0] ?? '')).toMatchObject({ receipt: { result: 'REVERT' } });
});

test('transferFrom moves what was approved, and nothing more', async () => {
  const devnet = await startTestDevnet();
  const payer = payerOf(devnet);
  const spender = createPayer({ nodeUrl: devnet.url, privateKey: OTHER_KEY });
  await payer.sendTrx({ to: spender.address, amountSun: 1_000_000_000n });
  await payer.approve({ contract: devnet.usdtContract, spender: spender.address, amountMicro: 10n });
  devnet.mine();
  const move = (amountMicro: bigint) =>
    spender.transferFrom({ contract: devnet.usdtContract, from: payer.address, to: INVOICE.address, amountMicro });
  const [allowed, refused] = [await move(10n), await move(1n)];
  devnet.mine();
  expect(await transfersIn(devnet, allowed)).toHaveLength(1);
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', { value: refused })).toMatchObject({
    result: 'FAILED',
  });
});

test('a blacklisted account receives but cannot send, and a paused token does not move', async () => {
  const devnet = await startTestDevnet();
  const payer = payerOf(devnet);
  const { TronWeb } = await import('tronweb');
  const owner = new TronWeb({ fullHost: devnet.url, privateKey: devnet.payer.privateKey });
  const usdt = await owner.contract().at(devnet.usdtContract);
  const merchant = createPayer({ nodeUrl: devnet.url, privateKey: OTHER_KEY });
  await payer.sendTrx({ to: merchant.address, amountSun: 1_000_000_000n });
  devnet.mine();
  await usdt['addBlackList'](merchant.address).send();
  await payer.transfer({ contract: devnet.usdtContract, to: merchant.address, amountMicro: 5n });
  const stuck = await merchant.transfer({ contract: devnet.usdtContract, to: INVOICE.address, amountMicro: 5n });
  const intruder = await merchant.transfer({ contract: devnet.fakeUsdtContract, to: INVOICE.address, amountMicro: 1n });
  devnet.mine();
  expect(await usdt['isBlackListed'](merchant.address).call()).toBe(true);
  expect(await usdt['balanceOf'](merchant.address).call()).toBe(5n);
  expect(await transfersIn(devnet, stuck)).toEqual([]);
  expect(await transfersIn(devnet, intruder)).toEqual([]);
  await usdt['pause']().send();
  const paused = await payer.transfer({ contract: devnet.usdtContract, to: INVOICE.address, amountMicro: 5n });
  devnet.mine();
  expect(await usdt['paused']().call()).toBe(true);
  expect(await transfersIn(devnet, paused)).toEqual([]);
});

test('one failing recipient fails the whole multisend', async () => {
  const devnet = await startTestDevnet();
  const id = await payerOf(devnet).multisend({
    multisendContract: devnet.multisendContract,
    token: devnet.usdtContract,
    transfers: [
      { to: INVOICE.address, amountMicro: 1n },
      { to: SECOND.address, amountMicro: 10n ** 18n },
    ],
  });
  devnet.mine();
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', { value: id })).toMatchObject({
    result: 'FAILED',
    receipt: { result: 'REVERT' },
  });
  expect(await transfersIn(devnet, id)).toEqual([]);
});

/** Broadcasts a transfer with one deliberate mistake in its raw_data, and returns the node's answer. */
async function broadcastWith(devnet: Devnet, change: Partial<RawTransaction>, privateKey = devnet.payer.privateKey) {
  const { id, timestampMs } = devnet.solid();
  const to = parseAddress(INVOICE.address);
  const contract = parseAddress(devnet.usdtContract);
  if (to.kind !== 'ok' || contract.kind !== 'ok') throw new Error('unreachable');
  const key = hexToBytes(privateKey);
  const rawData = encodeRawTransaction({
    refBlockBytes: id.slice(12, 16),
    refBlockHash: id.slice(16, 32),
    expirationMs: timestampMs + 600_000,
    timestampMs,
    feeLimitSun: 100_000_000n,
    memo: '',
    permissionId: 0,
    contract: {
      kind: 'trigger',
      owner: accountFromPublicKey(secp256k1.getPublicKey(key)),
      contract: contract.account,
      data: encodeTransferCall(to.account, 1n),
      callValueSun: 0n,
    },
    ...change,
  });
  const transaction = encodeTransaction({ rawData, signatures: [hexToBytes(signMessage(rawData, key))], results: [] });
  return askNode<{ result: boolean; code: string; message: string }>(devnet.url, '/wallet/broadcasthex', {
    transaction: bytesToHex(transaction),
  });
}

test('a broadcast is refused for the reasons a real node has', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  const { timestampMs } = devnet.head();
  expect(await broadcastWith(devnet, {})).toMatchObject({ result: true, code: 'SUCCESS' });
  expect(await broadcastWith(devnet, {})).toMatchObject({ result: false, code: 'DUP_TRANSACTION_ERROR' });
  expect(await broadcastWith(devnet, { refBlockHash: '00'.repeat(8) })).toMatchObject({ code: 'TAPOS_ERROR' });
  expect(await broadcastWith(devnet, { refBlockBytes: 'ffff' })).toMatchObject({ code: 'TAPOS_ERROR' });
  expect(await broadcastWith(devnet, { expirationMs: timestampMs })).toMatchObject({
    code: 'TRANSACTION_EXPIRATION_ERROR',
  });
  const tooLate = timestampMs + 24 * 60 * 60 * 1000 + 1;
  expect(await broadcastWith(devnet, { expirationMs: tooLate })).toMatchObject({
    code: 'TRANSACTION_EXPIRATION_ERROR',
  });
  expect(await broadcastWith(devnet, { feeLimitSun: 15_000_000_001n })).toMatchObject({
    code: 'CONTRACT_VALIDATE_ERROR',
  });
  expect(await broadcastWith(devnet, {}, OTHER_KEY)).toMatchObject({
    code: 'CONTRACT_VALIDATE_ERROR',
    message: expect.stringContaining('does not exist'),
  });
  devnet.mine();
  expect(await broadcastWith(devnet, {})).toMatchObject({ code: 'SUCCESS' });
  expect(devnet.pendingCount()).toBe(1);
});

test('a payment that expires before its block is never in one', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(10);
  const { timestampMs } = devnet.head();
  expect(await broadcastWith(devnet, { expirationMs: timestampMs + 3_000 })).toMatchObject({ result: true });
  devnet.mine();
  expect(await broadcastWith(devnet, { expirationMs: timestampMs + 6_000 })).toMatchObject({ result: true });
  devnet.fork({ depth: 1 });
  devnet.mine();
  expect(devnet.pendingCount()).toBe(0);
  expect(await askNode(devnet.url, '/wallet/getnowblock')).not.toHaveProperty('transactions');
});

test('the payer says what went wrong', async () => {
  const devnet = await startTestDevnet();
  const pay = (nodeUrl: string, privateKey = devnet.payer.privateKey) =>
    createPayer({ nodeUrl, privateKey }).transfer({
      contract: devnet.usdtContract,
      to: INVOICE.address,
      amountMicro: 1n,
    });
  await expect(pay(devnet.url, OTHER_KEY)).rejects.toThrow(
    'CONTRACT_VALIDATE_ERROR: Contract validate error : account [',
  );
  devnet.setFault({ kind: 'unavailable-503' });
  await expect(pay(devnet.url)).rejects.toThrow('returned status 503');
  devnet.setFault({ kind: 'bare-text' });
  await expect(pay(devnet.url)).rejects.toThrow('did not return JSON: this API is closed');
  devnet.setFault({ kind: 'error-200' });
  await expect(pay(devnet.url)).rejects.toThrow('lack of computing resources');
  await devnet.stop();
  await expect(pay(devnet.url)).rejects.toThrow('cannot be reached');
});

test('with a block time the network makes blocks by itself, on its slots, and goes on after a pause', async () => {
  const start = 1_767_225_600_000;
  let clock = start;
  const devnet = await startTestDevnet({ blockMs: 20, genesisTimestampMs: start, now: () => (clock += 5) });
  await vi.waitFor(() => expect(devnet.head().number).toBeGreaterThan(3), { interval: 5, timeout: PATIENCE_MS });
  const before = devnet.head();
  clock += 1_000_000;
  await vi.waitFor(() => expect(devnet.head().timestampMs).toBeGreaterThan(start + 1_000_000), {
    interval: 5,
    timeout: PATIENCE_MS,
  });
  expect(devnet.head().number).toBeLessThan(before.number + 50);
  expect((devnet.head().timestampMs - start) % 20).toBe(0);
});
