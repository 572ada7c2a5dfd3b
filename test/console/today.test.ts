import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestConsole, type TestConsole, withOwner, writeHistory } from './console.ts';

let console_: TestConsole;
beforeAll(async () => {
  console_ = await startTestConsole();
});
afterAll(() => console_.stop());

const tile = async (name: string) => {
  const { text } = await console_.get('/');
  const [, shown = ''] = text.split(`<dt>${name}</dt>`);
  return shown.split('</div>')[0]?.replace(/<[^>]*>/g, '') ?? '';
};

test('figures of a month say that they are of the month', async () => {
  await writeHistory(console_.service, console_.service.project, () => 2);
  expect(await tile('Paid rate')).toBe('100 %of 58 that ended in 30 days');
  expect(await tile('Typical time to payment')).toMatch(/of 58 payments in 30 days, from invoice creation to PAID$/);
});

test('figures of the newest invoices and payments say so', async () => {
  const { service } = console_;
  const { id } = service.project;
  await withOwner(service, async (client) => {
    await client.query("begin; set local session_replication_role = 'replica'");
    const idOf = `(lpad(to_hex(${service.clock.now()} - n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid`;
    await client.query(
      `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
         checkout_token, status, created_at, expires_at)
       select ${idOf}, $1, 'devnet', a.id, 'many-' || n, 'many-' || n, 9000000, 9000000 + n, rpad('many' || n, 20, 'x'), 'EXPIRED', now(),
         now() + interval '1 hour'
       from generate_series(1, 5000) n, (select id from addresses where project_id = $1 order by position limit 1) a`,
      [id],
    );
    await client.query(
      `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
         amount_micro, kind, invoice_id, reserved_micro, recorded_at, verified, nodes)
       select ${idOf}, $1, 'devnet', i.address_id, sha256(n::text::bytea), 0, 1, sha256('block'), now(), rpad('T', 34, 'x'), i.payable_micro,
         'matched', i.id, i.payable_micro, now(), 'proven', '{}'
       from generate_series(1, 500) n join invoices i on i.project_id = $1 and i.id = ${idOf}`,
      [id],
    );
    await client.query('commit');
  });
  expect(await tile('Paid rate')).toBe('0 %of 5,000 that ended, among the newest 5,000');
  expect(await tile('Typical time to payment')).toMatch(/of the newest 500 payments, from invoice creation to PAID$/);
});
