import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { migrate } from '../../src/core/store/db/migrate.ts';
import { createLiveReads } from '../../src/faces/checkout/live/live-routes.ts';
import { runSql } from '../contract/sql.ts';
import { openEventStream } from '../support/event-stream.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  payableOf,
  payExactly,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

const THIEF = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const HOUR_MS = 3_600_000;

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.stop());

/** Returns the open alarms of a kind by subject. */
async function alarms(kind: string): Promise<Record<string, string>> {
  const rows = await runSql(
    service,
    'select subject, detail from alarms where kind = $1 and resolved_at is null order by subject',
    [kind],
  );
  return Object.fromEntries(rows.map(({ subject, detail }) => [subject, detail]));
}

async function pay(invoiceId: string): Promise<void> {
  await payExactly(service, invoiceId);
}

const PAST_THE_GUARDS = `alter table addresses drop constraint addresses_text;
  alter table addresses disable trigger addresses_keep_what_they_are`;
const GUARDS = `alter table addresses add constraint addresses_text check (address = tron_address(account));
  alter table addresses enable trigger addresses_keep_what_they_are`;

test('an address whose text was changed by the owner of the database is shown to nobody, alarms, and nothing is lost', async () => {
  const [first, open, late] = [
    await createInvoice(service),
    await createInvoice(service),
    await createInvoice(service),
  ].map(({ body }) => body);
  await pay(first.invoiceId);
  service.devnet.mineUntilSolid();
  const { payment } = await untilStatus(service, first.invoiceId, 'PAID');
  const own = payment.address;
  const { amountMicro } = await payableOf(service, late.invoiceId);
  const stream = await openEventStream(`${open.checkoutUrl}/live`);
  onTestFinished(() => stream.close());

  await runSql(service, `${PAST_THE_GUARDS}; update addresses set address = '${THIEF}'`);

  const paths = [open.checkoutUrl, `${first.checkoutUrl}/receipt`];
  for (const url of [...paths, `${first.checkoutUrl}/receipt.json`]) {
    const response = await fetch(url);
    expect([url, response.status]).toEqual([url, 503]);
    expect(response.headers.get('retry-after'), url).not.toBeNull();
    expect(await response.text(), url).not.toContain(THIEF);
  }
  for (const { invoiceId } of [first, open]) {
    const answer = await readInvoice(service, invoiceId);
    expect(answer).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } });
    expect(JSON.stringify(answer)).not.toContain(THIEF);
  }
  const asked = await call(`${open.checkoutUrl}/lookup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ transaction: payment.transaction.txId }),
  });
  expect(asked.status).toBe(503);
  await eventually(
    () => stream.messages().at(-1),
    (message) => message?.state === 'suspended' && message.parts.pay === '',
  );
  expect(await call(`${open.checkoutUrl}/parts`)).toMatchObject({ status: 200, body: { state: 'suspended' } });
  expect(stream.text()).not.toContain(THIEF);
  const reported = await eventually(
    () => alarms('address-damaged'),
    (found) => Object.keys(found).length > 0,
  );
  expect(Object.keys(reported)).toEqual([own]);
  expect(reported[own]).toContain(`its text is ${THIEF}`);

  // The books wait for the operator too, and nothing that arrives meanwhile is lost.
  const { usdtContract } = service.devnet;
  await service.payer.transfer({ contract: usdtContract, to: own, amountMicro });
  service.devnet.mineUntilSolid();
  await runSql(service, `update addresses set address = '${own}'; ${GUARDS}`);
  await untilStatus(service, late.invoiceId, 'PAID');
  expect((await fetch(open.checkoutUrl)).status).toBe(200);
  service.clock.advance(HOUR_MS);
  await eventually(
    () => alarms('address-damaged'),
    (found) => Object.keys(found).length === 0,
  );
});

test('of links that are read together only those whose address was changed are suspended', async () => {
  const other = await createTestProject(service.db);
  const made = [await createInvoice(service), await createInvoice(service, { apiKey: other.apiKey })];
  const [own = '', theirs = ''] = made.map(({ body }) => body.checkoutUrl.split('/').at(-1));
  await runSql(service, PAST_THE_GUARDS);
  await runSql(service, 'update addresses set address = $1 where project_id = $2', [THIEF, other.id]);
  const { readInvoice: read } = createLiveReads({ db: service.db, metrics: createMetrics() });
  const [sound, damaged, none] = await Promise.allSettled([read(own), read(theirs), read('A'.repeat(22))]);
  expect(sound).toMatchObject({ status: 'fulfilled', value: { address: service.project.addresses[0] } });
  expect(damaged).toEqual({ status: 'fulfilled', value: { checkoutToken: theirs, suspended: 'unconfirmed' } });
  expect(none).toEqual({ status: 'fulfilled', value: null });
});

test('a running process raises the alarm schema-changed within a minute, names the objects, and closes it when they are repaired', async () => {
  await runSql(service, 'drop index transfers_pay_once; alter table transfers disable trigger transfers_are_kept');
  service.clock.advance(30_000);
  const reported = await eventually(
    () => alarms('schema-changed'),
    (found) => Object.keys(found).length === 2,
  );
  expect(Object.keys(reported)).toEqual(['index transfers.transfers_pay_once', 'trigger transfers.transfers_are_kept']);
  expect(reported['index transfers.transfers_pay_once']).toMatch(/is missing.* It should be: CREATE UNIQUE INDEX/);
  expect(reported['trigger transfers.transfers_are_kept']).toMatch(/is disabled/);

  await service.stopService();
  await expect(service.restart()).rejects.toMatchObject({
    code: 'SCHEMA_CHANGED',
    message: expect.stringMatching(/transfers_pay_once is missing.*transfers_are_kept is disabled/),
  });

  const index = reported['index transfers.transfers_pay_once']?.match(/CREATE UNIQUE INDEX[^.]*/)?.[0];
  await runSql(service, `${index}; alter table transfers enable trigger transfers_are_kept`);
  await service.restart();
  await eventually(
    () => alarms('schema-changed'),
    (found) => Object.keys(found).length === 0,
  );
});

test('while a newer release has changed the schema, a process of this one does not call that an alarm', async () => {
  await runSql(
    service,
    `alter table transfers add column of_next_release text;
     insert into schema_migrations (version, name, sha256) values (9999, '9999_next.sql', 'x')`,
  );
  service.clock.advance(HOUR_MS);
  await runSql(service, 'drop index transfers_pay_once');
  // Addresses are checked after the schema, in the same round.
  await runSql(service, `${PAST_THE_GUARDS}; update addresses set address = '${THIEF}'`);
  service.clock.advance(HOUR_MS);
  await eventually(
    () => alarms('address-damaged'),
    (found) => Object.keys(found).length === 1,
  );
  expect(await alarms('schema-changed')).toEqual({});
  await expect(migrate(service.db)).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
});
