import { createHash, randomBytes } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { conflict } from '../../../core/domain/errors.ts';
import {
  describeDecision,
  describePayment,
  describeTransfer,
  type EventType,
  eventBody,
  INVOICE_EVENTS,
  projectInvoice,
} from '../../../core/domain/event.ts';
import { decodeId, formatCheckoutToken, uuidV7 } from '../../../core/domain/ids.ts';
import type { InvoiceStatus } from '../../../core/domain/invoice.ts';
import { MISTAKES } from '../../../core/domain/mismatch/mistakes.ts';
import { type MicroUsdt, microUsdt } from '../../../core/domain/money.ts';
import { isLocalNetwork } from '../../../core/domain/network.ts';
import { codeWords, wordRange } from '../../../core/domain/policy.ts';
import type { ResolutionKind } from '../../../core/domain/resolution.ts';
import { MAX_ATTEMPTS } from '../../../core/domain/retry.ts';
import { DAY_MS, MINUTE_MS, toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { findCursor } from '../../../core/store/chain/cursor.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, commandOf } from '../../../core/store/db/rows-of.ts';
import { type SealedTable, type Sealer, snakeCase } from '../../../core/store/db/seal.ts';
import {
  SEALED_ADDRESS,
  SEALED_EVENT,
  SEALED_INVOICE,
  SEALED_OUTGOING,
  SEALED_PAID,
  SEALED_RESOLUTION,
  SEALED_STATUS,
  SEALED_TRANSFER,
} from '../../../core/store/db/sealed-tables.ts';
import { count } from '../../../core/store/db/statement.ts';
import { findProjects } from '../../../core/store/ledger/projects.ts';
import type { Actor } from '../../../faces/operator/actor.ts';
import { createProject } from '../../../faces/operator/subjects/projects.ts';
import { addEndpoint } from '../../../faces/operator/subjects/webhooks.ts';

/** More invoices would take an hour. */
export const MOST_FILLED = 1_000_000;
/** The orders in one transaction: about ten thousand rows, which take a second or two. */
const BATCH = 1000;
const PRICES = [
  3, 4.5, 7.9, 9.99, 12, 14.5, 19, 19.9, 24, 25, 29.9, 35, 39, 45, 49.9, 59, 69, 79.5, 89, 99, 129, 149, 199, 249,
];
const MAX_SURCHARGE_MICRO = 10_000n;
const MIN_ADDRESSES = 3;
/** A name that no DNS server resolves (RFC 6761), so that pending deliveries fail as with a receiver that no longer exists. */
const NOWHERE = 'https://shop.invalid/hook';

type Deps = Parameters<typeof addEndpoint.run>[0] & { db: Database; onProgress(filled: number): void };
type Filled = { projectId: string; endpointId: string; invoices: number; addresses: number; transfers: number };

/**
 * Fills a sandbox's ledger with a new project whose invoices were created over the past few days and ended in every possible way. Their
 * transfers aren't on the chain, but refer to blocks that are already recorded. The same `seed` gives the same data.
 */
export async function fillSandbox(
  deps: Deps,
  actor: Actor,
  { invoices, days, seed }: { invoices: number; days: number; seed: number },
): Promise<Filled> {
  const { db, now } = deps;
  await refuseRealLedger(db);
  const random = seededRandom(seed);
  const end = now();
  const project = await createProject.run({ ...deps, networks: ['devnet'] }, actor, {
    ...{ name: `Filled shop with ${invoices} invoices`, network: 'devnet', expected: null },
    maxSurchargeMicro: MAX_SURCHARGE_MICRO,
    invoiceLifetimeMs: LIFETIME_MS,
    maxUnpaid: null,
    maxUnpaidPerMinute: null,
  });
  const endpoint = await addEndpoint.run(deps, actor, {
    projectId: project.projectId,
    url: NOWHERE,
    description: 'a receiver that no longer exists',
    eventTypes: null,
    secret: null,
  });
  const ids = {
    projectId: decodeId('prj', project.projectId) ?? '',
    endpointId: decodeId('whe', endpoint.endpointId) ?? '',
  };
  // The solid block is read before the addresses are added, so that no generated transfer is in a later block than an opening balance.
  const solid = (await findCursor(db, 'devnet'))?.solid.number ?? 0;
  const addresses = await addAddresses(db, ids.projectId, invoices, end);
  const draw = payableDrawer(addresses, random);
  let transfers = 0;
  for (let first = 0; first < invoices; first += BATCH) {
    const rows = noRows();
    for (let n = first; n < Math.min(first + BATCH, invoices); n += 1) {
      const age = days * DAY_MS * (1 - (n + random()) / invoices);
      const order: FilledOrder = {
        ...{ ...ids, n, ...draw(n), createdAt: unixMs(Math.round(end - age)), now: end },
        // The block number increases with `n`, and is never above the recorded block.
        blockNumber: Math.floor((solid * n) / invoices),
      };
      writeOrder(rows, order, tellStory(order.payableMicro, random), random);
    }
    transfers += rows.transfers.length;
    sweepAddresses(rows, ids.projectId);
    await db.transaction(async (tx) => {
      const events = rows.events.sort((a, b) => String(a['created_at']).localeCompare(String(b['created_at'])));
      const last = await takePositions(tx, ids.projectId, events.length);
      for (const [index, event] of events.entries()) event['position'] = last - events.length + 1 + index;
      await insertRows(tx, rows);
    });
    deps.onProgress(Math.min(first + BATCH, invoices));
  }
  return {
    projectId: project.projectId,
    endpointId: endpoint.endpointId,
    invoices,
    addresses: addresses.length,
    transfers,
  };
}

/** Even without a configured node, the database may belong to a real ledger by mistake. */
async function refuseRealLedger(db: Database): Promise<void> {
  const real = (await findProjects(db, null, null)).find(({ network }) => !isLocalNetwork(network));
  if (real === undefined) return;
  throw conflict`this database has a ${real.network} project: only a sandbox database can be filled`;
}

type FilledAddress = { id: string; address: string };

/** Adds as many addresses as the prices need. No one has their keys. */
async function addAddresses(db: Database, projectId: string, invoices: number, at: UnixMs): Promise<FilledAddress[]> {
  const words = codeWords(wordRange(priceOf(0), MAX_SURCHARGE_MICRO)).length;
  const needed = Math.max(MIN_ADDRESSES, Math.ceil(invoices / PRICES.length / (words * 0.8)));
  const rows = noRows();
  const addresses = Array.from({ length: needed }, (_, index): FilledAddress => {
    const account = randomBytes(20).toString('hex') as AccountHex;
    const [id, address] = [uuidV7(at, randomBytes(10)), accountToAddress(account)];
    rows.addresses.push({
      ...{ id, project_id: projectId, network: 'devnet', account: `\\x${account}`, address, policy: 'tail' },
      ...{ position: index + 1, created_at: new Date(at).toISOString() },
    });
    return { id, address };
  });
  await insertRows(db, rows);
  return addresses;
}

function priceOf(n: number): MicroUsdt {
  return microUsdt(BigInt(Math.round((PRICES[n % PRICES.length] ?? 1) * 1_000_000)));
}

/** Draws an order's price, payable amount and address, never the same combination twice. */
function payableDrawer(addresses: readonly FilledAddress[], random: () => number) {
  const words = PRICES.map((_, index) => shuffled(codeWords(wordRange(priceOf(index), MAX_SURCHARGE_MICRO)), random));
  return (n: number) => {
    const turn = Math.floor(n / PRICES.length);
    const address = addresses[turn % addresses.length];
    const payableMicro = words[n % PRICES.length]?.[Math.floor(turn / addresses.length)];
    if (address === undefined || payableMicro === undefined) throw new RangeError(`no amount is left for order ${n}`);
    return { address, requestedMicro: priceOf(n), payableMicro, token: formatCheckoutToken(randomBytes(16)) };
  };
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** Yields reproducible numbers from 0 to 1 for a seed: the SHA-256 of the seed and a counter. */
function seededRandom(seed: number): () => number {
  let block = Buffer.alloc(0);
  let [count, at] = [0, 0];
  return () => {
    if (at + 4 > block.length) {
      block = createHash('sha256').update(`${seed} ${count++}`).digest();
      at = 0;
    }
    at += 4;
    return block.readUInt32BE(at - 4) / 2 ** 32;
  };
}

/** An order to generate. Ids are UUIDs; `n` counts the orders from 0. */
type FilledOrder = {
  projectId: string;
  endpointId: string;
  n: number;
  address: { id: string; address: string };
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  token: string;
  createdAt: UnixMs;
  blockNumber: number;
  now: UnixMs;
};

/** The time from a transfer's block to its record: 19 blocks of 3 s. */
const SOLID_AFTER_MS = 57_000;
const PUBLIC_URL = 'https://pay.example';
const NETWORK = 'devnet';
const HEARD_AFTER_MS = 400;

const newId = (time: UnixMs) => uuidV7(time, randomBytes(10));
const bytes = (length: number) => `\\x${randomBytes(length).toString('hex')}`;
const after = (time: UnixMs, ms: number) => unixMs(time + ms);

/** Adds the rows for an order and everything that happened to it. Events in the future are left out. */
function writeOrder(rows: FilledRows, order: FilledOrder, story: Story, random: () => number): void {
  const { projectId, n, address, createdAt, now } = order;
  const expiresAt = after(createdAt, LIFETIME_MS);
  const id = newId(createdAt);
  const happened = story.transfers.filter(({ afterMs }) => createdAt + afterMs + SOLID_AFTER_MS < now);
  const tell = eventWriter(rows, { ...order, id, expiresAt }, random);
  const paid = happened.find(({ kind }) => kind === 'matched');
  if (expiresAt < now && (paid === undefined || paid.afterMs > LIFETIME_MS)) tell.invoice('EXPIRED', expiresAt, null);
  let paidTransferId: string | null = null;
  for (const { kind, amountMicro, afterMs } of happened) {
    const transfer = writeTransfer(rows, { ...order, id }, { kind, amountMicro, at: after(createdAt, afterMs) });
    const recordedAt = after(transfer.blockTime, SOLID_AFTER_MS);
    if (kind === 'matched') {
      paidTransferId = transfer.id;
      tell.invoice('CONFIRMING', after(transfer.blockTime, 3000), transfer);
      tell.invoice('PAID', recordedAt, transfer);
    } else {
      tell.transfer(kind, recordedAt, transfer);
      if (now - recordedAt > 3 * DAY_MS && random() < 0.6) {
        const what = kind === 'duplicate' ? 'refunded' : random() < 0.5 ? 'fulfilled-manually' : 'refunded';
        const resolvedAt = after(recordedAt, DAY_MS);
        rows.transferResolutions.push({
          ...{ project_id: projectId, transfer_id: transfer.id, resolution: what, note: `ticket ${4000 + n}` },
          ...{ invoice_id: id, resolved_by: 'anna', resolved_at: toIso(resolvedAt), is_untold: false },
          event_id: tell.resolved(what, resolvedAt, transfer),
        });
      }
    }
  }
  const status = paidTransferId !== null ? 'PAID' : expiresAt < now ? 'EXPIRED' : 'PENDING';
  rows.invoices.push({
    ...{ id, project_id: projectId, network: NETWORK, address_id: address.id, idempotency_key: `fill-${n}-${id}` },
    external_id: nameOf(n),
    requested_micro: String(order.requestedMicro),
    payable_micro: String(order.payableMicro),
    ...{ status, checkout_token: order.token, created_at: toIso(createdAt), expires_at: toIso(expiresAt) },
    ...{ event_count: tell.count(), paid_transfer_id: paidTransferId },
  });
}

const nameOf = (n: number) => `order-${String(n + 1).padStart(7, '0')}`;

type WrittenTransfer = Parameters<typeof describeTransfer>[0];

function writeTransfer(
  rows: FilledRows,
  { projectId, address, id: invoiceId, blockNumber }: FilledOrder & { id: string },
  { kind, amountMicro, at }: { kind: 'matched' | 'duplicate' | 'unmatched'; amountMicro: bigint; at: UnixMs },
): WrittenTransfer {
  const id = newId(after(at, SOLID_AFTER_MS));
  const txId = randomBytes(32).toString('hex');
  const from = accountToAddress(randomBytes(20).toString('hex') as AccountHex);
  const of = kind === 'unmatched' ? null : invoiceId;
  rows.transfers.push({
    id,
    project_id: projectId,
    network: NETWORK,
    address_id: address.id,
    tx_id: `\\x${txId}`,
    log_index: 0,
    correction: 0,
    ...{ block_number: blockNumber, block_id: blockIdOf(blockNumber), block_time: toIso(at), from_address: from },
    ...{ amount_micro: String(amountMicro), kind, invoice_id: of, reserved_micro: of && String(amountMicro) },
    producer: bytes(20),
    verified: 'proven',
    nodes: ['sandbox fill'],
    recorded_at: toIso(after(at, SOLID_AFTER_MS)),
  });
  const seen = { txId, logIndex: 0, blockNumber, blockTime: at, from, amountMicro: microUsdt(amountMicro) };
  return { ...seen, id, to: address.address, invoiceId: of };
}

/** Adds an outgoing transfer of each address's whole balance, because no address can hold money that isn't on the chain. */
function sweepAddresses(rows: FilledRows, projectId: string): void {
  for (const addressId of new Set(rows.transfers.map((row) => String(row['address_id'])))) {
    const transfers = rows.transfers.filter((row) => row['address_id'] === addressId);
    const last = transfers.at(-1);
    const sum = transfers.reduce((total, row) => total + BigInt(String(row['amount_micro'])), 0n);
    rows.outgoingTransfers.push({
      network: NETWORK,
      tx_id: bytes(32),
      log_index: 0,
      correction: 0,
      project_id: projectId,
      address_id: addressId,
      block_number: last?.['block_number'] ?? 0,
      block_id: last?.['block_id'] ?? null,
      block_time: last?.['block_time'] ?? null,
      ...{ to_address: SAFE, amount_micro: String(sum), verified: 'proven', nodes: ['sandbox fill'] },
      recorded_at: last?.['recorded_at'] ?? null,
    });
  }
}

/** The wallet where the shop keeps its money. */
const SAFE = accountToAddress('5a'.repeat(20) as AccountHex);

function blockIdOf(number: number): string {
  return `\\x${createHash('sha256').update(`filled block ${number}`).digest('hex')}`;
}

/** Writes an order's events with their deliveries. */
function eventWriter(rows: FilledRows, order: FilledOrder & { id: string; expiresAt: UnixMs }, random: () => number) {
  const { projectId, id: invoiceId, n, token, expiresAt } = order;
  let sequence = 0;
  const write = (
    type: EventType,
    at: UnixMs,
    about: { invoiceId: string | null; transferId: string | null },
    data: object,
  ) => {
    const id = newId(at);
    const number = about.invoiceId === null ? 1 : sequence;
    const body = eventBody({ id, type, timestamp: at, projectId, sequence: number, data });
    rows.events.push({
      id,
      project_id: projectId,
      network: NETWORK,
      type,
      invoice_id: about.invoiceId,
      transfer_id: about.transferId,
      ...{ sequence: number, body, created_at: toIso(at), position: 0 },
    });
    writeDelivery(rows, order, { id, invoiceId: about.invoiceId, sequence: number, at }, random);
    return id;
  };
  return {
    count: () => sequence,
    invoice: (status: Exclude<InvoiceStatus, 'PENDING'>, at: UnixMs, transfer: WrittenTransfer | null) => {
      sequence += 1;
      const late = transfer !== null && transfer.blockTime > expiresAt;
      const payable = {
        requestedMicro: order.requestedMicro,
        payableMicro: order.payableMicro,
        address: order.address.address,
      };
      const headNumber = order.blockNumber + (status === 'PAID' ? 19 : 0);
      const data = {
        ...projectInvoice(
          { id: invoiceId, externalId: nameOf(n), status, checkoutToken: token, expiresAt },
          PUBLIC_URL,
        ),
        payment: describePayment(payable, transfer && { ...transfer, late, headNumber }),
      };
      write(
        INVOICE_EVENTS[status],
        at,
        { invoiceId, transferId: status === 'PAID' ? (transfer?.id ?? null) : null },
        data,
      );
    },
    transfer: (kind: 'duplicate' | 'unmatched', at: UnixMs, transfer: WrittenTransfer) =>
      write(`transfer.${kind}`, at, { invoiceId: null, transferId: transfer.id }, describeTransfer(transfer)),
    resolved: (resolution: ResolutionKind, at: UnixMs, transfer: WrittenTransfer) => {
      const status = transfer.invoiceId !== null ? 'PAID' : at < expiresAt ? 'PENDING' : 'EXPIRED';
      const invoice = { id: invoiceId, externalId: nameOf(n), status } as const;
      const decision = describeDecision({ resolution, invoice, resolvedAt: at });
      const data = { ...describeTransfer(transfer), resolution: decision };
      return write('transfer.resolved', at, { invoiceId: null, transferId: transfer.id }, data);
    },
  };
}

type ToldEvent = { id: string; invoiceId: string | null; sequence: number; at: UnixMs };

/** Most webhooks succeed at once, some on the second attempt, and a few never. */
function writeDelivery(
  rows: FilledRows,
  { projectId, endpointId, now }: FilledOrder,
  event: ToldEvent,
  random: () => number,
): void {
  const lot = random();
  const failures = lot < 0.94 ? 0 : lot < 0.995 ? 1 : MAX_ATTEMPTS;
  const isDead = failures === MAX_ATTEMPTS;
  const first = after(event.at, HEARD_AFTER_MS);
  const attempts = Array.from({ length: isDead ? MAX_ATTEMPTS : failures + 1 }, (_, index) => {
    const at = after(first, index === 0 ? 0 : 5000 * 2 ** index);
    const hasFailed = isDead || index < failures;
    return { at, status: hasFailed ? 503 : 204, error: hasFailed ? 'http_503: the endpoint returned 503' : null };
  }).filter(({ at }) => at < now);
  const last = attempts.at(-1);
  const isOver = last !== undefined && (last.status === 204 || attempts.length === MAX_ATTEMPTS);
  for (const [index, { at, status, error }] of attempts.entries()) {
    const attempt = { attempt: index + 1, attempted_at: toIso(at), status, error };
    rows.deliveryAttempts.push({
      ...{ event_id: event.id, endpoint_id: endpointId, ...attempt, latency_ms: 20 + Math.floor(random() * 300) },
    });
  }
  rows.deliveries.push({
    ...{ event_id: event.id, endpoint_id: endpointId, project_id: projectId, invoice_id: event.invoiceId },
    ...{ sequence: event.sequence, attempt_count: attempts.length, max_attempts: MAX_ATTEMPTS },
    status: !isOver ? 'pending' : last.status === 204 ? 'delivered' : 'dead',
    ...{ next_attempt_at: toIso(last?.at ?? first), created_at: toIso(event.at) },
    finished_at: isOver ? toIso(after(last.at, 200)) : null,
    ...{ last_status: last?.status ?? null, last_error: last?.error ?? null },
  });
}

/** A generated transfer: its amount, and how long after the order it arrived. */
type StoryTransfer = { kind: 'matched' | 'duplicate' | 'unmatched'; amountMicro: bigint; afterMs: number };
/** The outcome of an order, and the transfers for it. */
type Story = { status: 'PAID' | 'EXPIRED'; transfers: StoryTransfer[] };

const LIFETIME_MS = 30 * MINUTE_MS;

/** The outcomes of a hundred orders. A real shop has similar shares, but fewer of the rare outcomes. */
const SHARES = {
  paid: 60,
  expired: 22,
  late: 3,
  twice: 3,
  'a fee of 1 deducted': 4,
  'rounded to 2 decimals': 3,
  'one wrong digit': 2,
  'point one place too far right': 1,
  stray: 2,
} as const;
type StoryName = keyof typeof SHARES;

/** Generates the outcome of an order. `random` returns uniform numbers from 0 to 1. */
function tellStory(payable: MicroUsdt, random: () => number): Story {
  const name = draw(random);
  const soonMs = Math.round((0.5 + 14 * random()) * MINUTE_MS);
  const paid: StoryTransfer = { kind: 'matched', amountMicro: payable, afterMs: soonMs };
  if (name === 'paid') return { status: 'PAID', transfers: [paid] };
  if (name === 'expired') return { status: 'EXPIRED', transfers: [] };
  if (name === 'late') return { status: 'PAID', transfers: [{ ...paid, afterMs: LIFETIME_MS + soonMs }] };
  if (name === 'twice') {
    const again = { kind: 'duplicate', amountMicro: payable, afterMs: soonMs + 2 * MINUTE_MS } as const;
    return { status: 'PAID', transfers: [paid, again] };
  }
  const amountMicro = name === 'stray' ? BigInt(1 + Math.floor(random() * 50)) * 1_000_000n : mistaken(name, payable);
  return { status: 'EXPIRED', transfers: [{ kind: 'unmatched', amountMicro, afterMs: soonMs }] };
}

function draw(random: () => number): StoryName {
  let left = random() * 100;
  for (const [name, share] of Object.entries(SHARES)) {
    left -= share;
    if (left < 0) return name as StoryName;
  }
  return 'paid';
}

/** Returns an amount that a payer might send by mistake instead of this one; never the same amount, and never 0. */
function mistaken(name: StoryName, payable: bigint): bigint {
  const amounts = MISTAKES.find((mistake) => mistake.name === name)?.of({ amount: payable, decimals: 6 }) ?? [];
  return amounts.find((amount) => amount > 0n && amount !== payable) ?? payable + 1n;
}

/**
 * Each table comes after the tables that it refers to. Only invoices refer to later tables, which is checked at the end of the transaction.
 */
const COLUMNS = {
  addresses: 'id, project_id, network, account, address, policy, position, created_at, mac',
  invoices: `id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, status, checkout_token,
    created_at, expires_at, event_count, paid_transfer_id, mac, paid_mac`,
  transfers: `id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address, amount_micro, kind,
    invoice_id, reserved_micro, producer, verified, nodes, recorded_at, correction, mac`,
  outgoingTransfers: `network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time, to_address, amount_micro,
    verified, nodes, recorded_at, correction, mac`,
  events: 'id, project_id, network, type, invoice_id, transfer_id, sequence, body, created_at, position, mac',
  deliveries: `event_id, endpoint_id, project_id, invoice_id, sequence, status, attempt_count, max_attempts, next_attempt_at, created_at,
    finished_at, last_status, last_error`,
  deliveryAttempts: 'event_id, endpoint_id, attempt, attempted_at, status, error, latency_ms',
  transferResolutions:
    'project_id, transfer_id, resolution, note, invoice_id, resolved_by, resolved_at, event_id, is_untold, mac',
} as const;

type FilledTable = keyof typeof COLUMNS;
const TABLES = Object.keys(COLUMNS) as FilledTable[];
/** A row by column name; bytes are written as `\x` and hex. */
type FilledRow = Record<string, string | number | boolean | null | readonly string[]>;
type FilledRows = { [Table in FilledTable]: FilledRow[] };

const insertInto = (table: FilledTable) => {
  const sqlName = snakeCase(table);
  return commandOf(
    `fill-${sqlName.replaceAll('_', '-')}`,
    `insert into ${sqlName} (${COLUMNS[table]})
     select ${COLUMNS[table]} from jsonb_populate_recordset(null::${sqlName}, $1::text::jsonb)`,
    (rows: readonly FilledRow[]) => [JSON.stringify(rows)],
  );
};

const INSERTS = TABLES.map((table) => [table, insertInto(table)] as const);

function noRows(): FilledRows {
  return Object.fromEntries(TABLES.map((table): [FilledTable, FilledRow[]] => [table, []])) as FilledRows;
}

const SEALS: Partial<Record<FilledTable, readonly SealedTable[]>> = {
  addresses: [SEALED_ADDRESS],
  invoices: [SEALED_INVOICE, SEALED_PAID, SEALED_STATUS],
  transfers: [SEALED_TRANSFER],
  outgoingTransfers: [SEALED_OUTGOING],
  events: [SEALED_EVENT],
  transferResolutions: [SEALED_RESOLUTION],
};

/** Inserts a project's rows. All constraints, triggers and seals apply as usual. */
async function insertRows(tx: Sql, rows: FilledRows): Promise<void> {
  const sealer = await tx.sealer();
  for (const [table, insert] of INSERTS) {
    const seals = sealer === null ? [] : (SEALS[table] ?? []);
    const sealed = rows[table].map((row) => Object.assign({}, row, ...seals.map((seal) => macOf(sealer, seal, row))));
    if (sealed.length > 0) await insert(tx, sealed);
  }
}

/** Returns the column that holds the row's MAC. Deadlines on a local network aren't sealed. */
function macOf(sealer: Sealer | null, table: SealedTable, row: FilledRow): FilledRow {
  if (sealer === null || !isNeeded(table, row)) return {};
  const values = Object.entries(table.fields).map(([name, type]) => {
    const value = row[snakeCase(name)] ?? null;
    if (value === null || type === 'deadline') return [name, null];
    if (type === 'timestamptz') return [name, Date.parse(String(value))];
    return [name, type === 'bytea' ? String(value).slice('\\x'.length) : value];
  });
  return { [table.mac]: `\\x${sealer.seal(table, Object.fromEntries(values)).toString('hex')}` };
}

function isNeeded(table: SealedTable, { status, event_count: eventCount }: FilledRow): boolean {
  if (table === SEALED_PAID) return status === 'PAID';
  return table !== SEALED_STATUS || (status !== 'PAID' && (status !== 'PENDING' || Number(eventCount ?? 0) > 0));
}

/** Reserves the next positions of a project's events, and returns the last one. */
const takePositions = answerOf(
  'fill-take-positions',
  { lastPosition: count },
  `insert into event_streams as s (project_id, last_position) values ($1, $2)
   on conflict (project_id) do update set last_position = s.last_position + excluded.last_position returning last_position`,
  (projectId: string, positions: number) => [projectId, positions],
  ([row]) => row?.lastPosition ?? 0,
);
