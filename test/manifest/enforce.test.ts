import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type AccountXpub, deriveAddresses } from '@quittance/tron/account-xpub';
import { parseAddress } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { deriveNextAddresses } from '../../src/core/payments/derive-addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { recordedActor } from '../../src/faces/operator/record-actions.ts';
import { newAddress } from '../addresses/shop.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { openEventStream } from '../support/event-stream.ts';
import { setPolicy } from '../support/policies.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  inboxOf,
  payableOf,
  readInvoice,
  untilStatus,
} from '../support/service.ts';
import { type GuardedService, startGuardedService } from './guarded-service.ts';
import { HONEST_XPUB, OTHER_XPUB } from './xpubs.ts';

const THIEF = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const THIEF_ACCOUNT = Buffer.from(accountOf(THIEF), 'hex');

function accountOf(address: string): string {
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.account;
}

/** Adds a thief's address to the pool and retires the honest ones. */
async function plant(service: GuardedService): Promise<void> {
  await runSql(
    service,
    `insert into addresses (id, project_id, network, account, address, policy, position)
     select gen_random_uuid(), $1, 'devnet', $2, $3, 'tail', 99`,
    [service.project.id, THIEF_ACCOUNT, THIEF],
  );
  await runSql(service, 'update addresses set retired_at = now() where project_id = $1 and address <> $2', [
    service.project.id,
    THIEF,
  ]);
}

/** Expects that no interface shows a thief's address, and that the page says what to do. */
async function expectSuspended(service: GuardedService, { checkoutUrl, invoiceId }: Record<string, string>) {
  const live = await openEventStream(`${checkoutUrl}/live`);
  const [told] = await eventually(live.messages, ({ length }) => length > 0);
  live.close();
  const { status, body: parts } = await call(`${checkoutUrl}/parts`);
  expect([told?.state, status, parts.state]).toEqual(['suspended', 200, 'suspended']);
  expect(JSON.stringify([told, parts])).not.toMatch(new RegExp(`${THIEF}|class=.{2}qr`));
  for (const url of [checkoutUrl, `${checkoutUrl}/receipt`]) {
    const response = await fetch(url ?? '');
    expect([url, response.status]).toEqual([url, 503]);
    const text = await response.text();
    expect(text, url).not.toContain(THIEF);
    expect(text, url).not.toContain('class="qr"');
  }
  expect(await (await fetch(checkoutUrl ?? '')).text()).toContain('Payment is suspended. Do not pay');
  const answer = await readInvoice(service, invoiceId ?? '');
  expect(answer).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } });
  expect(answer.body.detail).toContain('Do not pay this invoice');
  expect(JSON.stringify(answer)).not.toContain(THIEF);
}

test('an honest address is served as before, and paid', async () => {
  const service = await startGuardedService();
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  expect(await service.unvouched()).toEqual({});
});

test('a thief’s address that was inserted is shown nowhere and never makes PAID; the alarm names it', async () => {
  const service = await startGuardedService();
  await plant(service);
  const { status, body } = await createInvoice(service);
  if (status === 201) {
    await expectSuspended(service, body);
    const [row] = await runSql(service, 'select payable_micro from invoices order by created_at desc limit 1');
    const amountMicro = BigInt(String(row?.['payable_micro']));
    await service.payer.transfer({ contract: service.devnet.usdtContract, to: THIEF, amountMicro });
    service.devnet.mineUntilSolid();
  } else {
    // No address is left to offer.
    expect(status).toBe(409);
  }
  const alarms = await eventually(service.unvouched, (open) => Object.keys(open).length > 0);
  expect(Object.keys(alarms)).toEqual([THIEF]);
  expect(alarms[THIEF]).toContain('does not list it');
  expect(await runSql(service, `select 1 from invoices where status = 'PAID'`)).toEqual([]);
  expect(JSON.stringify(await inboxOf(service))).not.toContain(THIEF);
  // And no start hands it out.
  await service.stopService();
  await expect(service.restart()).rejects.toMatchObject({
    code: 'ADDRESS_NOT_VOUCHED',
    message: expect.stringContaining(THIEF),
  });
});

