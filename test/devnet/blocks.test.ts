import { accountFromHex41 } from '@quittance/tron/address';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader, recoverWitness } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import { encodeTransaction, type TransactionJson, transactionFromJson, txIdOf } from '@quittance/tron/transaction';
import { expect, test } from 'vitest';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { SCENARIO_NAMES } from '../../src/developer/scenarios/scenarios.ts';
import { askNode, contractsOf, payerOf, startTestDevnet } from '../support/devnet.ts';

const INVOICE = { address: 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', amountMicro: 25_000_014n };
const RETIRED = 'TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx';
const SECOND = { address: 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK', amountMicro: 3_000_001n };

interface ServedBlock {
  readonly blockID: string;
  readonly block_header: { readonly raw_data: BlockHeaderJson; readonly witness_signature?: string };
  readonly transactions?: readonly (TransactionJson & { readonly txID: string })[];
}

interface ServedAccount {
  readonly witness_permission?: { readonly keys: readonly { readonly address: string }[] };
}

const blockAt = (url: string, number: number) =>
  askNode<ServedBlock>(url, '/wallet/getblock', { id_or_num: String(number), detail: true });

/** Recomputes everything that a block commits to. Returns the account that signed it. */
function verify(block: ServedBlock, parentId: string): string | null {
  const header = block.block_header.raw_data;
  const bytes = encodeBlockHeader(header);
  if (bytes === null) throw new Error('the header cannot be encoded');
  expect(blockIdOf(bytes, header.number ?? 0)).toBe(block.blockID);
  expect(header.parentHash).toBe(parentId);
  const leaves = (block.transactions ?? []).map((json) => {
    const transaction = transactionFromJson(json);
    if (transaction === null) throw new Error('a transaction cannot be read');
    expect(txIdOf(transaction.rawData)).toBe(json.txID);
    return encodeTransaction(transaction);
  });
  expect(txTrieRoot(leaves)).toBe(header.txTrieRoot);
  return recoverWitness(bytes, block.block_header.witness_signature ?? '');
}

test.each([1, 5, 27])(
  'every block of a network with %i producers verifies, with every kind of payment in it',
  async (producers) => {
    const devnet = await startTestDevnet({ producers });
    const payer = payerOf(devnet);
    for (const scenario of SCENARIO_NAMES) {
      await payScenario(payer, {
        scenario,
        contracts: contractsOf(devnet),
        invoice: INVOICE,
        second: SECOND,
        requestedMicro: 25_000_000n,
        retiredAddress: RETIRED,
      });
      await payer.transfer({ contract: devnet.usdtContract, to: INVOICE.address, amountMicro: 10n ** 17n });
      devnet.mine(2);
    }
    const { witnesses } = await askNode<{ witnesses: { address: string; isJobs: boolean }[] }>(
      devnet.url,
      '/wallet/listwitnesses',
    );
    expect(witnesses.filter(({ isJobs }) => isJobs)).toHaveLength(producers);
    const signerOf = new Map<string, string | null>();
    for (const { address } of witnesses) {
      const account = await askNode<ServedAccount>(devnet.url, '/wallet/getaccount', { address });
      signerOf.set(address, accountFromHex41(account.witness_permission?.keys[0]?.address ?? ''));
    }
    let parent = await blockAt(devnet.url, 0);
    const signers = new Set<string>();
    for (let number = 1; number <= devnet.head().number; number += 1) {
      const block = await blockAt(devnet.url, number);
      const signer = verify(block, parent.blockID);
      expect(signer).toBe(signerOf.get(block.block_header.raw_data.witness_address ?? ''));
      expect(block.block_header.raw_data.timestamp).toBeGreaterThan(parent.block_header.raw_data.timestamp ?? 0);
      signers.add(signer ?? '');
      parent = block;
    }
    expect(signers.size).toBe(Math.min(producers, devnet.head().number));
  },
);

test('some producers sign with a key that is not the key of their address', async () => {
  const devnet = await startTestDevnet({ producers: 2 });
  devnet.mine(2);
  const own = await Promise.all(
    [1, 2].map(async (number) => {
      const block = await blockAt(devnet.url, number);
      const bytes = encodeBlockHeader(block.block_header.raw_data) ?? new Uint8Array();
      const witness = accountFromHex41(block.block_header.raw_data.witness_address ?? '');
      return recoverWitness(bytes, block.block_header.witness_signature ?? '') === witness;
    }),
  );
  expect(own).toEqual([true, false]);
});

test('a node leaves out what is empty, zero or unknown', async () => {
  const devnet = await startTestDevnet();
  const { url } = devnet;
  expect(await blockAt(url, 1)).not.toHaveProperty('transactions');
  expect((await blockAt(url, 0)).block_header.raw_data).not.toHaveProperty('number');
  expect((await blockAt(url, 0)).block_header).not.toHaveProperty('witness_signature');
  expect(await blockAt(url, 99)).toEqual({});
  expect(await askNode(url, '/wallet/getblockbynum', { num: 99 })).toEqual({});
  expect(await askNode(url, '/walletsolidity/getblock', { id_or_num: '1', detail: true })).toEqual({});
  expect(await askNode(url, '/wallet/gettransactionbyid', { value: '00'.repeat(32) })).toEqual({});
  expect(await askNode(url, '/wallet/gettransactioninfobyid', { value: '00'.repeat(32) })).toEqual({});
  expect(await askNode(url, '/wallet/gettransactioninfobyblocknum', { num: 1 })).toEqual([]);
  expect(await askNode(url, '/wallet/gettransactioninfobyblocknum', { num: 99 })).toEqual([]);
  expect(await askNode(url, '/wallet/getaccount', { address: `41${'00'.repeat(20)}` })).toEqual({});
});

test('infos come in the order of the block, in the shape of a real node', async () => {
  const devnet = await startTestDevnet();
  const payer = payerOf(devnet);
  await payer.sendTrx({ to: INVOICE.address, amountSun: 5n });
  await payScenario(payer, {
    scenario: 'two-in-one',
    contracts: contractsOf(devnet),
    invoice: INVOICE,
    second: SECOND,
  });
  const [mined] = devnet.mine();
  const block = await blockAt(devnet.url, mined?.number ?? 0);
  const infos = await askNode<Record<string, unknown>[]>(devnet.url, '/wallet/gettransactioninfobyblocknum', {
    num: mined?.number,
  });
  expect(infos.map(({ id }) => id)).toEqual(block.transactions?.map(({ txID }) => txID));
  const [plain, batch] = infos;
  expect(Object.keys(plain ?? {})).toEqual(['id', 'fee', 'blockNumber', 'blockTimeStamp', 'contractResult', 'receipt']);
  expect(plain?.['receipt']).not.toHaveProperty('result');
  expect(batch?.['log']).toHaveLength(2);
  expect(Object.keys(batch ?? {})).toEqual([
    'id',
    'fee',
    'blockNumber',
    'blockTimeStamp',
    'contractResult',
    'contract_address',
    'receipt',
    'log',
    'internal_transactions',
  ]);
  expect(batch?.['internal_transactions']).toHaveLength(2);
});

test('the header alone is answered unless detail is asked for, by height or by id, with GET or POST', async () => {
  const devnet = await startTestDevnet();
  await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: INVOICE.address, amountMicro: 1n });
  const [mined] = devnet.mine();
  const byId = await askNode<ServedBlock>(devnet.url, '/wallet/getblock', { id_or_num: mined?.id });
  expect(byId.blockID).toBe(mined?.id);
  expect(byId).not.toHaveProperty('transactions');
  const got = await fetch(`${devnet.url}/wallet/getblock?id_or_num=${mined?.number}&detail=true`);
  expect(await got.json()).toEqual(await blockAt(devnet.url, mined?.number ?? 0));
  expect(await askNode(devnet.url, '/wallet/getblock')).toMatchObject({ blockID: devnet.head().id });
  expect(await askNode(devnet.url, '/walletsolidity/getnowblock')).toMatchObject({ blockID: devnet.solid().id });
});

