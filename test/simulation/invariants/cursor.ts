import { fromSql } from './from-sql.ts';

/** The watcher's position on the chain, and whether everything recovers when faults stop. */
export const CURSOR = [
  fromSql({
    number: 16,
    title: 'the cursor is contiguous and linked',
    when: 'step',
    // Of linked blocks, only the lower ones can be on the current branch: above a block that isn't, none is.
    body: `
      select format('the cursor stands at block %s (%s), which is not irreversible on the chain', c.solid_number, encode(c.solid_id, 'hex'))
      from chain_cursors c
      where not exists (select from witness.blocks b where b.number = c.solid_number and b.id = c.solid_id and b.time = c.solid_time)
      union all
      select format('the cursor went back from block %s to %s', before, after) from witness.setbacks
      union all
      select format('examined block %s follows %s others above the cursor at %s', h.number, h.place - 1, c.solid_number)
      from (select *, row_number() over (order by number) as place from head_blocks) h
      left join chain_cursors c on c.network = h.network
      where (h.number = c.solid_number + h.place) is not true
      union all
      select format('examined block %s (%s) is on the present branch, and one below it is not', number, encode(block_id, 'hex'))
      from (
        select h.*, t.is_present, bool_or(not t.is_present) over (order by h.number) as is_above_another
        from head_blocks h
        cross join lateral (
          select witness.is_canonical(h.number, h.block_id) or exists (
            select from witness.present p, jsonb_array_elements(p.branch) b
            where (b->>0)::bigint = h.number and b->>1 = encode(h.block_id, 'hex')) as is_present) t) h
      where is_present and is_above_another
      union all
      select format('examined block %s (%s) is of %s, and was recorded with %s', h.number, encode(h.block_id, 'hex'), b.time, h.block_time)
      from head_blocks h
      join (
        select number, id, time from witness.blocks b where b.number > (select min(number) from head_blocks)
        union all
        select (b->>0)::bigint, decode(b->>1, 'hex'), to_timestamp((b->>2)::float8 / 1000)
        from witness.present p, jsonb_array_elements(p.branch) b) b
        on b.number = h.number and b.id = h.block_id
      where b.time <> h.block_time`,
  }),
  fromSql({
    number: 22,
    title: 'when faults stop, queues drain and lag falls below 5 blocks within 60 simulated seconds',
    when: 'step',
    // Work driven by the chain takes block times, which on a slow chain exceed 60 seconds. To save requests, a node that was behind is
    // retried every eighth block time, and irreversible blocks are read every eighth while no payment is expected. On the main network, 12
    // block times are 36 seconds.
    body: `
      select format('%s after the last fault block %s is the newest examined, and the head is %s', p.now - p.calm_since,
        x.examined_number, p.head_number)
      from witness.present p
      cross join lateral (select greatest((select max(number) from head_blocks), (select max(solid_number) from chain_cursors)) as examined_number) x
      where p.now >= p.calm_since + greatest(interval '60 seconds', 12 * p.slot) and (p.head_number - x.examined_number < 5) is not true
      union all
      select format('%s after the last fault the cursor is at %s, and the chain at %s', p.now - p.calm_since, c.solid_number, p.solid_number)
      from witness.present p left join chain_cursors c on c.network = 'devnet'
      where p.now >= p.calm_since + greatest(interval '60 seconds', 12 * p.slot) and (p.solid_number - c.solid_number <= 10) is not true
      union all
      select format('%s after the last fault the cursor is at %s; block %s pays invoice %s, and the chain is at %s', p.now - p.calm_since,
        c.solid_number, t.block_number, i.id, p.solid_number)
      from witness.present p
      join chain_cursors c on c.network = 'devnet'
      join witness.transfers t on t.direction = 'in' and t.block_number > c.solid_number and t.block_number <= p.solid_number - 5
      join addresses a on a.account = t.account
      join invoices i on i.address_id = a.id and i.payable_micro = t.payable and i.status <> 'PAID'
      where p.now >= p.calm_since + greatest(interval '60 seconds', 12 * p.slot)
      union all
      select format('%s after the last fault event %s to endpoint %s is pending, and was due at %s', p.now - p.calm_since, d.event_id, d.endpoint_id,
        greatest(d.next_attempt_at, w.open_until))
      from witness.present p
      join deliveries d on d.status = 'pending'
      join webhook_endpoints w on w.id = d.endpoint_id and w.disabled_at is null
      where p.now >= p.calm_since + interval '60 seconds'
        and greatest(d.next_attempt_at, w.open_until) < p.now - interval '10 seconds'`,
  }),
  fromSql({
    number: 23,
    title: 'nothing that a stranger can put on the chain for less than 10,000 TRX keeps a paid invoice from PAID',
    when: 'quiet',
    // Compares with the true chain and not with the books, which end at the watcher's position. How far behind that may be follows from 22.
    // A transfer that had been examined before the order must not pay it, even if a fork moves it to a later block: promise 24.
    body: `
      select format('invoice %s was paid exactly by %s in block %s and is %s; the chain is irreversible up to %s', i.id,
        encode(t.tx_id, 'hex'), t.block_number, i.status, p.solid_number)
      from witness.present p
      join witness.transfers t on t.direction = 'in' and t.block_number <= p.solid_number - 5
      join witness.acknowledged k on k.account = t.account and k.payable = t.payable and k.head_number < t.block_number
      join invoices i on i.id = k.invoice_id and i.status <> 'PAID'
      where not exists (
        select from witness.appearances a join witness.examined e on e.block_id = a.block_id
        where a.tx_id = t.tx_id and a.log_index = t.log_index and e.n <= k.examined_before)
      union all
      select format('the cursor stands at %s, and the chain is irreversible up to %s', c.solid_number, p.solid_number)
      from witness.present p left join chain_cursors c on c.network = 'devnet'
      where (p.solid_number - c.solid_number <= 10) is not true`,
  }),
];
