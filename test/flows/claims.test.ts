import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { findCheckoutInvoice, requestClaim } from '../../src/core/store/ledger/checkout.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { resolveTransfers } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { listTransfers } from '../../src/faces/operator/subjects/transfers.ts';
import { runSql } from '../contract/sql.ts';
import { openEventStream } from '../support/event-stream.ts';
import { ask, type Invoice, newInvoice, untilRecorded } from '../support/lookup-flow.ts';
import {
  call,
  eventually,
  inboxOf,
  payExactly,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
  untilTold,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ addressCount: 2, config: { lookupsPerMinute: 600 } });
});
beforeEach(() => {
  service.clock.advance(120_000);
});
afterAll(() => service.stop());

const ONE_USDT = 1_000_000n;

const send = (to: string, amountMicro: bigint) =>
  service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro });

async function settle(): Promise<void> {
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  await untilTold(service);
}

const tokenOf = ({ checkoutUrl }: Invoice) => new URL(checkoutUrl).pathname.split('/')[2] ?? '';
const claimedMicro = async (invoice: Invoice) =>
  (await findCheckoutInvoice(service.db, tokenOf(invoice)))?.claimedMicro ?? null;
const eventsAbout = async (txId: string) =>
  (await inboxOf(service)).map(({ body }) => body).filter(({ data }) => data.txId === txId);
const claimEvents = async (txId: string) => (await eventsAbout(txId)).filter(({ type }) => type === 'transfer.claimed');

/** Waits until the watcher has judged the payers' questions. */
const untilJudged = () =>
  eventually(
    () => runSql(service, 'select from claim_requests'),
    ({ length }) => length === 0,
  );

async function looksUp(invoice: Invoice, txId: string): Promise<string> {
  const { status, body } = await ask(invoice, txId);
  expect(status).toBe(200);
  return body.code;
}

test('a payer who looks a wrong amount up gets an answer that stays, and the shop is told once', async () => {
  const invoice = await newInvoice(service);
  const txId = await send(invoice.address, invoice.amountMicro - ONE_USDT);
  // The payer looks while the transfer can still vanish, and again later.
  service.devnet.mine();
  const stream = await openEventStream(`${invoice.checkoutUrl}/live`);
  onTestFinished(() => stream.close());
  const last = () => stream.messages().at(-1);
  await eventually(last, (message) => message !== undefined);
  expect(await looksUp(invoice, txId)).toBe('short');
  expect(await claimedMicro(invoice)).toBeNull();
  await settle();
  await untilJudged();
  expect(await claimedMicro(invoice)).toBe(invoice.amountMicro - ONE_USDT);
  const words = `We have your ${formatAmount(microUsdt(invoice.amountMicro - ONE_USDT))} USDT`;
  const message = await eventually(last, (each) => each?.state === 'claimed');
  expect(message?.parts).toMatchObject({ pay: '', help: '', rules: '', when: '' });
  expect(message?.parts.status).toContain(words);
  const page = await (await fetch(invoice.checkoutUrl)).text();
  expect(page).toContain(words);
  expect(page).not.toContain(invoice.address);
  expect(await looksUp(invoice, txId)).toBe('short');
  await untilJudged();
  const { externalId, status } = (await readInvoice(service, invoice.id)).body;
  expect(status).toBe('PENDING');
  const events = await eventually(
    () => claimEvents(txId),
    ({ length }) => length > 0,
  );
  expect(events).toMatchObject([
    { data: { claim: { invoice: { invoiceId: invoice.id, externalId, status }, otherClaims: 0 }, reason: {} } },
  ]);
  const told = await eventually(
    () => eventsAbout(txId),
    ({ length }) => length > 1,
  );
  // Webhooks of different events may overtake each other.
  expect(told.map(({ type }) => type).sort()).toEqual(['transfer.claimed', 'transfer.unmatched']);
  // A claimed transfer pays nothing; the exact amount still does.
  await payExactly(service, invoice.id);
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.id, 'PAID');
});

test('a decision opens the page of a claimed invoice again, unless it settles it', async () => {
  const deps = {
    db: service.db,
    now: () => unixMs(service.clock.now()),
    random: (size: number) => new Uint8Array(size).map(() => Math.random() * 256),
  };
  for (const resolution of ['kept', 'fulfilled-manually'] as const) {
    const invoice = await newInvoice(service);
    const txId = await send(invoice.address, invoice.amountMicro - ONE_USDT);
    await settle();
    await looksUp(invoice, txId);
    await untilJudged();
    expect(await claimedMicro(invoice)).not.toBeNull();
    const [row] = await runSql(service, `select id from transfers where tx_id = decode($1, 'hex')`, [txId]);
    const request = { transferIds: [String(row?.['id'])], resolution, note: '', invoice: invoice.id };
    await resolveTransfers.run(deps, commandActor('test'), request);
    const page = await findCheckoutInvoice(service.db, tokenOf(invoice));
    expect(page).toMatchObject({ claimedMicro: null, isSettled: resolution === 'fulfilled-manually' });
  }
});

async function newInvoiceAt(address: string, amount?: string): Promise<Invoice> {
  for (let tries = 0; tries < 50; tries += 1) {
    const invoice = await newInvoice(service, amount);
    if (invoice.address === address) return invoice;
  }
  throw new Error(`no invoice of 50 has the address ${address}`);
}

