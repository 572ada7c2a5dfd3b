import { randomBytes } from 'node:crypto';
import { parseAddress } from '@quittance/tron/address';
import { afterEach, describe, expect, test } from 'vitest';
import { CONTRACT_EVENTS, type ContractEventName } from '../../src/core/domain/contract-event.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { findFrozen, findPause } from '../../src/core/payments/contract-states.ts';
import { diagnoseTransfers } from '../../src/core/payments/mismatch/diagnose-transfers.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { readCandidates } from '../../src/faces/operator/input/read-candidates.ts';
import { activateAddresses } from '../../src/faces/operator/subjects/addresses.ts';
import { runSql } from '../contract/sql.ts';
import {
  alarmKinds,
  evidenceOf,
  newOrder,
  type Order,
  payByContract,
  payDirectly,
  statusOf,
  untilAlarm,
  untilExamined,
  untilPaid,
  untilRecorded,
} from '../support/chain-view.ts';
import { ask, newInvoice } from '../support/lookup-flow.ts';
import { call, createInvoice, eventually, type Json, startTestService, type TestService } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

let service: TestService;
afterEach(() => service?.stop());

const start = (options: Parameters<typeof startTestService>[0] = {}) =>
  startTestService({ nodeCount: 2, addressCount: 2, config: { trustProxy: ['127.0.0.1'] }, ...options });

const freezeOf = async (address: string) =>
  (await findFrozen(service.db, 'devnet')).find((each) => each.address === address)?.freezeState ?? null;
const pauseOf = async () => (await findPause(service.db, 'devnet'))?.pauseState ?? null;
const untilFreeze = (address: string, state: string | null) =>
  eventually(
    () => freezeOf(address),
    (seen) => seen === state,
  );
const untilPause = (state: string | null) => eventually(pauseOf, (seen) => seen === state);
const alarmsOf = async (kind: string) =>
  (await findOpenAlarms(service.db, 'devnet')).filter((each) => each.kind === kind);

/** Returns the state of an invoice's page, as its script and others read it. */
const pageOf = async ({ checkoutUrl }: { checkoutUrl: string }): Promise<Json> => {
  const { state, suspended, address } = (await call(`${checkoutUrl}/status`)).body;
  return { state, suspended, address };
};
const asksToPay = ({ address }: { address: string }) => ({ state: 'waiting', suspended: null, address });
const saysFrozen = { state: 'suspended', suspended: 'frozen', address: null };
const saysPaused = { state: 'suspended', suspended: 'paused', address: null };

async function addressesOf(count: number): Promise<Set<string>> {
  const orders: Order[] = [];
  for (let made = 0; made < count; made++) orders.push(await newOrder(service));
  return new Set(orders.map(({ address }) => address));
}

/** Does what an operator's `address activate` does. */
function activate(address: string) {
  const { good } = readCandidates([{ text: address, place: 'the test' }], []);
  const input = { projectId: service.project.projectId, addresses: good, note: null };
  return activateAddresses.run({ db: service.db, now: () => Date.now() as never }, commandActor('anna'), input);
}

test('AddedBlackList of a receiving address: an alarm at the next block, no new invoice there, and its open pages say not to pay', async () => {
  service = await start();
  const open = await newInvoice(service);
  const other = service.project.addresses.find((address) => address !== open.address) ?? '';
  expect(await pageOf(open)).toEqual(asksToPay(open));
  service.devnet.usdt.addBlackList(open.address);
  service.devnet.mine();
  expect(await untilAlarm(service, 'address-frozen')).toContain(
    `${open.address}, in a block that can still be orphaned`,
  );
  expect(await pageOf(open)).toEqual(saysFrozen);
  expect(await addressesOf(10)).toEqual(new Set([other]));
  service.devnet.mineUntilSolid();
  await untilFreeze(open.address, 'frozen');
  expect(await addressesOf(10)).toEqual(new Set([other]));
  expect(await untilAlarm(service, 'address-frozen')).not.toContain('orphaned');
  // A payment that was sent anyway still counts.
  await payDirectly(service, open);
  service.devnet.mineUntilSolid();
  await untilPaid(service, open);
});

