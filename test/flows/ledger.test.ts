import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createInvoice, payableOf, startTestService, type TestService, untilStatus } from '../support/service.ts';

let service: TestService;
let client: pg.Client;
beforeAll(async () => {
  service = await startTestService();
  const paid = (await createInvoice(service)).body.invoiceId;
  await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, paid);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, paid, 'PAID');
  client = new pg.Client(service.ownerString);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await service.stop();
});

// Damage that a mistake in the code or a manual change could do to a paid and an open invoice.
test.each([
  [
    'the transfer that paid one invoice pays no other',
    `update invoices set status = 'PAID', event_count = event_count + 1, paid_transfer_id = (select id from transfers) where status = 'PENDING'`,
    /violates foreign key constraint/,
  ],
  [
    'a transfer is tied only to the invoice that reserves its address and amount',
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, invoice_id, reserved_micro)
     select gen_random_uuid(), t.project_id, t.network, t.address_id, t.tx_id, 7, t.block_number, t.block_id,
       t.block_time, t.from_address, t.amount_micro, 'matched', i.id, t.reserved_micro
     from transfers t join invoices i on i.status = 'PENDING'`,
    /is not to the address and of the amount that invoice .* reserves/,
  ],
  [
    'the amount that an invoice reserves is never changed',
    `update invoices set payable_micro = payable_micro + 5 where status = 'PENDING'`,
    /payable_micro of invoices .* is never changed/,
  ],
  [
    'a recorded transfer is never changed',
    'update transfers set amount_micro = 1',
    /amount_micro of transfers .* is never changed/,
  ],
  ['the bytes of an event are never changed', `update events set body = '{}'`, /body of events .* is never changed/],
])('%s, whatever the code says', async (_title, sql, message) => {
  await expect(client.query(sql)).rejects.toThrow(message);
});
