import { addressColumn } from '../../store/db/address-column.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count } from '../../store/db/statement.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';

export const readDatabaseClock = answerOf(
  'doctor-clock',
  { at: 'timestamptz' },
  'select clock_timestamp() as at',
  () => [],
  ([row]) => row?.at ?? 0,
);

const server = {
  version: 'text',
  versionNumber: 'int4',
  isSuper: 'bool',
  mayInsert: 'bool?',
  mayDelete: 'bool?',
  fsync: 'text',
  fullPageWrites: 'text',
  synchronousCommit: 'text',
  checksums: 'text',
  used: count,
  most: 'int4',
} as const;

/** What the server says of itself, and what this user may do there. */
export const readServer = answerOf(
  'doctor-server',
  server,
  `select current_setting('server_version') as version, current_setting('server_version_num')::int4 as version_number,
     (select rolsuper from pg_roles where rolname = current_user) as is_super,
     has_table_privilege(to_regclass('invoices')::oid, 'insert') as may_insert,
     has_table_privilege(to_regclass('invoices')::oid, 'delete') as may_delete,
     current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
     current_setting('synchronous_commit') as synchronous_commit, current_setting('data_checksums') as checksums,
     (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
     current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4 as most`,
  () => [],
  ([row]) => {
    if (row === undefined) throw new Error('the server said nothing of itself');
    return row;
  },
);

/** Of each project as many of its newest outgoing transfers are looked at, and of each address so many of those. */
const [OF_PROJECT, OF_ADDRESS] = [1000, 20];
const SWEPT_WITHIN = '6 hours';
const LEAST_SWEEPS = 3;
const LEAST_SENDERS = 3;

/**
 * Addresses in use whose money always left soon, all that had come since the last time and to one place, after payments of several senders:
 * as an exchange sweeps the address that it gives a customer to deposit to. At most ten.
 */
export const findSwept = rowsOf(
  'doctor-swept',
  { address: 'address', projectId: 'uuid', sweeps: count, toAddress: 'text' },
  `select ${addressColumn('a')} as address, a.project_id, count(*) as sweeps, min(s.to_address) as to_address
   from projects p
   cross join lateral (select distinct n.address_id from (
     select o.address_id from outgoing_transfers o where o.project_id = p.id
     order by o.block_number desc, o.tx_id desc, o.log_index desc limit ${OF_PROJECT}) n) met
   join addresses a on a.id = met.address_id and a.retired_at is null
   cross join lateral (
     select o.to_address, o.amount_micro, o.block_number, o.block_time, lag(o.block_number, 1, -1::int8) over (order by o.block_number) as since
     from (select * from outgoing_transfers o where o.address_id = a.id and ${outgoingStands('o')}
           order by o.block_number desc limit ${OF_ADDRESS}) o) s
   cross join lateral (
     select sum(t.amount_micro) as micro, min(t.block_time) as first_at from transfers t
     where t.address_id = a.id and t.block_number > s.since and t.block_number <= s.block_number and ${stands('t')}) came
   where came.micro = s.amount_micro and s.block_time - came.first_at < interval '${SWEPT_WITHIN}'
   group by a.id
   having count(*) >= ${LEAST_SWEEPS} and count(distinct s.to_address) = 1
     and (select count(distinct f.from_address) from (
       select t.from_address from transfers t where t.address_id = a.id order by t.block_number desc limit 1000) f) >= ${LEAST_SENDERS}
   limit 10`,
  () => [],
);
