import { expect, test } from 'vitest';
import { liveDay } from '../planted-day.ts';
import type { Truth } from '../truth.ts';
import { check } from './all.ts';

const REST_OF_A_TRANSFER = `project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address, amount_micro,
  kind, invoice_id, reserved_micro, recorded_at, producer, verified, nodes`;

/** Damage that the code can't cause: each change of the books, and what must be found. */
const WRONG_BOOKS: readonly (readonly [what: string, sql: string, found: RegExp])[] = [
  [
    'a transfer is there twice',
    `alter table public.transfers drop constraint transfers_once;
     insert into public.transfers select gen_random_uuid(), ${REST_OF_A_TRANSFER} from public.transfers where kind = 'unmatched'`,
    /invariant 2 .*: .* is recorded 2 times/,
  ],
  [
    'a transfer has another amount',
    "update public.transfers set amount_micro = amount_micro + 1 where kind = 'unmatched'",
    /invariant 3 .*: in .* is recorded, and the chain has it of \d+ in block/,
  ],
  [
    'something left that never left',
    `insert into public.outgoing_transfers select network, sha256(tx_id), log_index, project_id, address_id, block_number, block_id, block_time, 'T', 1, verified, nodes
     from public.transfers where kind = 'unmatched'`,
    /invariant 3 .*: out .* of 1 is recorded, and the chain has it not[\s\S]*invariant 21 .*: \w+: \d+ by the books, \d+ on the chain/,
  ],
  [
    'a change that does not follow the one before',
    `insert into witness.transitions (invoice_id, before, after, examined_time)
     select id, 'CONFIRMING', 'PENDING', now() from public.invoices where status = 'EXPIRED' limit 1`,
    /invariant 4 .*: invoice .* went from CONFIRMING to PENDING, and was EXPIRED/,
  ],
  [
    'a status that no change led to',
    "update public.invoices set status = 'PENDING' where status = 'EXPIRED'",
    /invariant 4 .*: invoice .* is PENDING, and last became EXPIRED/,
  ],
  [
    'an invoice that is PAID by nothing',
    "update public.transfers set kind = 'duplicate' where kind = 'matched'",
    /invariant 5 .*0 transfers are matched[\s\S]*invariant 7 .*transfers are tied to invoice .*, of which 0 are matched/,
  ],
  [
    'two invoices that are PAID by one transfer',
    `update public.invoices set paid_transfer_id = (select id from public.transfers where kind = 'matched' order by id limit 1)
     where status = 'PAID'`,
    /invariant 6 .*: .* pays \d invoices/,
  ],
  [
    'a transfer is gone',
    "delete from public.transfers where kind = 'unmatched'",
    /invariant 2 .*is not recorded[\s\S]*invariant 7 .*: the books have .*, and the chain/,
  ],
  [
    'an acknowledged deadline is another',
    "update public.invoices set expires_at = expires_at + interval '1 hour'",
    /invariant 10 .*was acknowledged as/,
  ],
  [
    'an invoice counts an event too many',
    'update public.invoices set event_count = event_count + 1',
    /invariant 11 .*: invoice .* counts \d events, and has \d/,
  ],
  [
    'a transfer that nobody is told of',
    "update public.events set transfer_id = null where type = 'transfer.unmatched'",
    /invariant 11 .*: unmatched transfer .* has 0 events/,
  ],
  [
    'transfers that are told of in another order',
    `update public.events set position = 1000000 - position where type in ('transfer.unmatched', 'transfer.duplicate')`,
    /invariant 11 .*: transfer .* is told of after .*, which was recorded later/,
  ],
  [
    'a transfer that waits to be told of for ever',
    "insert into public.untold_transfers select network, id, project_id from public.transfers where kind = 'unmatched'",
    /invariant 12 .*: transfer .* is not told of/,
  ],
  [
    'a feed with a gap',
    'update public.event_streams set last_position = last_position + 1',
    /invariant 11 .*: project .* has \d+ events at positions 1 to \d+, and its stream is at/,
  ],
  [
    'an event that is gone',
    "delete from public.events where type = 'invoice.expired'",
    /invariant 12 .*: invoice.expired .* is not in the feed at position/,
  ],
  [
    'a delivery that is given up too early',
    "update public.deliveries set status = 'dead'",
    /invariant 12 .*to endpoint .* is dead after \d+ of 12 attempts/,
  ],
  [
    'a delivery that was deleted before it ended',
    "insert into witness.ended select event_id, endpoint_id, 'pending' from public.deliveries; delete from public.deliveries",
    /invariant 12 .*to endpoint .* was never planned/,
  ],
  [
    'an event that was rewritten',
    "update public.events set body = body || ' '",
    /invariant 14 .*: the body of event .* was changed/,
  ],
  [
    'PAID before the cursor',
    "update witness.transitions set solid_number = 1 where after = 'PAID'",
    /invariant 15 .*: invoice .* became PAID by block \d+ while the cursor stood at 1/,
  ],
  [
    'a cursor that went back',
    'insert into witness.setbacks (before, after) values (9, 8)',
    /invariant 16 .*: the cursor went back from block 9 to 8/,
  ],
  [
    'a gap above the cursor',
    'delete from public.head_blocks where number = (select min(number) from public.head_blocks)',
    /invariant 16 .*: examined block \d+ follows 0 others above the cursor/,
  ],
  [
    'blocks that are not linked',
    "update public.head_blocks set block_id = sha256('x') where number = (select min(number) from public.head_blocks)",
    /invariant 16 .*: examined block .* is on the present branch, and one below it is not/,
  ],
  [
    'paid in time and not PAID',
    "update public.invoices set status = 'EXPIRED', paid_transfer_id = null where status = 'PAID'",
    /invariant 17 .*was paid in time, .* and is not PAID/,
  ],
  [
    'expired before the blocks were examined',
    "update witness.transitions set examined_time = examined_time - interval '1 hour'",
    /invariant 18 .*expired when blocks up to .* were examined/,
  ],
  [
    'a transfer of one project to an address of another',
    'update public.transfers t set project_id = p.id from public.projects p where p.id <> t.project_id',
    /invariant 19 .*: transfer .* of project .* is to an address of/,
  ],
  [
    'an invoice of one project on an address of another',
    `alter table public.invoices drop constraint invoices_reservation;
     update public.invoices i set address_id = a.id from public.addresses a where a.project_id <> i.project_id`,
    /invariant 19 .*: invoice .* of project .* is paid to an address of/,
  ],
  [
    'an event of one project about an invoice of another, to its endpoint',
    `drop index public.events_position;
     update public.events e set project_id = p.id from public.projects p where p.id <> e.project_id`,
    /invariant 19 .*is about an invoice of[\s\S]*invariant 19 .*goes to an endpoint of/,
  ],
  [
    'a row of another network',
    "update public.addresses set network = 'nile'",
    /invariant 19 .*: a row of addresses is of network nile/,
  ],
  [
    'a secret in a column that is plain text',
    "update public.webhook_endpoints set description = 'key node-key-canary-0'",
    /invariant 20 .*: a row of webhook_endpoints holds a secret/,
  ],
  [
    'an invoice that is PAID with less than it asked',
    "update public.invoices set payable_micro = payable_micro + 1 where status = 'PAID'",
    /invariant 21 .*: project .*: invoices of \d+ are PAID, by transfers of/,
  ],
  [
    'a cursor that stays behind',
    'update public.chain_cursors set solid_number = solid_number - 11',
    /invariant 22 .*the cursor is at \d+, and the chain at/,
  ],
  [
    'a cursor that stands where it is',
    'update public.chain_cursors set solid_number = 1',
    /invariant 23 .*the cursor stands at 1, and the chain is irreversible up to/,
  ],
  [
    'an order of the time of an outage that is PAID by what came minutes before it',
    `update witness.acknowledged k set asked_at = asked_at + interval '10 minutes', examined_before = 0, dark_since = asked_at - interval '1 hour'`,
    /invariant 24 .*: transfer .* is matched of invoice .* when nobody had seen the chain since/,
  ],
  [
    'an order that is told to be paid by what came before',
    `update public.transfers set kind = 'unmatched', invoice_id = null, reserved_micro = null;
     update witness.acknowledged set examined_before = (select max(n) from witness.examined)`,
    /invariant 24 .*: invoice.paid tells of .* was examined before it was asked for/,
  ],
  [
    'a payment that waits too long to be recorded',
    `update public.chain_cursors set solid_number = 1;
     update public.invoices set status = 'CONFIRMING', paid_transfer_id = null where status = 'PAID'`,
    /invariant 22 .*; block \d+ pays invoice/,
  ],
];

