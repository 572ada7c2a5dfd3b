import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { insertRequests } from '../../src/core/store/access/requests.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';
import { type Address, addressOf, at, createLedger, type Invoice, type Project, txIdOf } from './explain-ledger.ts';

type Ledger = Awaited<ReturnType<typeof createLedger>>;

const SENT = { status: 204, error: null };

/** Creates a shop with everything that a command can report, and another shop beside it. */
export async function openGoldenShop() {
  const ledger = await createLedger();
  const judgeRowsAgain = await letRowsStandAlone(ledger.owner);
  const shop = await ledger.addProject();
  const other = await ledger.addProject('Other shop');
  const key = await ledger.addKey(shop, 'web shop');
  const tail = await ledger.addAddress(shop, 0xa1);
  const exact = await ledger.addAddress(shop, 0xa2, { policy: 'exact', position: 2 });
  const retired = await ledger.addAddress(shop, 0xa3, { position: 3, retiredAt: at('11:00:00') });
  const theirs = await ledger.addAddress(other, 0xa4);
  await ledger.addAction(retired, 'address.added', 'bert', at('08:10:00'), { policy: 'tail' });
  await ledger.addAction(retired, 'address.retired', 'anna', at('11:00:00'), { note: 'wallet replaced' });
  const endpoints = {
    good: await ledger.addEndpoint(shop),
    bad: await ledger.addEndpoint(shop, 'https://other.example/hook'),
  };
  await ledger.setCursor([1900, at('11:58:50')], [1918, at('11:59:50')]);
  const addressed: Addressed = { shop, other, tail, exact, retired, theirs, key, endpoints };
  const paid = await addPaid(ledger, addressed);
  const expired = await addExpired(ledger, addressed);
  const open = await addOpen(ledger, addressed);
  const strays = await addStrays(ledger, addressed, paid.invoice);
  await addBooks(ledger, addressed);
  const requests = await addRequests(ledger, addressed);
  // A service refuses to start on a database with a changed schema.
  await judgeRowsAgain();
  return { ledger, ...addressed, paid, expired, open, strays, requests };
}

type Addressed = Record<'shop' | 'other', Project> &
  Record<'tail' | 'exact' | 'retired' | 'theirs', Address> & {
    key: string;
    endpoints: { good: string; bad: string };
  };

/** Adds payments that arrive in time, late, at a retired address, and in a second block after the first was orphaned. */
async function addPaid(ledger: Ledger, { tail, retired, key, endpoints }: Addressed) {
  const invoice = await ledger.addInvoice(tail, { externalId: 'paid', apiKeyId: key });
  const payment = { to: tail, amount: '25.000137', tx: 0x17, block: 1040, time: at('10:04:00') };
  const confirming = await ledger.addInvoiceEvent('CONFIRMING', invoice, {
    ...{ sequence: 1, createdAt: at('10:04:02'), payment },
  });
  const transfer = await ledger.addTransfer('matched', invoice, { ...payment, decidedAt: at('10:05:00') });
  const settled = { sequence: 2, createdAt: at('10:05:00'), payment, transferId: transfer.id };
  const event = await ledger.addInvoiceEvent('PAID', invoice, settled);
  await ledger.addDelivery(confirming, endpoints.good, {
    ...{ status: 'delivered', attempts: [{ at: at('10:04:02.100'), ...SENT }] },
  });
  await ledger.addDelivery(event, endpoints.good, { status: 'delivered', attempts: [{ at: at('10:05:01'), ...SENT }] });
  const failures = Array.from({ length: 3 }, (_, index) => ({
    at: at(`10:1${index}:00`),
    ...{ status: 503, error: 'http_503: the endpoint returned 503' },
  }));
  await ledger.addDelivery(event, endpoints.bad, { status: 'dead', attempts: failures });

  const late = await ledger.addInvoice(retired, { externalId: 'late', payable: '25.000144', status: 'EXPIRED' });
  await ledger.addInvoiceEvent('EXPIRED', late, { sequence: 1, createdAt: at('10:30:03') });
  const lately = { to: retired, amount: '25.000144', tx: 0x18, block: 1700, time: at('11:10:00') };
  await ledger.addTransfer('matched', late, { ...lately, decidedAt: at('11:11:00') });

  const orphaned = await ledger.addInvoice(tail, { externalId: 'orphaned', payable: '25.000151' });
  const orphan = { to: tail, amount: '25.000151', tx: 0x19, block: 1041, time: at('10:04:10') };
  const seen = { sequence: 1, createdAt: at('10:04:12'), payment: orphan };
  await ledger.addInvoiceEvent('CONFIRMING', orphaned, seen);
  await ledger.addInvoiceEvent('PENDING', orphaned, { sequence: 2, createdAt: at('10:04:20') });
  return { invoice, transfer, event, late, orphaned };
}

