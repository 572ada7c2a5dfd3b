import { randomBytes } from 'node:crypto';
import { PENNILESS } from '@quittance/devnet/evm/keys';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AppError } from '../../src/core/domain/errors.ts';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { writeText } from '../../src/faces/operator/command-words.ts';
import { refundTransfer } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { showTransfers } from '../../src/faces/operator/subjects/transfers.ts';
import { runCli } from '../cli/run-cli.ts';
import {
  actorNamed,
  newInvoice,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  withOwner,
} from '../console/console.ts';
import { get } from '../contract/ask.ts';
import { runSql } from '../contract/sql.ts';
import {
  createTestProject,
  eventually,
  inboxOf,
  type Json,
  startTestService,
  type TestService,
} from '../support/service.ts';

let service: TestService;
let console_: TestConsole;
/** An address of the project that can send, and its wallet. */
let own: { address: string; payer: TestService['payer'] };
let wallet: string;

beforeAll(async () => {
  service = await startTestService();
  console_ = await startTestConsole(service);
  const key = randomBytes(32).toString('hex');
  const payer = service.payer.withKey(key);
  own = { address: payer.address, payer };
  const parsed = parseAddress(payer.address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  const { address, account } = parsed;
  await insertAddress(service.db, {
    id: uuidV7(Date.now(), randomBytes(10)),
    projectId: service.project.id,
    account,
    address,
  });
  await service.payer.sendTrx({ to: payer.address, amountSun: 1_000_000_000n });
  wallet = service.payer.address;
});
afterAll(async () => {
  await console_.stop();
  await service.stop();
});

const now = () => unixMs(service.clock.now());
const deps = () => ({ db: service.db, now, random: (bytes: number) => randomBytes(bytes) });
const ACTOR = commandActor('anna');

/** Sends unmatched money to the address that can send. Returns its transfer (`trf_…`). */
async function come(amountMicro: bigint): Promise<string> {
  await send(service, { to: own.address, amountMicro });
  const [row] = await runSql(service, 'select id from transfers order by id desc limit 1');
  const { data } = (await get(service, '/v1/transfers?limit=100')).body;
  const { transferId } = data.at(-1);
  expect(decodeId('trf', transferId)).toBe(row?.['id']);
  return transferId;
}

/** Sends it away, and waits until the ledger has the transfer. */
async function leave(to: string, amountMicro: bigint): Promise<string> {
  const txId = await own.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro });
  service.devnet.mineUntilSolid();
  await eventually(
    () => runSql(service, `select from outgoing_transfers where tx_id = decode('${txId}', 'hex')`),
    (rows) => rows.length > 0,
  );
  return txId;
}

const tie = (transfer: string, txId: string) =>
  refundTransfer.run(deps(), ACTOR, {
    ...{ transferId: decodeId('trf', transfer) ?? '', txId, note: `refund tx ${txId}`, invoice: null },
  });
const cli = (...args: string[]) => runCli(args, { env: { DATABASE_URL: service.connectionString } });
const listed = async (transfer: string) =>
  (await get(service, '/v1/transfers?limit=100')).body.data.find(({ transferId }: Json) => transferId === transfer);
const refunds = () => runSql(service, 'select * from transfer_refunds');

test('a refund is tied by the command: it is resolved, told to the shop, and shown wherever the transfer or the refund is', async () => {
  const transfer = await come(24_000_000n);
  expect((await listed(transfer)).refund).toBeNull();
  const txId = await leave(wallet, 24_000_000n);
  const done = await cli('transfers', 'refund', transfer, '--tx', `0x${txId}`, '--note', 'asked by mail', '--json');
  expect(done.json).toMatchObject({
    ...{ resolution: 'refunded', note: `refund tx ${txId}; asked by mail` },
    refund: { txId, logIndex: 0, from: own.address, to: wallet, amount: '24.000000' },
    transfers: [{ transferId: transfer, before: null }],
  });
  const { refund } = done.json;
  expect((await listed(transfer)).refund).toEqual(refund);
  const shown = await cli('transfers', 'show', transfer, '--json');
  expect(shown.json.data[0]).toMatchObject({ refund, resolutions: [{ resolution: 'refunded' }] });
  expect((await cli('transfers', 'show', transfer)).stdout).toContain(`in transaction ${txId}, log 0`);
  const event = await eventually(
    async () =>
      (await inboxOf(service)).map(({ body }) => body as Json).find(({ type }) => type === 'transfer.refunded'),
    (found) => found !== undefined,
  );
  expect(event).toMatchObject({
    sequence: 1,
    data: { transferId: transfer, from: wallet, to: own.address, amount: '24.000000', refund },
  });
  const decided = await eventually(
    async () =>
      (await inboxOf(service)).map(({ body }) => body as Json).filter(({ type }) => type === 'transfer.resolved'),
    (all) => all.length > 0,
  );
  expect(decided).toMatchObject([{ data: { transferId: transfer, resolution: { kind: 'refunded', invoice: null } } }]);
  const explained = await cli('explain', txId, '--json');
  expect(explained.json.verdict).toContain(`was sent from ${own.address} to ${wallet}, as the refund of ${transfer}.`);
  expect((await cli('explain', shown.json.data[0].txId)).stdout).toContain(`with the refund in transaction ${txId}`);
  const audit = await cli('audit', 'list', '--subject', transfer, '--json');
  expect(audit.json.data.map(({ action, detail }: Json) => [action, detail.txId])).toEqual([
    ['transfer.refunded', txId],
  ]);
  // A refund can't be linked twice.
  const again = await cli('transfers', 'refund', transfer, '--tx', txId);
  expect([again.code, again.stderr.includes(`is already the refund of ${transfer}`)]).toEqual([4, true]);
});