test('no command makes an invoice to be paid at an address that somebody put into the pool', async () => {
  const service = await startGuardedService();
  const make = (externalId: string, mode: string) =>
    runCli(['--json', 'invoice', 'create', '--amount', '25.00', '--external-id', externalId], {
      env: {
        ...{ DATABASE_URL: service.connectionString, QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9' },
        ...{ QUITTANCE_DEVNET_USDT: service.devnet.usdtContract, QUITTANCE_MANIFEST_MODE: mode },
        ...{ QUITTANCE_ADDRESS_MANIFEST: service.manifestPath, QUITTANCE_MANIFEST_KEYS: service.pinned.keys.join(',') },
      },
    });
  const honest = await make('honest', 'enforce');
  expect(honest.json.invoice, honest.stderr).toMatchObject({ address: service.project.addresses[0] });
  await plant(service);
  expect((await make('refused', 'enforce')).json.error).toMatchObject({ code: 'CONFLICT' });
  expect(await runSql(service, `select 1 from invoices where external_id = 'refused'`)).toEqual([]);
  // The same invoice can be created without a manifest, so the manifest was the reason for the refusal.
  expect((await make('taken', 'warn')).json.invoice).toMatchObject({ address: THIEF });
});

test('an address whose text and account the owner of the database changed is shown nowhere, and a repair loses nothing', async () => {
  const service = await startGuardedService();
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  const stream = await openEventStream(`${body.checkoutUrl}/live`);
  const guards = (verb: string) => `alter table addresses ${verb} trigger addresses_keep_what_they_are`;
  const [own] = await runSql(service, 'select account from addresses where project_id = $1', [service.project.id]);
  await runSql(service, guards('disable'));
  await runSql(service, 'update addresses set address = $1, account = $2', [THIEF, THIEF_ACCOUNT]);

  await expectSuspended(service, body);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: THIEF, amountMicro });
  service.devnet.mineUntilSolid();
  await eventually(service.unvouched, (open) => THIEF in open);
  expect(await runSql(service, `select 1 from invoices where status = 'PAID'`)).toEqual([]);
  const told = () => stream.messages().at(-1);
  await eventually(told, (message) => message?.state === 'suspended' && message.parts.pay === '');
  expect(stream.text()).not.toContain(THIEF);

  await runSql(service, 'update addresses set address = $1, account = $2', [address, own?.['account']]);
  await runSql(service, guards('enable'));
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  await eventually(told, (message) => message?.state === 'paid');
  stream.close();
});

