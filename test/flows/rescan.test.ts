import type { AccountHex } from '@quittance/tron/address';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount } from '../../src/core/domain/money.ts';
import { detectBlocks } from '../../src/core/payments/detect-blocks.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { findProducerSets, insertProducerSet } from '../../src/core/store/chain/producer-sets.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { rescanRange, verifyRange } from '../../src/faces/operator/subjects/chain-ranges.ts';
import { type Books, startBooks } from '../support/books.ts';
import { withClient } from '../support/postgres-template.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';

let books: Books;
let client: pg.Client;
beforeAll(async () => {
  books = await startBooks();
  client = new pg.Client(books.database.ownerString);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await books.stop();
});

const everything = () => true;
const onProgress = () => undefined;
const ACTOR = commandActor('anna');
const verified = async (range: { from: number; to: number }, { rescanning }: Pick<Books, 'rescanning'> = books) =>
  (await verifyRange({ ...rescanning(), onProgress }, range)).view;

/** Creates an invoice with its address and amount. */
async function openInvoice() {
  const { id } = await books.invoice(25_000_000n);
  const invoice = await findInvoicePayment(books.db, books.project.id, id);
  if (invoice === null) throw new Error('no invoice');
  const { address, payableMicro } = invoice;
  const status = async () => (await findInvoicePayment(books.db, books.project.id, id))?.status;
  return { id, address, payableMicro, status };
}

async function rows(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  return (await client.query(sql, values)).rows;
}

test('a recorded transfer names the producer of its block, how it was verified, and who showed it', async () => {
  const invoice = await openInvoice();
  await books.send(invoice.address, invoice.payableMicro);
  await books.record();
  expect(await invoice.status()).toBe('PAID');
  const [row] = await rows(
    `select encode(producer, 'hex') as producer, verified, nodes, block_number from transfers where invoice_id = $1`,
    [invoice.id],
  );
  const { producer } = await books.read(Number(row?.['block_number']));
  expect(row).toMatchObject({ producer, verified: 'proven', nodes: [books.node.origin] });
});

test('a transfer between two of our addresses stands on both sides, each once, however often it is recorded', async () => {
  const sender = await books.adoptPayer();
  const [to = ''] = books.project.addresses;
  await books.send(to, 1_000_003n);
  const { from, to: last } = await books.record();
  for (let number = from; number <= last; number += 1) {
    const again = await books.rescanned([await books.read(number)]);
    expect(again).toEqual({ matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 });
  }
  const [left] = await rows(
    `select count(*)::int as count, min(a.address) as address, min(o.to_address) as to, min(o.verified) as verified
     from outgoing_transfers o join addresses a on a.id = o.address_id where amount_micro = 1000003`,
  );
  expect(left).toEqual({ count: 1, address: sender, to, verified: 'proven' });
  expect(await rows('select kind from transfers where amount_micro = 1000003')).toEqual([{ kind: 'unmatched' }]);
});

test('a missed payment is found by a rescan: the invoice is PAID, told once, and the cursor stays', async () => {
  const invoice = await openInvoice();
  await books.send(invoice.address, invoice.payableMicro);
  const range = await books.record(everything);
  expect(await invoice.status()).toBe('PENDING');
  const before = await findCursor(books.db, 'devnet');

  const found = await verified(range);
  expect(found.differences).toEqual([
    expect.objectContaining({
      kind: 'missing',
      side: 'in',
      address: invoice.address,
      amount: formatAmount(invoice.payableMicro),
    }),
    expect.objectContaining({ kind: 'missing', side: 'out' }),
  ]);

  const deps = books.rescanning();
  const first = await rescanRange({ ...deps, onProgress }, ACTOR, range);
  expect(first.added).toEqual({ matched: 1, duplicate: 0, unmatched: 0, outgoing: 1 });
  expect(first.blockCount).toBe(range.to - range.from + 1);
  expect(first.attestedCount).toBe(first.blockCount);
  expect(await invoice.status()).toBe('PAID');
  const second = await rescanRange({ ...deps, onProgress }, ACTOR, range);
  expect(second.added).toEqual({ matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 });
  expect(await rows('select type from events where invoice_id = $1', [invoice.id])).toEqual([{ type: 'invoice.paid' }]);
  expect((await verified(range)).differences).toEqual([]);
  expect(await findCursor(books.db, 'devnet')).toEqual(before);
});

test('rescans of the same blocks at the same time record what was missed once', async () => {
  const invoice = await openInvoice();
  await books.send(invoice.address, invoice.payableMicro);
  const range = await books.record(everything);
  const all = await Promise.all([1, 2, 3].map(() => rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range)));
  expect(all.map(({ added }) => added.matched).sort()).toEqual([0, 0, 1]);
  expect(await rows('select type from events where invoice_id = $1', [invoice.id])).toEqual([{ type: 'invoice.paid' }]);
});

