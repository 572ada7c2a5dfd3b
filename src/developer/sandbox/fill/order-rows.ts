import { createHash, randomBytes } from 'node:crypto';
import {
  describeDecision,
  describePayment,
  describeTransfer,
  type EventType,
  eventBody,
  INVOICE_EVENTS,
  projectInvoice,
} from '../../../domain/event.ts';
import { uuidV7 } from '../../../domain/ids.ts';
import type { InvoiceStatus } from '../../../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../../../domain/money.ts';
import type { ResolutionKind } from '../../../domain/resolution.ts';
import { MAX_ATTEMPTS } from '../../../domain/retry.ts';
import { toIso, type UnixMs, unixMs } from '../../../domain/time.ts';
import { type AccountHex, accountToAddress } from '../../../tron/address.ts';
import type { FilledRows } from './insert-rows.ts';
import { LIFETIME_MS, type Story } from './story.ts';

/** An order that is to be told. Ids are UUIDs; `n` counts the orders from 0. */
export type FilledOrder = {
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

/** From a transfer's block to its record, as 19 blocks of 3 s take. */
const SOLID_AFTER_MS = 57_000;
const PUBLIC_URL = 'https://pay.example';
const NETWORK = 'devnet';
const DAY_MS = 86_400_000;
const HEARD_AFTER_MS = 400;

const newId = (time: UnixMs) => uuidV7(time, randomBytes(10));
const bytes = (length: number) => `\\x${randomBytes(length).toString('hex')}`;
const after = (time: UnixMs, ms: number) => unixMs(time + ms);

/** Adds the rows of an order and of all that became of it. What lies in the future does not happen. */
export function writeOrder(rows: FilledRows, order: FilledOrder, story: Story, random: () => number): void {
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
        const what = kind === 'duplicate' ? 'refunded' : random() < 0.5 ? 'credited-outside' : 'refunded';
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
    ...{
      external_id: nameOf(n),
      requested_micro: String(order.requestedMicro),
      payable_micro: String(order.payableMicro),
    },
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
    ...{
      id,
      project_id: projectId,
      network: NETWORK,
      address_id: address.id,
      tx_id: `\\x${txId}`,
      log_index: 0,
      correction: 0,
    },
    ...{ block_number: blockNumber, block_id: blockIdOf(blockNumber), block_time: toIso(at), from_address: from },
    ...{ amount_micro: String(amountMicro), kind, invoice_id: of, reserved_micro: of && String(amountMicro) },
    ...{
      producer: bytes(20),
      verified: 'proven',
      nodes: ['sandbox fill'],
      recorded_at: toIso(after(at, SOLID_AFTER_MS)),
    },
  });
  const seen = { txId, logIndex: 0, blockNumber, blockTime: at, from, amountMicro: microUsdt(amountMicro) };
  return { ...seen, id, to: address.address, invoiceId: of };
}

/** What came to each address leaves it again: nobody holds what no chain has. */
export function sweepAddresses(rows: FilledRows, projectId: string): void {
  for (const addressId of new Set(rows.transfers.map((row) => String(row['address_id'])))) {
    const transfers = rows.transfers.filter((row) => row['address_id'] === addressId);
    const last = transfers.at(-1);
    const sum = transfers.reduce((total, row) => total + BigInt(String(row['amount_micro'])), 0n);
    rows.outgoingTransfers.push({
      ...{
        network: NETWORK,
        tx_id: bytes(32),
        log_index: 0,
        correction: 0,
        project_id: projectId,
        address_id: addressId,
      },
      ...{
        block_number: last?.['block_number'] ?? 0,
        block_id: last?.['block_id'] ?? null,
        block_time: last?.['block_time'] ?? null,
      },
      ...{ to_address: SAFE, amount_micro: String(sum), verified: 'proven', nodes: ['sandbox fill'] },
      recorded_at: last?.['recorded_at'] ?? null,
    });
  }
}

/** The wallet that the shop keeps its money in. */
const SAFE = accountToAddress('5a'.repeat(20) as AccountHex);

function blockIdOf(number: number): string {
  return `\\x${createHash('sha256').update(`filled block ${number}`).digest('hex')}`;
}

/** Writes the events of an order with their deliveries. */
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
      ...{
        id,
        project_id: projectId,
        network: NETWORK,
        type,
        invoice_id: about.invoiceId,
        transfer_id: about.transferId,
      },
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

/** Most webhooks are heard at once, some at the second attempt, and a few never. */
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
    return { at, status: hasFailed ? 503 : 204, error: hasFailed ? 'http_503: the endpoint answered 503' : null };
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