/** Wrong knowledge in the world's memory, and what must be found. */
const WRONG_STORIES: readonly (readonly [what: string, wrong: (truth: Truth) => Partial<Truth>, found: RegExp])[] = [
  [
    'a secret in the log',
    ({ canaries }) => ({ lines: [`key ${canaries[0]}`] }),
    /invariant 20 .*: a line of the log holds a secret/,
  ],
  [
    'a secret on a page',
    ({ canaries, projects }) => ({ shown: [{ projectId: String(projects[0]?.id), text: `${canaries[0]}` }] }),
    /invariant 20 .*: what a caller was shown holds a secret/,
  ],
  [
    'a webhook for another project',
    ({ received, projects }) => ({
      received: received.map((each) => ({
        ...each,
        projectId: String(projects.find(({ id }) => id !== each.projectId)?.id),
      })),
    }),
    /invariant 19 .*was shown .*, which is of another/,
  ],
  [
    'a webhook of another time',
    ({ received }) => ({ received: received.map((each) => ({ ...each, atMs: each.atMs + 7_200_000 })) }),
    /invariant 14 .*is not fresh/,
  ],
  [
    'a webhook that is signed with another secret',
    ({ received }) => ({ received: received.map((each) => ({ ...each, secrets: [`whsec_${'A'.repeat(43)}=`] })) }),
    /invariant 14 .*no signature verifies/,
  ],
  [
    'a webhook with another id than its body',
    ({ received }) => ({
      received: received.map((each) => ({
        ...each,
        headers: { ...each.headers, 'webhook-id': `evt_${'0'.repeat(26)}` },
      })),
    }),
    /invariant 14 .*the body says evt_[\s\S]*invariant 14 .*there is no such event/,
  ],
];

/** After this long without faults every queue must be empty, even with a slow chain. */
const HOUR_MS = 3_600_000;

test('a day without a planted bug breaks no promise, and books that are wrong in any way are found', {
  timeout: 120_000,
}, async () => {
  const missed: string[] = [];
  const lookFor = async (truth: Truth, what: string, found: RegExp) => {
    const violations = (await check(truth, 'quiet')).join('\n');
    if (!found.test(violations)) missed.push(`${what}: ${violations}`);
  };
  const violations = await liveDay([], async ({ truth }) => {
    for (const [what, sql, found] of WRONG_BOOKS) {
      await truth.query('begin');
      // No trigger or foreign key prevents the change.
      await truth.query('set local session_replication_role = replica');
      await truth.query(sql);
      await lookFor({ ...truth, calmSinceMs: () => truth.nowMs() - HOUR_MS }, what, found);
      await truth.query('rollback');
    }
    for (const [what, wrong, found] of WRONG_STORIES) await lookFor({ ...truth, ...wrong(truth) }, what, found);
    expect(await check(truth, 'quiet')).toEqual([]);
  });
  expect(violations).toEqual([]);
  expect(missed).toEqual([]);
});