test('two missed payments of one invoice are decided in chain order: the first pays it, the second is a duplicate', async () => {
  const invoice = await openInvoice();
  await books.send(invoice.address, invoice.payableMicro);
  books.devnet.mine(1);
  await books.send(invoice.address, invoice.payableMicro);
  const range = await books.record(everything);
  const { added } = await rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range);
  expect(added).toMatchObject({ matched: 1, duplicate: 1 });
  const kinds = await rows('select kind from transfers where invoice_id = $1 order by block_number, log_index', [
    invoice.id,
  ]);
  expect(kinds).toEqual([{ kind: 'matched' }, { kind: 'duplicate' }]);
});

/** Returns the blocks as if the chain's clock had been an hour earlier then. */
async function anHourEarlier(range: { from: number; to: number }) {
  const blocks = [];
  for (let number = range.from; number <= range.to; number += 1) {
    const block = await books.read(number);
    blocks.push({ ...block, time: (block.time - 3_600_000) as typeof block.time });
  }
  return blocks;
}

test('a rescan of blocks from before an address was added records nothing of it', async () => {
  const [to = ''] = books.project.addresses;
  await books.send(to, 3_000_003n);
  const range = await books.record(everything);
  const added = await books.rescanned(await anHourEarlier(range));
  expect(added).toEqual({ matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 });
});

test('a rescan of blocks from before an invoice was created does not pay it', async () => {
  const invoice = await openInvoice();
  // Makes the address older than this test, which no code of the program can do.
  await client.query(
    `alter table addresses disable trigger addresses_keep_what_they_are;
     update addresses set created_at = now() - interval '3 hours';
     alter table addresses enable trigger addresses_keep_what_they_are`,
  );
  await books.send(invoice.address, invoice.payableMicro);
  const range = await books.record(everything);
  const added = await books.rescanned(await anHourEarlier(range));
  expect(added).toEqual({ matched: 0, duplicate: 0, unmatched: 1, outgoing: 1 });
  expect(await invoice.status()).toBe('PENDING');
});

test('an invoice that is CONFIRMING by a head block is PAID by the payment that a rescan finds, and stays so', async () => {
  const invoice = await openInvoice();
  await books.send(invoice.address, invoice.payableMicro);
  const range = await books.record(everything);
  await books.send(invoice.address, invoice.payableMicro);
  const [mined] = books.devnet.mine(1);
  const head = (await findCursor(books.db, 'devnet'))?.head.number ?? 0;
  const blocks = [];
  for (let number = head + 1; number <= (mined?.number ?? 0); number += 1) blocks.push(await books.read(number));
  await detectBlocks(books.watching, head, blocks, books.now());
  expect(await invoice.status()).toBe('CONFIRMING');
  await rescanRange({ ...books.rescanning(), onProgress }, ACTOR, range);
  expect(await invoice.status()).toBe('PAID');
  await books.record();
  const types = await rows('select type from events where invoice_id = $1 order by sequence', [invoice.id]);
  expect(types.map(({ type }) => type)).toEqual(['invoice.confirming', 'invoice.paid']);
  const kinds = await rows('select kind from transfers where invoice_id = $1 order by block_number', [invoice.id]);
  expect(kinds.map(({ kind }) => kind)).toEqual(['matched', 'duplicate']);
});

