import { fromSql } from './from-sql.ts';

/** The contract's table, stated independently of the program's, so that a mistake in that is found. Nothing leads away from PAID. */
const ALLOWED = [
  ['', 'PENDING'],
  ['PENDING', 'CONFIRMING'],
  ['PENDING', 'PAID'],
  ['PENDING', 'EXPIRED'],
  ['CONFIRMING', 'PAID'],
  ['CONFIRMING', 'PENDING'],
  ['CONFIRMING', 'EXPIRED'],
  ['EXPIRED', 'CONFIRMING'],
  ['EXPIRED', 'PAID'],
]
  .map(([before, after]) => `('${before}', '${after}')`)
  .join(', ');

/** How invoices change, and when they may expire. */
export const STATUSES = [
  fromSql({
    number: 4,
    title: 'PAID is never left, and statuses follow the table',
    when: 'step',
    body: `
      select format('invoice %s went from %s to %s', invoice_id, before, after) from witness.transitions
      where (coalesce(before, ''), after) not in (${ALLOWED})
      union all
      select format('invoice %s went from %s to %s, and was %s', invoice_id, before, after, prior)
      from (select *, lag(after) over (partition by invoice_id order by n) as prior from witness.transitions) n
      where before is distinct from prior
      union all
      select format('invoice %s is %s, and last became %s', i.id, i.status, last.after)
      from invoices i
      left join (select distinct on (invoice_id) invoice_id, after from witness.transitions order by invoice_id, n desc) last
        on last.invoice_id = i.id
      where last.after is distinct from i.status`,
  }),
  fromSql({
    number: 17,
    title: 'paid on chain before expiry is never reported as late',
    when: 'step',
    // A transfer exactly at the deadline is in time.
    body: `
      select format('%s of invoice %s says late: %s; its transfer is of %s, and the deadline was %s', e.type, i.id, e.late,
        coalesce(b.time, e.block_time), i.expires_at)
      from witness.events e
      join invoices i on i.id = e.invoice_id
      left join witness.transfers t on t.direction = 'in' and t.tx_id = e.tx_id and t.log_index = e.log_index and e.type = 'invoice.paid'
      left join witness.blocks b on b.number = t.block_number
      where e.type in ('invoice.confirming', 'invoice.paid')
        and (e.late, e.block_time) is distinct from (coalesce(b.time, e.block_time) > i.expires_at, coalesce(b.time, e.block_time))
      union all
      select format('invoice %s (%s until %s) was paid in time, in block %s of %s, and %s', i.id, i.status, i.expires_at, t.block_number, t.block_time,
        case when i.status <> 'PAID' then 'is not PAID' when e.late then 'is reported as late'
          else format('expired when block %s was examined', x.examined_number) end)
      from witness.ours t
      join witness.acknowledged k on k.account = t.account and k.payable = t.payable and k.head_number < t.block_number
      join invoices i on i.id = k.invoice_id
      left join witness.events e on e.invoice_id = i.id and e.type = 'invoice.paid'
      left join witness.transitions x on x.invoice_id = i.id and x.after = 'EXPIRED' and x.examined_number >= t.block_number
        and witness.is_canonical(x.examined_number, x.examined_id)
      where t.direction = 'in' and k.acknowledged_at < witness.appeared_at(t.tx_id, t.log_index) and t.is_due and t.block_time <= i.expires_at and (i.status <> 'PAID' or e.late is not false or x.n is not null)`,
  }),
  fromSql({
    number: 18,
    title: 'nothing expires while blind',
    when: 'step',
    body: `
      select format('invoice %s (until %s) expired when blocks up to %s were examined', i.id, i.expires_at, n.examined_time)
      from witness.transitions n join invoices i on i.id = n.invoice_id
      where n.after = 'EXPIRED' and (n.examined_time >= i.expires_at) is not true
      union all
      select format('invoice %s (until %s) expired while no block after %s could be seen', i.id, i.expires_at, s.from_at)
      from witness.blindness s
      join witness.transitions n on n.after = 'EXPIRED' and n.n > s.after_n and n.n <= s.up_to_n
      join invoices i on i.id = n.invoice_id
      where i.expires_at > s.from_at`,
  }),
];
