import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { onTestFinished } from 'vitest';
import {
  describePayment,
  describeTransfer,
  type EventType,
  eventBody,
  projectInvoice,
} from '../../src/core/domain/event.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { InvoiceStatus } from '../../src/core/domain/invoice.ts';
import { microUsdt, parseAmount } from '../../src/core/domain/money.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { whileWaiting } from '../support/while-waiting.ts';
import { newDirectory } from './run-cli.ts';

/** Everything happens on this day, so that the output is always the same. */
export const at = (time: string): UnixMs => unixMs(Date.parse(`2026-09-01T${time}Z`));

const account = (byte: number) => byte.toString(16).padStart(2, '0').repeat(20) as AccountHex;
export const addressOf = (byte: number) => accountToAddress(account(byte));
export const txIdOf = (byte: number) => byte.toString(16).padStart(2, '0').repeat(32);

const micro = (text: string) => {
  const parsed = parseAmount(text);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.amountMicro;
};

export type Project = { id: string; projectId: string };
export type Address = { id: string; project: Project; address: string };
export type Invoice = {
  id: string;
  invoiceId: string;
  externalId: string;
  address: Address;
  requested: string;
  payable: string;
  status: InvoiceStatus;
  createdAt: UnixMs;
  expiresAt: UnixMs;
};
type Payment = {
  to: Address;
  amount: string;
  from?: number;
  tx: number;
  logIndex?: number;
  block: number;
  time: UnixMs;
};
export type Transfer = Payment & { id: string; kind: 'matched' | 'duplicate' | 'unmatched'; invoice: Invoice | null };
export type Event = { id: string; project: Project; invoice: Invoice | null; sequence: number; createdAt: UnixMs };