test('what is no refund is refused with the reason, and leaves nothing', async () => {
  const before = (await refunds()).length;
  const transfer = await come(10_000_000n);
  const refusal = (txId: string) => tie(transfer, txId).then(String, (error: AppError) => writeText(error.text));
  const unknown = 'ab'.repeat(32);
  expect(await refusal(unknown)).toContain('about a minute after it was sent');
  expect(await refusal(unknown)).toContain(`transfers resolve ${transfer} --as refunded --note "refund tx ${unknown}"`);
  const elsewhere = accountToAddress(PENNILESS.account);
  expect(await refusal(await leave(elsewhere, 1_000_000n))).toContain(`sent money to ${elsewhere}`);
  expect(await refusal(await leave(wallet, 8_500_000n))).toContain('1.500000 USDT less than the 10.000000 received');
  await come(11_000_000n);
  expect(await refusal(await leave(wallet, 10_500_000n))).toContain('0.500000 USDT more');
  const left = await leave(wallet, 1_000_000n);
  const later = await come(1_000_000n);
  await expect(tie(later, left)).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('was received later'),
  });
  expect((await refunds()).length).toBe(before);
  expect((await listed(transfer)).refund).toBeNull();
  const { view } = await showTransfers.run(service, ACTOR, showTransfers.read({ reference: transfer }, now()));
  expect(view.data[0]?.resolutions).toEqual([]);
});

test('one transfer that left refunds one that came, however many are tied at once', async () => {
  const [one, other] = [await come(3_000_000n), await come(3_000_000n)];
  const txId = await leave(wallet, 3_000_000n);
  const tied = await Promise.allSettled([tie(one, txId), tie(other, txId), tie(one, txId), tie(other, txId)]);
  expect(tied.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected']);
  for (const each of tied) if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'CONFLICT' });
  const told = await runSql(
    service,
    `select transfer_id from events where type = 'transfer.refunded' and position(chr(34) || '${txId}' in body) > 0`,
  );
  expect(told).toHaveLength(1);
});

test('what paid its invoice, and a transfer of a project that one may not see, are refunded by nobody', async () => {
  const { address: to, amountMicro, invoiceId } = await newInvoice(service, 'order-paid', '25.00');
  await send(service, { to, amountMicro });
  await eventually(
    () => get(service, `/v1/invoices/${invoiceId}`),
    ({ body }) => body.status === 'PAID',
  );
  const { data } = (await get(service, '/v1/transfers?kind=matched')).body;
  await expect(tie(data[0].transferId, 'ab'.repeat(32))).rejects.toMatchObject({ code: 'CONFLICT' });
  const mine = await come(2_000_000n);
  const other = await createTestProject(service.db);
  const guest = actorNamed('guest', { projects: [other.id] });
  const wanted = { transferId: decodeId('trf', mine) ?? '', txId: 'ab'.repeat(32), note: '', invoice: null };
  await expect(refundTransfer.run(deps(), guest, wanted)).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('a refund stays once it is tied, and one that somebody else wrote is refused by the database or shown by nobody', async () => {
  const transfer = await come(5_000_000n);
  const txId = await leave(wallet, 5_000_000n);
  await tie(transfer, txId);
  for (const sql of [
    'delete from transfer_refunds',
    'truncate transfer_refunds',
    'update transfer_refunds set log_index = 7',
    `insert into transfer_refunds (transfer_id, project_id, network, tx_id, log_index, refunded_at)
     select id, project_id, network, sha256('none'), 0, now() from transfers where id = '${decodeId('trf', await come(6_000_000n))}'`,
  ]) {
    await expect(
      withOwner(service, (client) => client.query(sql)),
      sql,
    ).rejects.toThrow(/never|violates/);
  }
});

test('the console ties it, and keeps the note alone where the money left another wallet', async () => {
  const transfer = await come(7_000_000n);
  const txId = await leave(wallet, 7_000_000n);
  const path = `/unmatched/${transfer}`;
  const decide = async (form: Record<string, string>) => {
    const page = await console_.get(path);
    const seenAt = /name="seenAt" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    return console_.post(path, { token: tokenIn(page, path), seenAt, resolution: 'refunded', ...form });
  };
  const wrong = await decide({ refundTx: 'cd'.repeat(32) });
  expect([wrong.status, wrong.text.includes('about a minute after it was sent')]).toEqual([409, true]);
  expect((await decide({ refundTx: txId, note: 'by Ana' })).status).toBe(303);
  const page = (await console_.get(path)).text;
  expect(page).toContain('<dt>Refunded</dt>');
  expect(page).toContain(`/find?q=${txId}`);
  const found = await console_.get(`/find?q=${txId}`);
  expect(found.text).toContain(transfer);

  const another = await come(8_000_000n);
  const away = `/unmatched/${another}`;
  const form = await console_.get(away);
  const kept = {
    token: tokenIn(form, away),
    seenAt: 'never',
    resolution: 'refunded',
    refundTx: 'cd'.repeat(32),
    elsewhere: 'yes',
  };
  expect((await console_.post(away, kept)).status).toBe(303);
  const text = (await console_.get(away)).text;
  expect([text.includes(`refund tx ${'cd'.repeat(32)}`), text.includes('Sent back')]).toEqual([true, false]);
});
