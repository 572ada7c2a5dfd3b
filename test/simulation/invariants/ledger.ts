import { fromSql } from './from-sql.ts';

const TRANSFER = (t: string) => `encode(${t}.tx_id, 'hex') || ':' || ${t}.log_index`;

/** The record of the chain, and the payments from it. */
export const LEDGER = [
  fromSql({
    number: 2,
    title: 'every solid USDT transfer to our addresses is recorded exactly once',
    when: 'step',
    body: `
      select format('%s of %s in block %s is not recorded', ${TRANSFER('t')}, t.amount, t.block_number) from witness.ours t
      where t.direction = 'in' and t.is_due and not exists (
        select from transfers r where r.network = 'devnet' and r.tx_id = t.tx_id and r.log_index = t.log_index)
      union all
      select format('%s is recorded %s times', ${TRANSFER('r')}, count(*)) from transfers r
      group by network, tx_id, log_index having count(*) > 1`,
  }),
  fromSql({
    number: 3,
    title: 'nothing is recorded as solid that is not on the canonical chain',
    when: 'step',
    body: `
      select case when b.id is distinct from r.block_id or b.time <> r.block_time
          then format('%s %s is recorded in block %s (%s), which is not irreversible on the chain', direction, ${TRANSFER('r')},
            r.block_number, encode(r.block_id, 'hex'))
        else format('%s %s of %s is recorded, and the chain has it %s', direction, ${TRANSFER('r')}, r.amount_micro,
          case when t.amount is null then 'not' else format('of %s in block %s', t.amount, t.block_number) end) end
      from (
        select 'in' as direction, tx_id, log_index, block_number, block_id, block_time, address_id, amount_micro from transfers
        union all
        select 'out', tx_id, log_index, block_number, block_id, block_time, address_id, amount_micro from outgoing_transfers) r
      join addresses a on a.id = r.address_id
      left join witness.blocks b on b.number = r.block_number
      left join witness.transfers t using (direction, tx_id, log_index)
      where b.id is distinct from r.block_id or b.time <> r.block_time
        or (t.account, t.amount, t.block_number) is distinct from (a.account, r.amount_micro, r.block_number)`,
  }),
  fromSql({
    number: 5,
    title: 'PAID means exactly one solid, equal, right-contract, right-address transfer',
    when: 'step',
    body: `
      select format('invoice %s is PAID; %s transfers are matched with it, of which %s are of %s to %s on the chain and named as its payment',
        i.id, found.matched, found.real, i.payable_micro, a.address)
      from invoices i
      join addresses a on a.id = i.address_id
      cross join lateral (
        select count(*) as matched, count(*) filter (where r.id = i.paid_transfer_id and exists (
          select from witness.transfers t where t.direction = 'in' and t.tx_id = r.tx_id and t.log_index = r.log_index
            and t.account = a.account and t.amount = i.payable_micro and witness.is_canonical(t.block_number, r.block_id))) as real
        from transfers r where r.invoice_id = i.id and r.kind = 'matched') found
      where i.status = 'PAID' and (found.matched, found.real) <> (1, 1)`,
  }),
  fromSql({
    number: 6,
    title: 'a transfer pays at most one invoice',
    when: 'step',
    body: `
      select format('%s pays %s invoices: %s', ${TRANSFER('r')}, count(*), string_agg(i.id::text, ', '))
      from invoices i join transfers r on r.id = i.paid_transfer_id
      group by r.network, r.tx_id, r.log_index having count(*) > 1
      union all
      select format('%s is matched with %s invoices', ${TRANSFER('r')}, count(*)) from transfers r where kind = 'matched'
      group by r.network, r.tx_id, r.log_index having count(*) > 1`,
  }),
  fromSql({
    number: 7,
    title: 'matched + duplicate + unmatched = ground truth',
    when: 'step',
    // A transfer from before the invoice's acknowledgement may pay it or not. A transfer after the acknowledgement must pay it.
    body: `
      select format('%s of %s in block %s is %s of invoice %s, and should be %s of %s', ${TRANSFER('t')}, t.amount, t.block_number, r.kind,
        r.invoice_id, case when i.id is null then 'unmatched' else 'matched or duplicate' end, i.id)
      from witness.ours t
      join transfers r on r.network = 'devnet' and r.tx_id = t.tx_id and r.log_index = t.log_index
      left join addresses a on a.account = t.account
      left join invoices i on i.address_id = a.id and i.payable_micro = t.payable
      where t.direction = 'in' and r.invoice_id is distinct from i.id and not (r.invoice_id is null and not exists (
        select from witness.acknowledged k where k.invoice_id = i.id and k.head_number < t.block_number
          and k.acknowledged_at < witness.appeared_at(t.tx_id, t.log_index)))
      union all
      select format('%s transfers are tied to invoice %s, of which %s are matched', count(*), r.invoice_id,
        count(*) filter (where r.kind = 'matched'))
      from transfers r where r.invoice_id is not null
      group by r.invoice_id having count(*) filter (where r.kind = 'matched') <> 1
      union all
      select format('%s: the books have %s transfers of %s, and the chain %s of %s', encode(account, 'hex'), booked.transfers, booked.micro,
        real.transfers, real.micro)
      from (
        select a.account, count(*) as transfers, sum(r.amount_micro) as micro
        from transfers r join addresses a on a.id = r.address_id group by a.account) booked
      full join (
        select t.account, count(*) as transfers, sum(t.amount) as micro from witness.ours t
        where t.direction = 'in' and (t.is_due or exists (
          select from transfers r where r.network = 'devnet' and r.tx_id = t.tx_id and r.log_index = t.log_index))
        group by t.account) real using (account)
      where (booked.transfers, booked.micro) is distinct from (real.transfers, real.micro)`,
  }),
  fromSql({
    number: 15,
    title: 'no PAID before solidity under any fork',
    when: 'step',
    body: `
      select format('invoice %s is PAID by block %s (%s), which is not irreversible on the chain', i.id, r.block_number,
        encode(r.block_id, 'hex'))
      from invoices i left join transfers r on r.id = i.paid_transfer_id
      where i.status = 'PAID' and witness.is_canonical(r.block_number, r.block_id) is not true
      union all
      select format('invoice %s became PAID by block %s while the cursor stood at %s', i.id, r.block_number, n.solid_number)
      from witness.transitions n join invoices i on i.id = n.invoice_id join transfers r on r.id = i.paid_transfer_id
      where n.after = 'PAID' and (n.solid_number < r.block_number) is not false`,
  }),
  fromSql({
    number: 24,
    title: 'no transfer from before an order pays it',
    when: 'step',
    // Transfers that had been examined when the order was requested. If the chain wasn't visible, transfers from minutes before that no
    // fork has moved since. Reporting such a payment is as bad as recording it.
    // Left out: a block that a fork replaced, if it was examined before the address was added and another watcher has taken over since. Only
    // the first watcher's memory had the block's transfers to strangers, and no node has the block any more.
    body: `
      select format('%s of invoice %s, in block %s since %s, %s', what.says, k.invoice_id, p.block_number, p.at,
        case when k.is_dark
          then format('which was asked for at %s, when nobody had seen the chain since %s', k.asked_at, k.dark_since)
          else format('was examined before it was asked for at %s', k.asked_at) end)
      from (
        select 'transfer ' || encode(r.tx_id, 'hex') || ' is ' || r.kind as says, r.invoice_id, r.tx_id, r.log_index
        from transfers r where r.invoice_id is not null
        union all
        select e.type || ' tells of ' || encode(e.tx_id, 'hex'), e.invoice_id, e.tx_id, e.log_index from witness.events e
        where e.type in ('invoice.confirming', 'invoice.paid') and e.tx_id is not null) what
      join witness.appearances p on p.tx_id = what.tx_id and p.log_index = what.log_index
      cross join lateral (
        select k.*, coalesce(p.at > k.dark_since and not exists (
          select from witness.appearances l
          where l.tx_id = p.tx_id and l.log_index = p.log_index
            and l.at >= k.asked_at - (select interval '150 seconds' + 4 * slot from witness.present)), false) as is_dark
        from witness.acknowledged k where k.invoice_id = what.invoice_id) k
      where k.is_dark or exists (
          select from witness.examined e where e.n <= k.examined_before
            and (e.block_id = p.block_id and not witness.is_forgotten(e.n, e.block_id, k.account) or e.is_solid and p.block_number <= e.number and witness.is_canonical(p.block_number, p.block_id)))`,
  }),
  fromSql({
    number: 21,
    title: 'the books balance',
    when: 'step',
    // Incoming minus outgoing amounts of each address; requested and paid amounts of each project.
    body: `
      select format('%s: %s by the books, %s on the chain', encode(account, 'hex'), coalesce(booked.micro, 0), coalesce(real.micro, 0))
      from (
        select a.account, sum(moved.micro) as micro from (
          select address_id, amount_micro as micro from transfers
          union all select address_id, -amount_micro from outgoing_transfers) moved
        join addresses a on a.id = moved.address_id group by a.account) booked
      full join (
        select t.account, sum(case t.direction when 'in' then t.amount else -t.amount end) as micro from witness.ours t
        where t.is_due
          or exists (select from transfers r where t.direction = 'in' and r.network = 'devnet' and r.tx_id = t.tx_id and r.log_index = t.log_index)
          or exists (select from outgoing_transfers r
            where t.direction = 'out' and r.network = 'devnet' and r.tx_id = t.tx_id and r.log_index = t.log_index)
        group by t.account) real using (account)
      where coalesce(booked.micro, 0) <> coalesce(real.micro, 0)
      union all
      select format('project %s: invoices of %s are PAID, by transfers of %s', project_id, coalesce(paid.micro, 0), coalesce(came.micro, 0))
      from (select project_id, sum(payable_micro) as micro from invoices where status = 'PAID' group by project_id) paid
      full join (select project_id, sum(amount_micro) as micro from transfers where kind = 'matched' group by project_id) came
        using (project_id)
      where coalesce(paid.micro, 0) <> coalesce(came.micro, 0)`,
  }),
];