/** Creates a database that a test fills with a shop's day, with the same ids in each run. Uses a new database by default. */
export async function createLedger(given?: TestDatabase) {
  const database = given ?? (await createTestDatabase());
  onTestFinished(() => database.drop());
  let count = 0;
  const newId = (time: UnixMs) => uuidV7(time, new Uint8Array(10), ++count);
  const sql = (text: string, values: unknown[] = []) =>
    withClient(database.owner, async (client) => (await client.query(text, values)).rows);
  const pastGuards = (text: string, values: unknown[]) =>
    withClient(database.owner, async (client) => {
      await client.query('set session_replication_role = replica');
      await client.query(text, values);
    });
  const time = (ms: UnixMs | null) => (ms === null ? null : new Date(ms).toISOString());

  const addEvent = async (
    type: EventType,
    createdAt: UnixMs,
    about: { project: Project; invoice: Invoice | null; transferId: string | null; sequence: number; data: object },
  ): Promise<Event> => {
    const id = newId(createdAt);
    const { project, invoice, transferId, sequence, data } = about;
    const body = eventBody({ id, type, timestamp: createdAt, projectId: project.id, sequence, data });
    await sql(
      `insert into events (id, project_id, network, type, invoice_id, transfer_id, sequence, body, created_at)
       values ($1, $2, 'devnet', $3, $4, $5, $6, $7, $8)`,
      [id, project.id, type, invoice?.id ?? null, transferId, sequence, body, time(createdAt)],
    );
    if (invoice !== null)
      await pastGuards('update invoices set event_count = greatest(event_count, $2) where id = $1', [
        invoice.id,
        sequence,
      ]);
    return { id, project, invoice, sequence, createdAt };
  };

  return {
    // Never contacts a sandbox of the person who runs the test.
    env: { DATABASE_URL: database.connectionString, QUITTANCE_DATA_DIR: newDirectory() },
    owner: database.owner,
    sql,
    newId,
    /** Starts reading, and changes the ledger once the read has reached a table. */
    whileWaiting: <Read>(table: string, read: () => Promise<Read>, change: () => Promise<unknown>) =>
      whileWaiting(database.owner, table, read, change),
    addProject: async (name = 'Shop'): Promise<Project> => {
      const id = newId(at('08:00:00'));
      const values = [id, name, time(at('08:00:00'))];
      await sql(`insert into projects (id, name, network, created_at) values ($1, $2, 'devnet', $3)`, values);
      return { id, projectId: encodeId('prj', id) };
    },
    addKey: async (project: Project, name: string): Promise<string> => {
      const id = newId(at('08:05:00'));
      await sql(
        `insert into api_keys (id, project_id, network, name, secret_sha256) values ($1, $2, 'devnet', $3, $4)`,
        [id, project.id, name, Buffer.alloc(32)],
      );
      return id;
    },
    addAddress: async (
      project: Project,
      byte: number,
      options: { policy?: 'tail' | 'exact'; position?: number; retiredAt?: UnixMs } = {},
    ): Promise<Address> => {
      const id = newId(at('08:10:00'));
      const { policy = 'tail', position = 1, retiredAt = null } = options;
      await sql(
        `insert into addresses (id, project_id, network, account, address, policy, position, created_at, retired_at)
         values ($1, $2, 'devnet', $3, $4, $5, $6, $7, $8)`,
        [
          id,
          project.id,
          Buffer.from(account(byte), 'hex'),
          addressOf(byte),
          policy,
          position,
          time(at('08:10:00')),
          time(retiredAt),
        ],
      );
      return { id, project, address: addressOf(byte) };
    },
    addInvoice: async (
      address: Address,
      invoice: {
        externalId: string;
        requested?: string;
        payable?: string;
        createdAt?: UnixMs;
        expiresAt?: UnixMs;
        status?: Exclude<InvoiceStatus, 'PAID'>;
        apiKeyId?: string | null;
      },
    ): Promise<Invoice> => {
      const { externalId, requested = '25', payable = '25.000137', apiKeyId = null } = invoice;
      const { createdAt = at('10:00:00'), expiresAt = at('10:30:00'), status = 'PENDING' } = invoice;
      const id = newId(createdAt);
      await sql(
        `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
           payable_micro, status, checkout_token, created_at, expires_at, api_key_id)
         values ($1, $2, 'devnet', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
        [
          id,
          address.project.id,
          address.id,
          `idem-${count}`,
          externalId,
          micro(requested).toString(),
          micro(payable).toString(),
          status,
          `token${String(count).padStart(12, '0')}`,
          time(createdAt),
          time(expiresAt),
          apiKeyId,
        ],
      );
      return {
        id,
        invoiceId: encodeId('inv', id),
        externalId,
        address,
        requested,
        payable,
        status,
        createdAt,
        expiresAt,
      };
    },
    /** Adds an irreversible transfer, recorded at `decidedAt`. A match makes its invoice PAID. */
    addTransfer: async (
      kind: Transfer['kind'],
      invoice: Invoice | null,
      payment: Payment & { decidedAt: UnixMs },
    ): Promise<Transfer> => {
      const id = newId(payment.decidedAt);
      const { to, amount, tx, logIndex = 0, block, from = 0xbb } = payment;
      await withClient(database.owner, async (client) => {
        await client.query('begin');
        await client.query(
          `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
             from_address, amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes, recorded_at)
           values ($1, $2, 'devnet', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'proven', $15, $16)`,
          [
            id,
            to.project.id,
            to.id,
            Buffer.from(txIdOf(tx), 'hex'),
            logIndex,
            block,
            Buffer.from(txIdOf(block % 256), 'hex'),
            time(payment.time),
            addressOf(from),
            micro(amount).toString(),
            kind,
            invoice?.id ?? null,
            invoice === null ? null : micro(amount).toString(),
            Buffer.from(account(0x77), 'hex'),
            ['http://node-1', 'http://node-2'],
            time(payment.decidedAt),
          ],
        );
        if (kind === 'matched')
          await client.query(`update invoices set status = 'PAID', paid_transfer_id = $2 where id = $1`, [
            invoice?.id,
            id,
          ]);
        await client.query('commit');
      });
      return { ...payment, id, kind, invoice };
    },
    /** Adds an event of an invoice as the watcher writes it. `payment` is its transfer. */
    addInvoiceEvent: (
      status: InvoiceStatus,
      invoice: Invoice,
      event: { sequence: number; createdAt: UnixMs; payment?: Payment; transferId?: string },
    ): Promise<Event> => {
      const { payment, sequence, createdAt, transferId = null } = event;
      const { id, externalId, expiresAt, address } = invoice;
      const seen = payment === undefined ? null : seenOf(payment);
      const amounts = { requestedMicro: micro(invoice.requested), payableMicro: micro(invoice.payable) };
      const transaction = seen && { ...seen, late: seen.blockTime > expiresAt, headNumber: seen.blockNumber };
      const data = {
        ...projectInvoice({ id, externalId, status, checkoutToken: 'token', expiresAt }, 'https://pay.example'),
        payment: describePayment({ ...amounts, address: address.address }, transaction),
      };
      const type = `invoice.${status.toLowerCase()}` as EventType;
      return addEvent(type, createdAt, { project: address.project, invoice, transferId, sequence, data });
    },
    addTransferEvent: (transfer: Transfer, createdAt: UnixMs): Promise<Event> => {
      const described = { id: transfer.id, to: transfer.to.address, invoiceId: transfer.invoice?.id ?? null };
      const data = describeTransfer({ ...seenOf(transfer), ...described });
      const about = { project: transfer.to.project, invoice: null, transferId: transfer.id, sequence: 1, data };
      return addEvent(`transfer.${transfer.kind}` as EventType, createdAt, about);
    },
    addEndpoint: async (project: Project, url = 'https://shop.example/hook'): Promise<string> => {
      const id = newId(at('08:15:00'));
      await sql(`insert into webhook_endpoints (id, project_id, network, url) values ($1, $2, 'devnet', $3)`, [
        id,
        project.id,
        url,
      ]);
      return id;
    },
    addDelivery: async (
      event: Event,
      endpointId: string,
      delivery: {
        status: 'pending' | 'delivered' | 'dead';
        attempts: { at: UnixMs; status: number | null; error: string | null }[];
        nextAttemptAt?: UnixMs;
        /** Attempted before attempts were logged. */
        unlogged?: boolean;
      },
    ): Promise<void> => {
      const { status, attempts, nextAttemptAt = event.createdAt, unlogged = false } = delivery;
      const last = attempts.at(-1);
      await sql(
        `insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, status, attempt_count,
           next_attempt_at, created_at, finished_at, last_status, last_error)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
        [
          event.id,
          endpointId,
          event.project.id,
          event.invoice?.id ?? null,
          event.sequence,
          status,
          attempts.length,
          time(nextAttemptAt),
          time(event.createdAt),
          status === 'pending' ? null : time(last?.at ?? event.createdAt),
          last?.status ?? null,
          last?.error ?? null,
        ],
      );
      for (const [index, attempt] of unlogged ? [] : attempts.entries()) {
        await sql(
          `insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error)
           values ($1, $2, $3, $4, $5, $6)`,
          [event.id, endpointId, index + 1, time(attempt.at), attempt.status, attempt.error],
        );
      }
    },
    addResolution: (transfer: Transfer, resolution: string, by: string, when: UnixMs, note: string) =>
      sql(
        `insert into transfer_resolutions (project_id, transfer_id, resolution, note, invoice_id, resolved_by, resolved_at)
         values ($1, $2, $3, $4, $5, $6, $7)`,
        [transfer.to.project.id, transfer.id, resolution, note, transfer.invoice?.id ?? null, by, time(when)],
      ),
    addAction: (address: Address, action: string, by: string, when: UnixMs, detail: object) =>
      sql(
        `insert into operator_actions (project_id, action, subject, detail, acted_by, acted_at)
         values ($1, $2, $3, $4, $5, $6)`,
        [address.project.id, action, address.address, JSON.stringify(detail), by, time(when)],
      ),
    /** Sets the position of devnet's ledger. */
    setCursor: async (solid: [number: number, time: UnixMs], head: [number: number, time: UnixMs]) => {
      await sql(
        `insert into chain_cursors (network, solid_number, solid_id, solid_time) values ('devnet', $1, $2, $3)`,
        [solid[0], Buffer.alloc(32, 1), time(solid[1])],
      );
      await sql(`insert into head_blocks (network, number, block_id, block_time) values ('devnet', $1, $2, $3)`, [
        head[0],
        Buffer.alloc(32, 2),
        time(head[1]),
      ]);
    },
  };
}

function seenOf({ tx, logIndex = 0, block, time, from = 0xbb, amount }: Payment) {
  return {
    txId: txIdOf(tx),
    logIndex,
    blockNumber: block,
    blockTime: time,
    from: addressOf(from),
    amountMicro: microUsdt(micro(amount)),
  };
}