test('a block above the cursor is refused, because it is for the watcher to record', async () => {
  const cursor = await findCursor(books.db, 'devnet');
  const above = await books.read((cursor?.solid.number ?? 0) + 1);
  await expect(books.rescanned([above])).rejects.toMatchObject({ code: 'CHAIN_CONTRADICTION' });
  const range = { from: above.number, to: above.number };
  await expect(verified(range)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

test('what the ledger has and the chain has not is reported, and never repaired by a rescan', async () => {
  const [to = ''] = books.project.addresses;
  const range = await books.record();
  await client.query(
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, verified, nodes)
     select gen_random_uuid(), project_id, network, id, decode(repeat('ab', 32), 'hex'), 0, $1, decode(repeat('cd', 32), 'hex'),
       now(), address, 7, 'unmatched', 'single-node', '{}' from addresses where address = $2`,
    [range.to, to],
  );
  const { differences } = await verified(range);
  expect(differences).toEqual([expect.objectContaining({ kind: 'not-on-chain', amount: '0.000007', address: to })]);
  const deps = books.rescanning();
  await expect(rescanRange({ ...deps, onProgress }, ACTOR, range)).rejects.toMatchObject({
    code: 'CHAIN_CONTRADICTION',
  });
});

test.each([
  ['an omitted transaction', 'omitted-transaction', 'BLOCK_UNVERIFIABLE'],
  ['a block without a transaction, sealed anew', 'omitted-transaction-resealed', 'CHAIN_CONTRADICTION'],
  ['a hidden log of a direct transfer', 'hidden-direct-log', 'BLOCK_UNVERIFIABLE'],
] as const)('a node that shows %s adds nothing to the ledger', async (_title, kind, code) => {
  const [to = ''] = books.project.addresses;
  await books.send(to, 5_000_003n);
  const range = await books.record(everything);
  books.devnet.setFault({ kind, fromBlock: range.from });
  try {
    const deps = books.rescanning();
    await expect(rescanRange({ ...deps, onProgress }, ACTOR, range)).rejects.toMatchObject({ code });
  } finally {
    books.devnet.setFault();
  }
  const recorded = await rows('select 1 from transfers where block_number between $1 and $2', [range.from, range.to]);
  expect(recorded).toEqual([]);
});

test('a payment in a block that the attacker made and signed is not recorded by a rescan', async () => {
  const invoice = await openInvoice();
  const range = await books.record(everything);
  const forged = { to: invoice.address, amountMicro: invoice.payableMicro, fromBlock: range.from };
  books.devnet.setFault({ kind: 'forged-block', ...forged });
  try {
    const deps = books.rescanning();
    await expect(rescanRange({ ...deps, onProgress }, ACTOR, range)).rejects.toMatchObject({
      code: 'CHAIN_CONTRADICTION',
    });
  } finally {
    books.devnet.setFault();
  }
  expect(await invoice.status()).toBe('PENDING');
});

test('blocks whose signatures no known producer made stand only because the ledger is built on them, and it is said', async () => {
  const range = await books.record();
  books.devnet.setFault({ kind: 'forged-signature' });
  try {
    const read = await verified(range);
    expect(read).toMatchObject({ attestedCount: 0, blockCount: range.to - range.from + 1, differences: [] });
  } finally {
    books.devnet.setFault();
  }
});

test('a payment inside a contract needs as many operators as agree, and says that they did', async () => {
  const invoice = await openInvoice();
  const { devnet, payer } = books;
  const transfers = [{ to: invoice.address, amountMicro: invoice.payableMicro }];
  await payer.multisend({ multisendContract: devnet.multisendContract, token: devnet.usdtContract, transfers });
  const range = await books.record(everything);
  const other = await devnet.addNode();
  other.setFault({ kind: 'hidden-log' });
  const deps = () => books.rescanning([devnet.url, other.url], 2);
  await expect(rescanRange({ ...deps(), onProgress }, ACTOR, range)).rejects.toMatchObject({ code: 'NODES_DISAGREE' });
  expect(await invoice.status()).toBe('PENDING');
  other.setFault();
  expect((await rescanRange({ ...deps(), onProgress }, ACTOR, range)).added).toMatchObject({ matched: 1 });
  const [row] = await rows('select verified, nodes from transfers where invoice_id = $1', [invoice.id]);
  expect(row).toEqual({ verified: 'agreed:2', nodes: [devnet.url, other.url] });
});

test('beside a node with blocks of its own, another node is asked, and what is true is recorded', async () => {
  const [paid, unpaid] = [await openInvoice(), await openInvoice()];
  await books.send(paid.address, paid.payableMicro);
  const range = await books.record(everything);
  const honest = await books.devnet.addNode();
  const forged = { to: unpaid.address, amountMicro: unpaid.payableMicro, fromBlock: range.from };
  books.devnet.setFault({ kind: 'forged-block', ...forged });
  try {
    const { added } = await rescanRange(
      { ...books.rescanning([books.devnet.url, honest.url]), onProgress },
      ACTOR,
      range,
    );
    expect(added).toMatchObject({ matched: 1 });
  } finally {
    books.devnet.setFault();
  }
  expect([await paid.status(), await unpaid.status()]).toEqual(['PAID', 'PENDING']);
});

test('members of two sets of producers are not added up: blocks on which neither set built enough are not taken', async () => {
  const own = await startBooks();
  try {
    const { from, to } = await own.record();
    const [first] = await findProducerSets(own.db, 'devnet', 1);
    if (first === undefined) throw new Error('the devnet names no producers');
    const stranger = first.producers.map(({ account, signer }) => ({ account: backwards(account), signer }));
    // Each of the five producers made every fifth block. Three belong to one set and two to the other; four decide.
    const { time } = await own.read(from);
    for (const members of [first.producers.slice(0, 3), first.producers.slice(3)]) {
      const producers = [...members, ...stranger.slice(members.length)];
      await insertProducerSet(own.db, 'devnet', { ...first, reason: 'vote', chainTime: time, producers });
    }
    // Far enough ahead that the ledger's own block doesn't confirm those blocks.
    own.devnet.mine(600);
    own.devnet.mineUntilSolid();
    const ledger = await own.read(own.devnet.solid().number);
    await letRowsStandAlone(own.database.owner);
    const set = 'update chain_cursors set solid_number = $1, solid_id = $2, solid_time = $3';
    await withClient(own.database.owner, (client) =>
      client.query(set, [ledger.number, Buffer.from(ledger.id, 'hex'), new Date(ledger.time)]),
    );
    const read = verified({ from, to }, own);
    await expect(read).rejects.toThrow(/too few known producers confirmed block \d+ within 501 blocks/);
  } finally {
    await own.stop();
  }
});

const backwards = (account: AccountHex) => [...account].reverse().join('') as AccountHex;
