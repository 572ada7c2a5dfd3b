import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, type Row } from '../../store/db/statement.ts';

const columns = {
  what: 'text',
  network: 'text',
  projectId: 'uuid',
  kind: 'text',
  count: 'int8',
  micro: 'numeric',
} as const;

/**
 * A sum over a ledger: the number of rows and their money (micro-USDT). `kind` is the status of invoices, the kind of transfers,
 * the type of events, the policy of addresses.
 */
export type LedgerTotal = Row<typeof columns>;

/** The totals of the whole ledger, in one order. Reads every invoice, transfer and event: seconds for a million. */
export const sumLedger = rowsOf(
  'backup-totals',
  columns,
  `select t.what, t.network, t.project_id, t.kind, t.count, t.micro from (
     select 'invoice' as what, network, project_id, status as kind, count(*), sum(payable_micro) as micro
     from invoices group by network, project_id, status
     union all
     select 'transfer', network, project_id, kind, count(*), sum(amount_micro) from transfers group by network, project_id, kind
     union all
     select 'outgoing', network, project_id, 'outgoing', count(*), sum(amount_micro)
     from outgoing_transfers group by network, project_id
     union all
     select 'event', network, project_id, type, count(*), 0 from events group by network, project_id, type
     union all
     select 'address', network, project_id, policy, count(*), 0 from addresses group by network, project_id, policy) t
   order by t.what, t.network, t.project_id, t.kind`,
  () => [],
);

const cursor = { network: 'text', block: count, time: 'timestamptz' } as const;

export type LedgerCursor = Row<typeof cursor>;

/** Up to which block a ledger has recorded each network. */
export const findCursors = rowsOf(
  'backup-cursors',
  cursor,
  'select network, solid_number as block, solid_time as time from chain_cursors order by network',
  () => [],
);

/** The ids of the master keys that opened what is sealed in the database. */
export const findEncryptionKeys = answerOf(
  'backup-master-keys',
  { id: 'text' },
  `select master_key_id as id from webhook_secrets union
   select master_key_id from receipt_keys where master_key_id is not null order by id`,
  () => [],
  (rows) => rows.map(({ id }) => id),
);