test('an address that waits for its signature is served once the manifest that has it is installed, without a restart', async () => {
  const service = await startGuardedService();
  await plant(service);
  const { status, body } = await createInvoice(service);
  if (status === 201) await expectSuspended(service, body);
  await eventually(service.unvouched, (open) => THIEF in open);
  // It was our own address all along.
  await service.vouchFor([...service.project.addresses, THIEF]);
  if (status !== 201) return;
  const healed = await eventually(
    () => readInvoice(service, body.invoiceId),
    (answer) => answer.status === 200,
  );
  expect(healed.body.payment.address).toBe(THIEF);
  expect((await fetch(body.checkoutUrl)).status).toBe(200);
  const { amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: THIEF, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  await eventually(service.unvouched, (open) => Object.keys(open).length === 0);
});

test('an older manifest, an unsigned one and none are refused: by a start, and by a running service, which keeps the newest', async () => {
  const service = await startGuardedService();
  const older = await readFile(service.manifestPath, 'utf8');
  await service.vouchFor([...service.project.addresses, THIEF]);
  const newest = await readFile(service.manifestPath, 'utf8');
  await service.restart();
  await service.stopService();
  for (const [text, says] of [
    [older, 'serial 1, but serial 2 was already in force'],
    [newest.replace('"serial":2', '"serial":3'), '0 of the 1 pinned keys signed this version'],
    ['', 'not JSON'],
  ] as const) {
    await service.putManifest(text);
    await expect(service.restart()).rejects.toMatchObject({
      code: 'MANIFEST_REFUSED',
      message: expect.stringContaining(says),
    });
  }
  await service.putManifest(newest);
  await service.restart();
  await service.putManifest(older);
  const alarms = await eventually(service.unvouched, (open) => 'addresses.manifest' in open);
  expect(alarms['addresses.manifest']).toContain('serial 2 was already in force here');
  expect((await createInvoice(service)).status).toBe(201);
  await service.putManifest(newest);
  await eventually(service.unvouched, (open) => Object.keys(open).length === 0);
});

test('in the mode warn a planted address is served, and an alarm', async () => {
  const service = await startGuardedService('warn');
  await plant(service);
  const { body } = await createInvoice(service);
  expect((await readInvoice(service, body.invoiceId)).body.payment.address).toBe(THIEF);
  await eventually(service.unvouched, (open) => THIEF in open);
  await service.restart();
  expect((await fetch(body.checkoutUrl)).status).toBe(200);
});

test('a manifest that has expired goes on vouching, and is an alarm', async () => {
  const service = await startGuardedService();
  const notAfter = new Date(Date.now() + 600_000).toISOString();
  const { serial } = await service.vouchFor(service.project.addresses, { notAfter });
  await service.restart();
  service.clock.advance(601_000);
  // A start compares immediately, and accepts the manifest that was in force before.
  await service.restart();
  const alarms = await eventually(service.unvouched, (open) => 'addresses.manifest' in open);
  expect(alarms['addresses.manifest']).toContain(`(serial ${serial}) expired at ${notAfter}`);
  const { body } = await createInvoice(service);
  expect((await fetch(body.checkoutUrl)).status).toBe(200);
});

test('a planted address that was taken out of use holds up nothing: its invoice expires, its transfers are none of ours', async () => {
  const service = await startGuardedService('warn');
  const honest = await createInvoice(service);
  const own = await payableOf(service, honest.body.invoiceId);
  await plant(service);
  const planted = await createInvoice(service);
  const theirs = await payableOf(service, planted.body.invoiceId);
  expect(theirs.address).toBe(THIEF);
  await runSql(service, 'update addresses set retired_at = case when address = $1 then now() end', [THIEF]);
  service.enforce();
  await service.restart();
  const { usdtContract: contract } = service.devnet;
  await service.payer.transfer({ contract, to: theirs.address, amountMicro: theirs.amountMicro });
  await service.payer.transfer({ contract, to: own.address, amountMicro: own.amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, honest.body.invoiceId, 'PAID');
  const after = await createInvoice(service);
  service.devnet.mine(1, { timestampMs: Math.ceil(Date.parse(after.body.expiresAt) / 3000) * 3000 + 3000 });
  service.devnet.mineUntilSolid();
  await untilStatus(service, after.body.invoiceId, 'EXPIRED');
  const rows = await runSql(
    service,
    `select status from invoices where address_id in (select id from addresses where address = $1)`,
    [THIEF],
  );
  expect(rows).toEqual([{ status: 'EXPIRED' }]);
  await expectSuspended(service, planted.body);
});

test.each(['tail', 'exact'] as const)(
  'an unsigned address before signed ones keeps no %s order from them',
  async (policy) => {
    const service = await startGuardedService();
    const { project } = service;
    const signed = [newAddress(), newAddress()];
    const entry = {
      ...{ addresses: [...project.addresses, ...signed.map(({ address }) => address)], maxSurcharge: '0.01', policy },
      xpubs: [],
    };
    await service.vouchFor([], { networks: { devnet: { [project.projectId]: entry } } });
    await runSql(service, 'update projects set policy = $2, max_surcharge_micro = 100 where id = $1', [
      project.id,
      policy,
    ]);
    await service.restart();
    await runSql(service, 'update addresses set retired_at = now() where project_id = $1', [project.id]);
    const pool = [signed[0], ...Array.from({ length: 20 }, newAddress), signed[1]].map((each) => each?.account ?? '');
    await runSql(
      service,
      `insert into addresses (id, project_id, network, account, address, policy, position)
     select gen_random_uuid(), $1, 'devnet', decode(account, 'hex'), tron_address(decode(account, 'hex')), $3, 100 + place
     from unnest($2::text[]) with ordinality _ (account, place)`,
      [project.id, pool, policy],
    );
    const orders = policy === 'tail' ? 18 : 2;
    for (let i = 0; i < orders; i++) expect((await createInvoice(service)).status, `order ${i + 1}`).toBe(201);
    expect(await createInvoice(service)).toMatchObject({ status: 409, body: { code: 'AMOUNT_UNAVAILABLE' } });
  },
);

/** Waits for the alarm about low capacity to say this. A measurement that began before the orders closes it until the next one. */
async function untilLow(service: GuardedService, text: string): Promise<void> {
  const alarms = `select detail from alarms where kind = 'capacity-low' and resolved_at is null`;
  await eventually(
    async () => String((await runSql(service, alarms))[0]?.['detail']),
    (detail) => detail.includes(text),
  );
}

const deriving = ({ db }: GuardedService) => ({
  ...{ db, now: () => unixMs(Date.now()), random: randomBytes },
  actor: recordedActor(commandActor('anna', null)),
});

test('addresses are derived automatically up to the last signed one; then orders get 409, and the alarm says what to do', async () => {
  const service = await startGuardedService();
  const { project } = service;
  const xpub = HONEST_XPUB as AccountXpub;
  // The first batch would be #6 and #7, and only #6 is signed.
  const signed = deriveAddresses(xpub, 0, 6).map(({ address }) => address as string);
  const entry = {
    ...{ addresses: [...project.addresses, ...signed], maxSurcharge: '0.01', policy: 'exact' as const },
    xpubs: [],
  };
  // A running service would compare the new policy with the old manifest.
  await service.stopService();
  await service.vouchFor([], { networks: { devnet: { [project.projectId]: entry } } });
  await setPolicy(service, project, 'exact');
  await service.restart();
  await deriveNextAddresses(deriving(service), { projectId: project.id, xpub, count: 5, policy: null });
  for (let i = 0; i < 6; i++) expect((await createInvoice(service)).status, `order ${i + 1}`).toBe(201);
  for (let i = 0; i < 2; i++) {
    expect(await createInvoice(service)).toMatchObject({ status: 409, body: { code: 'AMOUNT_UNAVAILABLE' } });
  }
  const rows = await runSql(
    service,
    'select address from addresses where account_key_id is not null order by position',
  );
  expect(rows.map(({ address }) => address)).toEqual(signed);
  const unsigned = "The next address of the project's account key isn't signed";
  await untilLow(service, unsigned);
  // It's measured when a watcher becomes the leader.
  await service.restart();
  await untilLow(service, `for 25.000000 USDT, 0 of 6 are free. ${unsigned}`);
  const ratio = new RegExp(`^quittance_capacity_free_ratio\\{[^}]*${project.projectId}[^}]*\\} 0$`, 'm');
  const metrics = async () => (await fetch(`${service.metricsUrl}/metrics`)).text();
  await eventually(metrics, (text) => ratio.test(text));
  expect(await runSql(service, `select subject from alarms where kind = 'address-not-vouched'`)).toEqual([]);
});

test('an attacker who gives the next address to another project makes orders 409, and hides no low capacity', async () => {
  const service = await startGuardedService();
  const { project } = service;
  const xpub = HONEST_XPUB as AccountXpub;
  const [first, next] = deriveAddresses(xpub, 0, 2);
  const addresses = [...project.addresses, first?.address ?? '', next?.address ?? ''];
  const entry = { addresses, maxSurcharge: '0.01', policy: 'exact' as const, xpubs: [] };
  await service.vouchFor([], { networks: { devnet: { [project.projectId]: entry } } });
  await setPolicy(service, project, 'exact');
  await service.restart();
  await deriveNextAddresses(deriving(service), { projectId: project.id, xpub, count: 1, policy: null });
  const other = await createTestProject(service.db, { addressCount: 0 });
  await runSql(
    service,
    `insert into addresses (id, project_id, network, account, address, policy, position, retired_at)
     values (gen_random_uuid(), $1, 'devnet', decode($2, 'hex'), $3, 'tail', 1, now())`,
    [other.id, next?.account, next?.address],
  );
  expect((await createInvoice(service)).status).toBe(201);
  expect(await createInvoice(service)).toMatchObject({ status: 409, body: { code: 'AMOUNT_UNAVAILABLE' } });
  await untilLow(service, 'Add addresses');
  await service.restart();
  await untilLow(service, 'for 25.000000 USDT, 0 of 1 are free. Add addresses');
});

test('an account key that was swapped yields no address: what it derives is not signed, and is not added', async () => {
  const service = await startGuardedService();
  const derive = deriveNextAddresses(deriving(service), {
    ...{ projectId: service.project.id, xpub: OTHER_XPUB as AccountXpub, count: 2, policy: null },
  });
  await expect(derive).rejects.toMatchObject({ code: 'ADDRESS_NOT_VOUCHED' });
  expect(await runSql(service, 'select address from addresses')).toEqual([{ address: service.project.addresses[0] }]);
});
