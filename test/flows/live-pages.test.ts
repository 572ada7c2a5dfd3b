import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { runSql } from '../contract/sql.ts';
import { type EventStream, openEventStream } from '../support/event-stream.ts';
import {
  createInvoice,
  eventually,
  payExactly,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

async function openPage(): Promise<{ id: string; url: string; stream: EventStream }> {
  const { invoiceId: id, checkoutUrl: url } = (await createInvoice(service)).body;
  const stream = await openEventStream(`${url}/live`);
  onTestFinished(() => stream.close());
  await shows(stream, 'waiting');
  return { id, url, stream };
}

/** Waits until the page is in a state, and contains a text if one is given. */
function shows(stream: EventStream, state: string, text = '') {
  return eventually(
    () => stream.messages().at(-1),
    (message) => message?.state === state && Object.values(message.parts).join().includes(text),
  );
}

async function pay(id: string): Promise<void> {
  await payExactly(service, id);
  service.devnet.mine();
}

/** Closes the listening connection, like a failover or a restart of the database. Returns when the service listens again. */
async function cutListener(): Promise<void> {
  const listeners =
    "from pg_stat_activity where datname = current_database() and query like '%listen%quittance_invoices%'";
  const pidsOf = async () =>
    (await runSql(service, `select pid ${listeners} and pid <> pg_backend_pid()`)).map(({ pid }) => pid);
  const before = await pidsOf();
  expect(before).toHaveLength(1);
  await runSql(service, `select pg_terminate_backend(${before[0]})`);
  await eventually(pidsOf, (now) => now.length === 1 && now[0] !== before[0]);
}

test('a page follows its payment to the end: found, progress, a lost connection to the database, paid', async () => {
  const { id, url, stream } = await openPage();
  await pay(id);
  const found = await shows(stream, 'seen', 'value="1"');
  expect(found?.parts.pay).toBe('');
  service.devnet.mine();
  await shows(stream, 'seen', 'value="2"');
  await cutListener();
  service.devnet.mineUntilSolid();
  const paid = await shows(stream, 'paid');
  // No more changes can follow, and a browser that reconnects is told so.
  await eventually(stream.hasEnded, (hasEnded) => hasEnded);
  const again = await openEventStream(`${url}/live`, { headers: { 'last-event-id': paid?.id ?? '' } });
  expect(again.status).toBe(204);
  const late = await openEventStream(`${url}/live?v=${found?.version}`);
  await eventually(late.hasEnded, (hasEnded) => hasEnded);
  expect(late.messages().map(({ state }) => state)).toEqual(['paid']);
  const versions = stream.messages().map(({ version }) => version);
  expect(new Set(versions).size).toBe(versions.length);
});

test('a page whose payment was in a block that is replaced says so, and finds it again', async () => {
  const { id, stream } = await openPage();
  await pay(id);
  await shows(stream, 'seen');
  service.devnet.fork({ depth: 1, keepTransactions: false });
  const gone = await shows(stream, 'replaced', 'replaced the block');
  expect(gone?.parts.pay).toContain('id="address"');
  await pay(id);
  await shows(stream, 'seen');
});

// Runs last, because it moves the chain's clock past all other deadlines.
test('a page expires by the chain and can still be paid', async () => {
  const { id, stream } = await openPage();
  service.clock.advance(31 * 60_000);
  service.devnet.mine(1, { timestampMs: Math.floor(service.clock.now() / 3000) * 3000 });
  service.devnet.mineUntilSolid();
  await untilStatus(service, id, 'EXPIRED');
  await shows(stream, 'expired');
  await pay(id);
  await shows(stream, 'seen');
});
