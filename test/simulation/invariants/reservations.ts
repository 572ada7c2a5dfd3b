import { fromSql } from './from-sql.ts';

/** The reservations of invoices, and acknowledged invoices. */
export const RESERVATIONS = [
  fromSql({
    number: 1,
    title: 'one invoice per (address, payable amount), for ever',
    when: 'step',
    // By account, because two address rows could have the same one. Includes every acknowledged invoice, whatever happened to its row.
    body: `
      select format('%s micro-USDT to %s are of %s invoices: %s', amount, encode(account, 'hex'), count(*), string_agg(id::text, ', '))
      from (
        select a.account, i.payable_micro as amount, i.id from invoices i join addresses a on a.id = i.address_id
        union select account, payable, invoice_id from witness.acknowledged) reserved
      group by account, amount having count(*) > 1`,
  }),
  fromSql({
    number: 8,
    title: 'same project and key, same invoice',
    when: 'step',
    body: `
      select format('key %s of project %s is of %s invoices: %s', idempotency_key, project_id, count(*), string_agg(id::text, ', '))
      from (
        select project_id, idempotency_key, id from invoices
        union select project_id, idempotency_key, invoice_id from witness.acknowledged) keyed
      group by project_id, idempotency_key having count(*) > 1`,
  }),
  fromSql({
    number: 9,
    title: '(project, externalId) is unique',
    when: 'step',
    body: `
      select format('externalId %s of project %s is of %s invoices: %s', external_id, project_id, count(*), string_agg(id::text, ', '))
      from (
        select project_id, external_id, id from invoices
        union select project_id, external_id, invoice_id from witness.acknowledged) named
      group by project_id, external_id having count(*) > 1`,
  }),
  fromSql({
    number: 10,
    title: 'every acknowledged 201 survives any crash',
    when: 'step',
    body: `
      select case when i.id is null then format('invoice %s of key %s was acknowledged and is gone', k.invoice_id, k.idempotency_key)
        else format('invoice %s was acknowledged as %s, and is %s', i.id,
          jsonb_build_array(k.project_id, k.idempotency_key, k.external_id, encode(k.account, 'hex'), k.payable, k.expires_at),
          jsonb_build_array(i.project_id, i.idempotency_key, i.external_id, encode(a.account, 'hex'), i.payable_micro, i.expires_at)) end
      from witness.acknowledged k
      left join invoices i on i.id = k.invoice_id and i.project_id = k.project_id
      left join addresses a on a.id = i.address_id
      where (i.project_id, i.idempotency_key, i.external_id, a.account, i.payable_micro, i.expires_at)
        is distinct from (k.project_id, k.idempotency_key, k.external_id, k.account, k.payable, k.expires_at)`,
  }),
];