/** Adds an expired invoice that the shop was notified of on the third attempt, and one that it hasn't been notified of yet. */
async function addExpired(ledger: Ledger, { tail, endpoints }: Addressed) {
  const invoice = await ledger.addInvoice(tail, { externalId: 'expired', payable: '25.000168', status: 'EXPIRED' });
  const event = await ledger.addInvoiceEvent('EXPIRED', invoice, { sequence: 1, createdAt: at('10:30:03') });
  const attempts = [
    { at: at('10:30:04'), status: 500, error: 'http_500: the endpoint returned 500' },
    { at: at('10:30:10'), status: null, error: 'timeout: no response within 15 s' },
  ];
  await ledger.addDelivery(event, endpoints.good, {
    ...{ status: 'delivered', attempts: [...attempts, { at: at('10:31:00'), ...SENT }] },
  });
  await ledger.addDelivery(event, endpoints.bad, { status: 'pending', attempts, nextAttemptAt: at('12:30:00') });
  return { invoice, event };
}

async function addOpen(ledger: Ledger, { tail, exact, theirs, key }: Addressed) {
  const waiting = await ledger.addInvoice(tail, { externalId: 'waiting', payable: '25.000175' });
  const confirming = await ledger.addInvoice(tail, {
    ...{ externalId: 'confirming', payable: '25.000182', status: 'CONFIRMING', apiKeyId: key },
    ...{ createdAt: at('11:50:00'), expiresAt: at('12:20:00') },
  });
  const payment = { to: tail, amount: '25.000182', tx: 0x25, block: 1918, time: at('11:59:50') };
  await ledger.addInvoiceEvent('CONFIRMING', confirming, { sequence: 1, createdAt: at('11:59:52'), payment });
  await ledger.sql(
    `insert into sightings (network, block_number, tx_id, log_index, project_id, invoice_id, from_address, amount_micro)
     values ('devnet', 1918, decode($1, 'hex'), 0, $2, $3, $4, 25000182)`,
    [txIdOf(0x25), tail.project.id, confirming.id, addressOf(0xbb)],
  );
  await ledger.addInvoice(exact, { externalId: 'exact', requested: '40', payable: '40' });
  await ledger.addInvoice(tail, { externalId: 'ambiguous', payable: '25.000199' });
  await ledger.addInvoice(theirs, { externalId: 'ambiguous', payable: '25.000144' });
  await ledger.addInvoice(tail, { externalId: 'odd "₮", \u202eeno\n=1+1', payable: '31.5', requested: '31.5' });
  return { waiting, confirming };
}

