import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { insertWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import { type Books, startBooks } from '../support/books.ts';
import { createChainTruth } from './chain-truth.ts';
import { CHECKERS, findUndelivered, findViolationsAtRest, type World } from './invariants.ts';

let books: Books;
let client: pg.Client;
let paidInvoice: string;
let address: string;

beforeAll(async () => {
  books = await startBooks();
  const { db, project } = books;
  await insertWebhookEndpoint(db, { id: randomUUID(), projectId: project.id, url: 'http://127.0.0.1:9/' });
  client = new pg.Client(books.database.owner);
  await client.connect();
  const [paid] = [await books.invoice(25_000_000n), await books.invoice(30_000_000n)];
  paidInvoice = paid.id;
  const { rows } = await client.query(
    'select a.address, i.payable_micro from invoices i join addresses a on a.id = i.address_id where i.id = $1',
    [paid.id],
  );
  address = rows[0].address;
  await books.send(address, BigInt(rows[0].payable_micro));
  await books.record();
  await client.query("update deliveries set status = 'delivered'");
});
afterAll(async () => {
  await client.end();
  await books.stop();
});

/** What the outside world would know if all were well. */
async function soundWorld(): Promise<World> {
  const { rows } = await client.query<{ body: string }>('select body from events');
  const bodies = new Map(rows.map(({ body }) => [(JSON.parse(body) as { id: string }).id, body]));
  return {
    client,
    truth: createChainTruth(books.devnet, books.project.addresses),
    acknowledged: [],
    receiver: { bodies, shipped: new Map([[encodeId('inv', paidInvoice), 1]]), complaints: [] },
    paid: new Set(),
    compared: new Set(),
  };
}

test('nothing is found where all is well', async () => {
  expect(await findViolationsAtRest(await soundWorld())).toEqual([]);
});

const FOREIGN = '01890000-0000-7000-8000-000000000000';
const LOST = {
  apiKey: '',
  idempotencyKey: 'key',
  body: '',
  answer: { invoiceId: encodeId('inv', FOREIGN), externalId: 'order', checkoutUrl: 'http://x/c/y', expiresAt: '' },
};

/** Changes to that knowledge that break a promise. */
const PLANTED_OUTSIDE: [keyof typeof CHECKERS, (world: World) => World][] = [
  ['acknowledgedIsThere', (world) => ({ ...world, acknowledged: [LOST] })],
  ['paidIsNeverLeft', (world) => ({ ...world, paid: new Set([FOREIGN]) })],
  ['booksEqualChain', ({ truth, ...world }) => ({ ...world, truth: { ...truth, transfersUpTo: () => ['1 aa 0 5'] } })],
  ['booksEqualChain', ({ truth, ...world }) => ({ ...world, truth: { ...truth, idOf: () => 'of another branch' } })],
  [
    'receiverActsOnce',
    (world) => ({ ...world, receiver: { ...world.receiver, shipped: new Map([[encodeId('inv', paidInvoice), 2]]) } }),
  ],
  [
    'receiverActsOnce',
    (world) => ({ ...world, receiver: { ...world.receiver, shipped: new Map([[encodeId('inv', FOREIGN), 1]]) } }),
  ],
  [
    'receiverActsOnce',
    (world) => ({ ...world, receiver: { ...world.receiver, bodies: new Map([[encodeId('evt', FOREIGN), '{}']]) } }),
  ],
];

test.each(PLANTED_OUTSIDE)('%s finds what the outside knows better', async (name, plant) => {
  expect(await CHECKERS[name](plant(await soundWorld()))).not.toEqual([]);
});

/** Changes that constraints and triggers would refuse, written around them. */
const PLANTED_INSIDE: [keyof typeof CHECKERS, string][] = [
  ['acknowledgedIsThere', "update invoices set checkout_token = 'another-token-123' where status = 'PAID'"],
  ['booksEqualChain', 'delete from transfers'],
  ['booksEqualChain', "update transfers set tx_id = decode(repeat('ab', 32), 'hex')"],
  ['paidByOneExactTransfer', "update transfers set kind = 'unmatched', invoice_id = null, reserved_micro = null"],
  ['exactTransfersPay', "update transfers set kind = 'unmatched', invoice_id = null, reserved_micro = null"],
  ['sequencesHaveNoGap', "update invoices set event_count = event_count + 1 where status = 'PAID'"],
  ['sequencesHaveNoGap', 'update event_streams set last_position = last_position + 1'],
  ['oneChangeIsOneEvent', "update events set type = 'invoice.expired'"],
  ['oneChangeIsOneEvent', 'delete from deliveries'],
  ['sightingsFitStatuses', "update invoices set status = 'CONFIRMING' where status = 'PENDING'"],
];

test.each(PLANTED_INSIDE)('%s finds what the database should never hold: %s', async (name, sql) => {
  const world = await soundWorld();
  const { rows } = await client.query('select * from invoices where id = $1', [paidInvoice]);
  const [{ external_id: externalId, idempotency_key: idempotencyKey, checkout_token: token }] = rows;
  const invoiceId = encodeId('inv', paidInvoice);
  const answer = { invoiceId, externalId, checkoutUrl: `http://x/c/${token}`, expiresAt: '' };
  const acknowledged = [{ ...LOST, idempotencyKey, answer }];
  expect(await CHECKERS[name]({ ...world, acknowledged })).toEqual([]);
  await client.query('begin');
  try {
    await client.query("set local session_replication_role = 'replica'");
    await client.query(sql);
    expect(await CHECKERS[name]({ ...world, compared: new Set(), acknowledged })).not.toEqual([]);
  } finally {
    await client.query('rollback');
  }
});

test('an event that did not arrive, and a paid invoice that was not shipped, are found at rest', async () => {
  const world = { ...(await soundWorld()), paid: new Set([paidInvoice]) };
  const { receiver } = world;
  expect(await findUndelivered(world)).toEqual([]);
  expect(await findUndelivered({ ...world, receiver: { ...receiver, bodies: new Map() } })).not.toEqual([]);
  expect(await findUndelivered({ ...world, receiver: { ...receiver, shipped: new Map() } })).not.toEqual([]);
});