test('while all its addresses are frozen, a project refuses invoices and says why, and one that is let go takes them when an operator says so', async () => {
  service = await start();
  const open = await newInvoice(service);
  for (const address of service.project.addresses) service.devnet.usdt.addBlackList(address);
  service.devnet.mineUntilSolid();
  for (const address of service.project.addresses) await untilFreeze(address, 'frozen');
  const refused = await createInvoice(service);
  expect([refused.status, refused.body.code]).toEqual([409, 'AMOUNT_UNAVAILABLE']);
  expect(refused.body.detail).toContain("Tether froze 2 of the project's addresses");
  await expect(activate(open.address)).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await untilAlarm(service, 'capacity-low')).toContain("Tether froze 2 of the project's addresses");

  service.devnet.usdt.removeBlackList(open.address);
  service.devnet.mineUntilSolid();
  await untilFreeze(open.address, 'lifted');
  expect((await alarmsOf('address-frozen')).map(({ subject }) => subject)).not.toContain(open.address);
  expect((await createInvoice(service)).status).toBe(409);
  expect(await pageOf(open)).toEqual(saysFrozen);
  await activate(open.address);
  expect(await pageOf(open)).toEqual(asksToPay(open));
  expect(await addressesOf(3)).toEqual(new Set([open.address]));
});

test('Pause and Unpause: an alarm and pages that say to wait from the next block on, until transfers go on; invoices are made meanwhile', async () => {
  service = await start();
  const open = await newInvoice(service);
  service.devnet.usdt.pause();
  service.devnet.mine();
  expect(await untilAlarm(service, 'contract-paused')).toContain('in a block that can still be orphaned');
  expect(await pageOf(open)).toEqual(saysPaused);
  service.devnet.mineUntilSolid();
  await untilPause('paused');
  const made = await newInvoice(service);
  expect(await pageOf(made)).toEqual(saysPaused);
  service.devnet.usdt.unpause();
  service.devnet.mineUntilSolid();
  await untilPause(null);
  await expect.poll(() => alarmKinds(service)).toEqual([]);
  await expect.poll(() => pageOf(open)).toEqual(asksToPay(open));
  await payDirectly(service, open);
  service.devnet.mineUntilSolid();
  await untilPaid(service, open);
});

test('an open page hears of a pause, and of its end, without asking', async () => {
  service = await start();
  const open = await newInvoice(service);
  const response = await fetch(`${open.checkoutUrl}/live`);
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let heard = '';
  const hears = async (text: string) => {
    while (!heard.includes(text)) {
      const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
      if (done) throw new Error(`the stream ended: ${heard.slice(-200)}`);
      heard += decoder.decode(value, { stream: true });
    }
  };
  service.devnet.usdt.pause();
  service.devnet.mine();
  await hears('transfers are paused');
  heard = '';
  service.devnet.usdt.unpause();
  service.devnet.mineUntilSolid();
  await hears(open.address.slice(-6));
  await reader?.cancel();
});

test('DestroyedBlackFunds: an alarm names the address and the amount, and the books still balance', async () => {
  service = await start();
  const paid = await newOrder(service);
  await payDirectly(service, paid);
  service.devnet.mineUntilSolid();
  await untilPaid(service, paid);
  service.devnet.usdt.addBlackList(paid.address);
  service.devnet.mine();
  service.devnet.usdt.destroyBlackFunds(paid.address);
  service.devnet.mineUntilSolid();
  const detail = await untilAlarm(service, 'funds-destroyed');
  expect(detail).toContain(paid.address);
  expect(detail).toMatch(/^Tether destroyed 25\.0\d{5} USDT/);
  await untilRecorded(service);
  const { number } = service.devnet.solid();
  // A check that began before the destruction may end after it, so checks are made due until one has seen it.
  const [compared] = await eventually(
    async () => {
      await runSql(service, 'update balance_checks set due_at = now()');
      return (await runSql(service, CHECK, [paid.address])) as Json[];
    },
    ([row]) => row?.block >= number && row?.held === '0',
  );
  expect(compared.expected).toBe('0');
  expect(await alarmKinds(service)).not.toContain('balance-differs');
  expect(await statusOf(service, paid)).toBe('PAID');
});