/** Adds transfers that pay nothing: too little for an invoice, unrelated, a duplicate, refunded, and denied by the chain. */
async function addStrays(ledger: Ledger, { tail, exact, shop, endpoints }: Addressed, paid: Invoice) {
  const short = await ledger.addTransfer('unmatched', null, {
    ...{ to: tail, amount: '24.000175', tx: 0x20, block: 1050, time: at('10:06:00'), decidedAt: at('10:07:00') },
  });
  const event = await ledger.addTransferEvent(short, at('10:07:00'));
  await ledger.addDelivery(event, endpoints.good, { status: 'delivered', attempts: [{ at: at('10:07:01'), ...SENT }] });
  const foreign = await ledger.addTransfer('unmatched', null, {
    ...{ to: exact, amount: '7', tx: 0x33, block: 1060, time: at('10:08:00'), decidedAt: at('10:09:00'), from: 0xdd },
  });
  const duplicate = await ledger.addTransfer('duplicate', paid, {
    ...{ to: tail, amount: '25.000137', tx: 0x21, block: 1100, time: at('10:10:00'), decidedAt: at('10:11:00') },
  });
  await ledger.addTransferEvent(duplicate, at('10:11:00'));
  const refunded = await ledger.addTransfer('duplicate', paid, {
    ...{ to: tail, amount: '25.000137', tx: 0x22, block: 1110, time: at('10:12:00'), decidedAt: at('10:13:00') },
  });
  await ledger.addResolution(refunded, 'refunded', 'anna', at('11:00:00'), 'sent back, ticket "4711"');
  const denied = await ledger.addTransfer('unmatched', null, {
    ...{ to: tail, amount: '9', tx: 0x34, block: 1120, time: at('10:14:00'), decidedAt: at('10:15:00') },
  });
  await ledger.sql(
    `insert into transfer_annulments (transfer_id, project_id, denied_by, annulled_at, annulled_by, reason)
     values ($1, $2, $3, $4, 'anna', 'the node lied')`,
    [denied.id, shop.id, Buffer.alloc(32, 9), new Date(at('11:30:00'))],
  );
  return { short, foreign, duplicate, refunded, denied, event };
}

/** Adds outgoing transfers and balance checks. */
async function addBooks(ledger: Ledger, { tail, retired }: Addressed) {
  for (const [logIndex, { id, project }] of [tail, retired].entries()) {
    await ledger.sql(
      `insert into outgoing_transfers (network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time,
         to_address, amount_micro, verified, nodes, recorded_at)
       values ('devnet', $1, $2, $3, $4, 1500, $1, $5, $6, 5000000, 'agreed:2', '{http://node-1,http://node-2}', $5)`,
      [Buffer.alloc(32, 0x55), logIndex, project.id, id, new Date(at('11:20:00')), addressOf(0xcc)],
    );
  }
  await ledger.sql(
    `insert into balance_checks (address_id, project_id, network, opening_micro, opening_block, good_block, checked_block,
       balance_micro, expected_micro, node, checked_at, due_at)
     values ($1, $2, 'devnet', 0, 900, 1600, 1600, 7000000, 7000000, 'http://node-1', $3, $3)`,
    [tail.id, tail.project.id, new Date(at('11:30:00'))],
  );
}

/** Adds the shop's API requests, and one without a valid key. */
async function addRequests({ env }: Ledger, { shop, key: keyId }: Addressed) {
  const idAt = (time: string, n: number) => encodeId('req', uuidV7(at(time), new Uint8Array(10), n));
  const [made, refused, read, nobodys] = [
    idAt('10:00:00.017', 1),
    idAt('10:00:00.420', 2),
    idAt('10:04:05', 3),
    idAt('10:05:00', 4),
  ];
  const create = { method: 'POST', route: '/v1/invoices' };
  const key = { id: keyId, projectId: shop.id };
  const get = { method: 'GET', route: '/v1/invoices/:invoiceId' };
  const failed = { status: 401, code: 'UNAUTHENTICATED', took_ms: 0 };
  const db = openDatabase({
    connection: env.DATABASE_URL,
    poolSize: 1,
    applicationName: 'test',
    onError: () => undefined,
  });
  await insertRequests(db, [
    {
      key,
      requests: [
        { ...create, id: made, status: 201, external_id: 'paid', took_ms: 3 },
        {
          ...create,
          id: refused,
          status: 409,
          code: 'IDEMPOTENCY_CONFLICT',
          external_id: 'odd "₮", \u202eeno\n=1+1',
          took_ms: 12,
          errors: [{ field: 'externalId', code: 'USED_BEFORE' }],
          body: '{amount: string, externalId: string}',
        },
      ],
    },
    { key, requests: [{ ...get, id: read, status: 200, external_id: 'not there', took_ms: 1 }] },
    { key: null, requests: [{ ...get, ...failed, id: nobodys }] },
  ]);
  await db.close();
  return { made, refused, read, nobodys };
}