test('a range ends before its end and has at most 100 blocks', async () => {
  const devnet = await startTestDevnet();
  devnet.mine(120);
  const range = (startNum: number, endNum: number) =>
    askNode<{ block?: ServedBlock[] }>(devnet.url, '/wallet/getblockbylimitnext', { startNum, endNum });
  const numbers = (await range(5, 105)).block?.map((block) => block.block_header.raw_data.number);
  expect(numbers).toEqual(Array.from({ length: 100 }, (_, index) => index + 5));
  expect(await range(5, 106)).toEqual({});
  expect(await range(5, 5)).toEqual({});
  expect((await range(119, 200)).block).toHaveLength(3);
});

test('visible answers hold base58 addresses', async () => {
  const devnet = await startTestDevnet();
  const id = await payerOf(devnet).transfer({ contract: devnet.usdtContract, to: INVOICE.address, amountMicro: 1n });
  devnet.mine();
  expect(await askNode(devnet.url, '/wallet/gettransactionbyid', { value: id, visible: true })).toMatchObject({
    raw_data: {
      contract: [
        { parameter: { value: { owner_address: devnet.payer.address, contract_address: devnet.usdtContract } } },
      ],
    },
  });
  expect(await askNode(devnet.url, '/wallet/gettransactioninfobyid', { value: id, visible: true })).toMatchObject({
    contract_address: devnet.usdtContract,
    log: [{ address: devnet.usdtContract }],
  });
  expect(
    await askNode(devnet.url, '/wallet/getaccount', { address: devnet.payer.address, visible: true }),
  ).toMatchObject({
    address: devnet.payer.address,
  });
});
