import type { Devnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { decodeTransferLog } from '@quittance/tron/usdt';
import { expect, test } from 'vitest';
import { askNode, payerOf, startTestDevnet } from '../support/devnet.ts';

const RECIPIENT = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const OTHER_KEY = '02'.repeat(32);

/** The topics of Tether's contract: keccak256 of `Pause()`, `Unpause()`, `Params(uint256,uint256)` and so on. */
const TOPICS = {
  pause: '6985a02210a168e66602d3235cb6db0e70f92b3ba4d376a33c0f3d9434bff625',
  unpause: '7805862f689e2f13df9f062ff482ad3ad112aca9e0847911ed832e158c525b33',
  params: 'b044a1e409eac5c48e5af22d4af52670dd1a99059537a78b31b48c6500a6354e',
  deprecate: 'cc358699805e9a8b7f77b522628c7cb9abd07d9efb86b6fb616af1609036a99e',
  addedBlackList: '42e160154868087d6bfdc0ca23d96a1c1cfa32f1b72ba9ba27b69b98a0d819dc',
} as const;

interface Info {
  readonly result?: string;
  readonly log?: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
}

const infoOf = ({ url }: Devnet, value: string) => askNode<Info>(url, '/wallet/gettransactioninfobyid', { value });

const word = (value: bigint | number) => value.toString(16).padStart(64, '0');

function accountWord(address: string): string {
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.account.padStart(64, '0');
}

async function read({ url, payer, usdtContract }: Devnet, data: string): Promise<bigint> {
  const { constant_result } = await askNode<{ constant_result: string[] }>(url, '/wallet/triggerconstantcontract', {
    owner_address: payer.address,
    contract_address: usdtContract,
    data,
    visible: true,
  });
  return BigInt(`0x${constant_result[0]}`);
}

test('the owner’s calls emit the events of Tether’s contract', async () => {
  const devnet = await startTestDevnet();
  const { usdt } = devnet;
  const ids = [
    usdt.pause(),
    usdt.unpause(),
    usdt.setParams({ basisPoints: 10, maxFeeUsdt: 2 }),
    usdt.deprecate(RECIPIENT),
    usdt.addBlackList(RECIPIENT),
  ];
  expect(devnet.pendingCount()).toBe(5);
  devnet.mine();
  const logs = await Promise.all(ids.map(async (id) => (await infoOf(devnet, id)).log));
  expect(logs.map((log = []) => log.map(({ topics, data }) => [topics, data]))).toEqual([
    [[[TOPICS.pause], '']],
    [[[TOPICS.unpause], '']],
    [[[TOPICS.params], word(10) + word(2_000_000)]],
    [[[TOPICS.deprecate], accountWord(RECIPIENT)]],
    [[[TOPICS.addedBlackList, accountWord(RECIPIENT)], '']],
  ]);
  for (const entry of logs.flatMap((log = []) => log)) {
    expect(entry.address).toBe(accountWord(devnet.usdtContract).slice(24));
  }
});

test('isBlackListed and paused answer what the owner has set', async () => {
  const devnet = await startTestDevnet();
  const isBlackListed = () => read(devnet, `e47d6060${accountWord(RECIPIENT)}`);
  const paused = () => read(devnet, '5c975abb');
  expect([await isBlackListed(), await paused()]).toEqual([0n, 0n]);
  devnet.usdt.addBlackList(RECIPIENT);
  devnet.usdt.pause();
  devnet.mine();
  expect([await isBlackListed(), await paused()]).toEqual([1n, 1n]);
  devnet.usdt.removeBlackList(RECIPIENT);
  devnet.usdt.unpause();
  devnet.mine();
  expect([await isBlackListed(), await paused()]).toEqual([0n, 0n]);
});

test('what a blacklisted address sends reverts, and while paused everything does', async () => {
  const devnet = await startTestDevnet();
  const merchant = createPayer({ nodeUrl: devnet.url, privateKey: OTHER_KEY });
  const payer = payerOf(devnet);
  await payer.sendTrx({ to: merchant.address, amountSun: 1_000_000_000n });
  await payer.transfer({ contract: devnet.usdtContract, to: merchant.address, amountMicro: 9n });
  devnet.mine();
  devnet.usdt.addBlackList(merchant.address);
  devnet.mine();
  const send = (from: typeof payer) => from.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro: 1n });
  const blacklisted = await send(merchant);
  devnet.mine();
  devnet.usdt.removeBlackList(merchant.address);
  devnet.usdt.pause();
  devnet.mine();
  const paused = [await send(merchant), await send(payer)];
  devnet.mine();
  for (const id of [blacklisted, ...paused]) expect(await infoOf(devnet, id)).toMatchObject({ result: 'FAILED' });
  devnet.usdt.unpause();
  devnet.mine();
  const again = await send(merchant);
  devnet.mine();
  expect(await infoOf(devnet, again)).not.toHaveProperty('result');
});

test('with a fee one transfer emits two events: to the recipient, less the fee, and to the owner', async () => {
  const devnet = await startTestDevnet();
  const payer = payerOf(devnet);
  devnet.usdt.setParams({ basisPoints: 10, maxFeeUsdt: 1 });
  devnet.mine();
  const pay = (amountMicro: bigint) => payer.transfer({ contract: devnet.usdtContract, to: RECIPIENT, amountMicro });
  const ids = [await pay(25_000_000n), await pay(5_000_000_000n), await pay(999n)];
  devnet.mine();
  const transfers = async (id: string) =>
    ((await infoOf(devnet, id)).log ?? []).map((log) => {
      const transfer = decodeTransferLog(log);
      return transfer && [accountToAddress(transfer.to), transfer.value];
    });
  expect(await Promise.all(ids.map(transfers))).toEqual([
    [
      [RECIPIENT, 24_975_000n],
      [payer.address, 25_000n],
    ],
    [
      [RECIPIENT, 4_999_000_000n],
      [payer.address, 1_000_000n],
    ],
    [[RECIPIENT, 999n]],
  ]);
  expect(await read(devnet, `70a08231${accountWord(RECIPIENT)}`)).toBe(24_975_000n + 4_999_000_000n + 999n);
});

test('a fee above Tether’s limits, and ending a pause that is none, revert', async () => {
  const devnet = await startTestDevnet();
  const ids = [
    devnet.usdt.setParams({ basisPoints: 20, maxFeeUsdt: 1 }),
    devnet.usdt.setParams({ basisPoints: 1, maxFeeUsdt: 50 }),
    devnet.usdt.unpause(),
  ];
  devnet.mine();
  for (const id of ids) expect(await infoOf(devnet, id)).toMatchObject({ result: 'FAILED' });
  expect(() => devnet.usdt.addBlackList('nobody')).toThrow(TypeError);
});