const CHECK = `select checked_block::int as block, balance_micro::text as held, expected_micro::text as expected
  from balance_checks b join addresses a on a.id = b.address_id where a.address = $1`;

describe('a payer whose transfer the contract refused', () => {
  async function failedTry(prepare: () => void) {
    service = await start();
    const open = await newInvoice(service);
    prepare();
    service.devnet.mine();
    const txId = await payDirectly(service, open);
    service.devnet.mineUntilSolid();
    await untilRecorded(service);
    return { open, txId };
  }

  test('is told to use another wallet if the issuer froze the one that sent', async () => {
    const { open, txId } = await failedTry(() => service.devnet.usdt.addBlackList(service.devnet.payer.address));
    expect((await ask(open, txId)).body).toMatchObject({ code: 'failed', why: 'payer_frozen', result: 'REVERT' });
    const page = await (await fetch(`${open.checkoutUrl}/ask`, askedWith(txId))).text();
    expect(page).toContain('Pay from another wallet');
    expect(page).not.toContain('you can send again');
  });

  test('is told to wait while transfers are paused', async () => {
    const { open, txId } = await failedTry(() => service.devnet.usdt.pause());
    expect((await ask(open, txId)).body).toMatchObject({ code: 'failed', why: 'paused' });
    const page = await (await fetch(`${open.checkoutUrl}/ask`, askedWith(txId))).text();
    expect(page).toContain('transfers are paused on TRON');
    expect(page).not.toContain('you can send again');
  });

  const askedWith = (txId: string) => ({
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `transaction=${txId}`,
  });
});

const ANNOUNCED: Record<string, () => string> = {
  Deprecate: () => service.devnet.usdt.deprecate(service.devnet.fakeUsdtContract),
  Params: () => service.devnet.usdt.setParams({ basisPoints: 0, maxFeeUsdt: 1 }),
  Issue: () => service.devnet.usdt.issue(5_000_000n),
  Redeem: () => service.devnet.usdt.redeem(5_000_000n),
};

test.each(someCases(Object.keys(ANNOUNCED) as ContractEventName[], 3))(
  '%s changes neither allocation nor pages nor payments, and is an alarm only where the table says so',
  async (name) => {
    service = await start();
    const open = await newInvoice(service);
    ANNOUNCED[name]?.();
    service.devnet.mine();
    await payDirectly(service, open);
    service.devnet.mineUntilSolid();
    await untilPaid(service, open);
    const row = CONTRACT_EVENTS[name];
    expect(await alarmKinds(service)).toEqual('alarm' in row ? [row.alarm] : []);
    expect((await createInvoice(service)).status).toBe(201);
    expect(await pageOf(await newInvoice(service))).toMatchObject({ state: 'waiting' });
  },
);

test('every event of the table has a test here', () => {
  const tested = [
    'AddedBlackList',
    'RemovedBlackList',
    'Pause',
    'Unpause',
    'DestroyedBlackFunds',
    ...Object.keys(ANNOUNCED),
  ];
  expect(Object.keys(CONTRACT_EVENTS).sort()).toEqual(tested.sort());
});

test('an event in a block that is orphaned leaves nothing behind', async () => {
  service = await start();
  const open = await newInvoice(service);
  service.devnet.usdt.pause();
  service.devnet.usdt.addBlackList(open.address);
  service.devnet.mine();
  await untilPause('seen');
  await untilFreeze(open.address, 'seen');
  service.devnet.fork({ depth: 1, keepTransactions: false });
  await untilPause(null);
  await untilFreeze(open.address, null);
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  await expect.poll(() => alarmKinds(service)).toEqual([]);
  await expect.poll(() => pageOf(open)).toEqual(asksToPay(open));
  expect(await addressesOf(30)).toContain(open.address);
});