/** Transactions that don't come from the invoice's payer. */
const FOREIGN: readonly [what: string, make: (invoice: Invoice) => Promise<string>][] = [
  [
    'to another address',
    async (invoice) => {
      const to = service.project.addresses.find((address) => address !== invoice.address) ?? '';
      return send(to, invoice.amountMicro - ONE_USDT);
    },
  ],
  [
    'that paid another invoice',
    async () => {
      const other = await newInvoice(service, '31.00');
      return send(other.address, other.amountMicro);
    },
  ],
  [
    'that paid another invoice a second time',
    async () => {
      const other = await newInvoice(service, '32.00');
      await send(other.address, other.amountMicro);
      await settle();
      return send(other.address, other.amountMicro);
    },
  ],
  [
    'that is the payment of another invoice but for a fee',
    async ({ address }) => {
      const other = await newInvoiceAt(address, '777.00');
      return send(address, other.amountMicro - ONE_USDT);
    },
  ],
  ['of dust', (invoice) => send(invoice.address, 1n)],
];

test.each(FOREIGN)('a transfer %s is not claimed, whoever asks', async (_what, make) => {
  const invoice = await newInvoice(service);
  const txId = await make(invoice);
  await settle();
  await ask(invoice, txId);
  // No matter how the request was made.
  await requestClaim(service.db, tokenOf(invoice), txId);
  await settle();
  await untilJudged();
  expect(await claimedMicro(invoice)).toBeNull();
  expect(await claimEvents(txId)).toEqual([]);
});

test('a transfer from before the invoice is not claimed', async () => {
  const [address = ''] = service.project.addresses;
  const txId = await send(address, 24n * ONE_USDT);
  await settle();
  const invoice = await newInvoiceAt(address);
  expect(await looksUp(invoice, txId)).toBe('before_invoice');
  await requestClaim(service.db, tokenOf(invoice), txId);
  await untilJudged();
  expect(await claimedMicro(invoice)).toBeNull();
});

test('the payer of a paid invoice claims nothing', async () => {
  const invoice = await newInvoice(service);
  await payExactly(service, invoice.id);
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.id, 'PAID');
  const txId = await send(invoice.address, invoice.amountMicro - ONE_USDT);
  await settle();
  expect(await looksUp(invoice, txId)).toBe('short');
  expect(await runSql(service, 'select from claim_requests')).toEqual([]);
});

test('an invoice claims three transfers at most', async () => {
  const invoice = await newInvoice(service);
  const txIds: string[] = [];
  for (let n = 1n; n <= 4n; n += 1n) txIds.push(await send(invoice.address, invoice.amountMicro - n * 3n * ONE_USDT));
  await settle();
  for (const txId of txIds) await looksUp(invoice, txId);
  await untilJudged();
  const claims = await runSql(service, 'select transfer_id from transfer_claims where invoice_id = $1', [
    decodeId('inv', invoice.id),
  ]);
  expect(claims).toHaveLength(3);
});

test('two payers may claim the same transfer, the shop is told of both, and claimed transfers are listed first', async () => {
  const [address = ''] = service.project.addresses;
  const pair = [await newInvoiceAt(address, '44.00'), await newInvoiceAt(address, '44.00')];
  const claimed = await send(address, 44n * ONE_USDT);
  await settle();
  const newer = await send(address, 5n * ONE_USDT);
  await settle();
  for (const invoice of pair) {
    expect(await looksUp(invoice, claimed)).toBe('short');
    await untilJudged();
  }
  const events = await eventually(
    () => claimEvents(claimed),
    ({ length }) => length === 2,
  );
  const told = events.map(({ data: { claim } }) => [claim.otherClaims, claim.invoice.invoiceId]).sort();
  expect(told).toEqual(pair.map(({ id }, index) => [index, id]));
  const list = async (before?: string) => {
    const wanted = listTransfers.read({ projectId: service.project.projectId, limit: '1', before }, unixMs(0));
    return (await listTransfers.run(service, commandActor('test'), wanted)).view;
  };
  const seen: string[] = [];
  for (let page = await list(); ; page = await list(page.nextBefore)) {
    seen.push(...page.data.map(({ txId }) => txId));
    if (page.nextBefore === null) break;
  }
  expect(new Set(seen).size).toBe(seen.length);
  const open = await runSql(
    service,
    `select encode(tx_id, 'hex') as tx_id, exists (select from transfer_claims where transfer_id = t.id) as is_claimed
     from transfers t where kind <> 'matched' and not exists (select from transfer_resolutions where transfer_id = t.id)
     order by is_claimed desc, id desc`,
  );
  expect(seen).toEqual(open.map(({ tx_id }) => tx_id));
  expect(seen.indexOf(claimed)).toBeLessThan(seen.indexOf(newer));
  const { body } = await call(`${service.url}/v1/transfers?limit=100`, {
    headers: { 'x-api-key': service.project.apiKey },
  });
  const inApi = body.data.find(({ txId }: { txId: string }) => txId === claimed);
  expect(inApi.claimedBy.map(({ invoiceId }: { invoiceId: string }) => invoiceId)).toEqual(pair.map(({ id }) => id));
});

test('the database keeps claims, and takes none of a transfer that paid', async () => {
  for (const sql of [
    'delete from transfer_claims',
    'truncate transfer_claims',
    'update transfer_claims set claimed_at = now()',
  ])
    await expect(runSql(service, sql), sql).rejects.toThrow();
  const insert = `insert into transfer_claims (transfer_id, project_id, invoice_id, event_id, claimed_at)
    select t.id, t.project_id, t.invoice_id, (select id from events where type = 'transfer.unmatched' limit 1), now()
    from transfers t where t.kind = 'matched' limit 1`;
  await expect(runSql(service, insert)).rejects.toThrow('paid its invoice');
});
