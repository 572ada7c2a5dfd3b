import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { runSql } from '../contract/sql.ts';
import {
  createInvoice,
  eventually,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

/** A whole service whose watches pause as in production; in the other files, they run continuously. */
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterAll(() => service.stop());

const PROMISED_MS = 60_000;

async function newOrder(): Promise<string> {
  const { status, body } = await createInvoice(service);
  expect(status).toBe(201);
  return decodeId('inv', body.invoiceId) ?? '';
}

async function paidOrder(): Promise<string> {
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  return decodeId('inv', body.invoiceId) ?? '';
}

/** Bypasses every guard of the database without disabling any. */
async function asOwner(statements: readonly (readonly [text: string, values?: unknown[]])[]): Promise<void> {
  const client = new pg.Client({ connectionString: service.ownerString });
  await client.connect();
  await client.query('set session_replication_role = replica');
  try {
    for (const [text, values = []] of statements) await client.query(text, values);
  } finally {
    await client.end();
  }
}

test('whatever somebody changes, plants or deletes at once is named by an alarm within a minute', async () => {
  const [changed, forged, deleted, paid] = [await newOrder(), await newOrder(), await newOrder(), await paidOrder()];
  const [transfer, event, key, address, endpoint] = Array.from({ length: 5 }, () =>
    uuidV7(service.clock.now(), randomBytes(10)),
  );
  const { id: project } = service.project;
  // A row is listed a minute after its creation. A row that is deleted before any watch has looked stays unknown.
  service.clock.advance(61_000);
  await eventually(
    () =>
      runSql(
        service,
        `select sum(octet_length(content))::int / 16 as rows from inventory_pages where subject = 'invoices'`,
      ),
    ([listed]) => listed?.['rows'] === 4,
  );
  const startedMs = performance.now();
  await asOwner([
    [`update invoices set external_id = 'other' where id = $1`, [changed]],
    [`update invoices set status = 'EXPIRED', event_count = 1 where id = $1`, [forged]],
    ['delete from invoices where id = $1', [deleted]],
    [
      `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
         amount_micro, kind, producer, verified, nodes)
       select $1, project_id, network, address_id, $2, 0, 5, $2, now(), from_address, 7, 'unmatched', producer, verified, nodes
       from transfers where invoice_id = $3`,
      [transfer, randomBytes(32), paid],
    ],
    [
      `insert into events (id, project_id, network, type, invoice_id, sequence, position, body)
       values ($1, $2, 'devnet', 'invoice.paid', $3, 1, 1000, '{}')`,
      [event, project, changed],
    ],
    [
      `insert into api_keys (id, project_id, network, name, secret_sha256) values ($1, $2, 'devnet', 'x', sha256('x'))`,
      [key, project],
    ],
    [
      `insert into addresses (id, project_id, network, account, address, policy, position)
       select $1, $2, 'devnet', a, tron_address(a), 'tail', 50 from (select substr(sha256('y'), 1, 20) as a) made`,
      [address, project],
    ],
    [
      `insert into webhook_endpoints (id, project_id, network, url) values ($1, $2, 'devnet', 'https://thief.example/')`,
      [endpoint, project],
    ],
    ['update projects set name = $1 where id = $2', [`thief ${randomUUID()}`, project]],
    ['drop trigger transfers_are_kept on transfers'],
  ]);
  const wanted = [changed, forged, deleted, transfer, event, key, address, endpoint, project, 'transfers_are_kept'];
  const found = new Map<string, number>();
  while (found.size < wanted.length && performance.now() - startedMs < PROMISED_MS) {
    const rows = await runSql(
      service,
      'select subject, detail from alarms where (resolved_at is null or needs_closing and closed_mac is null)',
    );
    const text = rows.map(({ subject, detail }) => `${subject} ${detail}`).join('\n');
    for (const each of wanted) {
      if (!found.has(String(each)) && text.includes(String(each)))
        found.set(String(each), performance.now() - startedMs);
    }
    await delay(250);
  }
  expect(wanted.filter((each) => !found.has(String(each)))).toEqual([]);
});