test('events while the service was down are applied in their order', async () => {
  service = await start();
  const [first = '', second = ''] = service.project.addresses;
  await untilExamined(service);
  await service.stopService();
  const { usdt } = service.devnet;
  usdt.addBlackList(first);
  usdt.addBlackList(second);
  usdt.pause();
  service.devnet.mine(10);
  usdt.removeBlackList(first);
  service.devnet.mine(30);
  await service.restart();
  await untilPause('paused');
  await untilFreeze(first, 'lifted');
  await untilFreeze(second, 'frozen');
  expect((await alarmsOf('address-frozen')).map(({ subject }) => subject)).toEqual([second]);
});

test('states from before the service followed the network are found by asking', async () => {
  service = await start({ config: { trustProxy: ['127.0.0.1'] }, isNodeDown: true, nodeCount: 1, agreement: 1 });
  const [first = ''] = service.project.addresses;
  service.devnet.usdt.addBlackList(first);
  service.devnet.usdt.pause();
  service.devnet.mineUntilSolid();
  service.devnet.mine(30);
  service.devnet.setFault();
  await untilPause('paused');
  await untilFreeze(first, 'frozen');
  expect((await alarmKinds(service)).sort()).toEqual(['address-frozen', 'contract-paused']);
});

test('one lying operator of two freezes no address and lets none go', async () => {
  service = await start();
  const [first = '', second = ''] = service.project.addresses;
  service.devnet.usdt.addBlackList(first);
  service.devnet.mineUntilSolid();
  await untilFreeze(first, 'frozen');
  // The last node is queried about addresses, and says the opposite of the truth about each.
  service.nodes[1]?.setFault({ kind: 'wrong-flags' });
  const [before] = (await runSql(service, 'select min(checked_at) as at from balance_checks')) as Json;
  await runSql(service, 'update balance_checks set due_at = now()');
  await eventually(
    async () => (await runSql(service, 'select min(checked_at) as at from balance_checks')) as Json,
    ([now]) => now?.at > before?.at,
  );
  expect([await freezeOf(first), await freezeOf(second)]).toEqual(['frozen', null]);
  expect((await alarmsOf('address-frozen')).map(({ subject }) => subject)).toEqual([first]);
});

describe('a transfer from an address to itself', () => {
  test.each([
    ['by a direct call', payDirectly],
    ['inside another contract', payByContract],
  ])('%s pays no invoice though the amount is exact, at the head and when it is irreversible', async (_title, send) => {
    service = await start({ addressCount: 0 });
    const { address } = service.devnet.payer;
    const parsed = parseAddress(address);
    if (parsed.kind !== 'ok') throw new Error(parsed.reason);
    const id = uuidV7(Date.now(), randomBytes(10));
    await insertAddress(service.db, { id, projectId: service.project.id, account: parsed.account, address });
    const order = await newOrder(service);
    expect(order.address).toBe(address);
    const txId = await send(service, order);
    service.devnet.mine();
    await untilExamined(service);
    expect(await statusOf(service, order)).toBe('PENDING');
    service.devnet.mineUntilSolid();
    await untilRecorded(service);
    expect(await statusOf(service, order)).toBe('PENDING');
    expect(await evidenceOf(service, txId)).toMatchObject([{ kind: 'unmatched' }]);
    const [row] = (await runSql(service, `select id from transfers where tx_id = decode('${txId}', 'hex')`)) as Json;
    const causes = await diagnoseTransfers(service.db, [row.id]);
    expect(causes.get(row.id)).toMatchObject([{ code: 'SELF_TRANSFER', confidence: 'high', invoices: [] }]);
    expect(encodeId('trf', row.id)).toMatch(/^trf_/);
  });
});
