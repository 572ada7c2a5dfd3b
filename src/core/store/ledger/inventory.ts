import type { IdPrefix } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import type { RecordedAction } from '../../domain/recorded-action.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { contentColumn, type SealedTable, sealColumn, sealOf } from '../db/seal.ts';
import {
  SEALED_ACCOUNT_KEY,
  SEALED_ADDRESS,
  SEALED_ADMIN_KEY,
  SEALED_API_KEY,
  SEALED_CHANNEL,
  SEALED_ENDPOINT,
  SEALED_EVENT,
  SEALED_INVOICE,
  SEALED_PAGE,
  SEALED_PAID,
  SEALED_PASSKEY,
  SEALED_PERSON,
  SEALED_PROJECT,
  SEALED_STATUS,
  SEALED_TRANSFER,
  SEALED_WITHDRAWN,
} from '../db/sealed-tables.ts';
import { count, isAsSealed, maybeHex, type Row } from '../db/statement.ts';

/** Tables whose rows are never deleted. */
export const LISTED = ['invoices', 'transfers', 'events'] as const;
export type Listed = (typeof LISTED)[number];
export type Subject = Listed | 'settings';

const page = { id: 'uuid', number: count, content: 'bytea', seal: isAsSealed(SEALED_PAGE), before: 'bytea?' } as const;
/** A page of a network's inventory. `seal` says whether its seal is valid. `before` is the previous page's contents. */
export type InventoryPage = Row<typeof page>;

const PAGE = `select p.id, p.number, p.content, ${sealColumn(SEALED_PAGE, 'p.')} as seal, b.content as before
   from inventory_pages p left join inventory_pages b on b.network = p.network and b.subject = p.subject and b.number = p.number - 1
   where p.network = $1 and p.subject = $2`;

export const findInventoryPage = rowOf(
  'inventory-page',
  page,
  `${PAGE} and p.number = $3`,
  (network: Network, subject: Subject, number: number) => [network, subject, number],
);

export const findLastInventoryPage = rowOf(
  'inventory-page-last',
  page,
  `${PAGE} order by p.number desc limit 1`,
  (network: Network, subject: Subject) => [network, subject],
);

type Written = { id: string; network: Network; subject: Subject; number: number; content: Buffer };

export const insertInventoryPage = commandOf(
  'inventory-page-insert',
  'insert into inventory_pages (id, network, subject, number, content, mac) values ($1, $2, $3, $4, $5, $6)',
  (written: Written) => {
    const { id, network, subject, number, content } = written;
    return [id, network, subject, number, content, sealOf(SEALED_PAGE, written)];
  },
);

/** Replaces a page's contents, unless they have changed since they were read. Returns whether they were replaced. */
export const updateInventoryPage = attemptOf(
  'inventory-page-update',
  'update inventory_pages set content = $2, mac = $3 where id = $1 and content = $4',
  (written: Written, before: Buffer) => [written.id, written.content, sealOf(SEALED_PAGE, written), before],
);

/** Each row is read once, so nothing is cached. */
const once = (table: SealedTable): SealedTable => ({ ...table, isReadOnce: true });
const RANGE = '> $2 and t.id <= $3 order by t.id limit $4';
type Range = { network: Network; after: string; upTo: string; limit: number };
const bindRange = ({ network, after, upTo, limit }: Range) => [network, after, upTo, limit];

// An order with events no longer has its initial status, so it needs a status seal. If someone restores an earlier status together with its
// seal, the number of changes is lower than the number of events.
const statusWithEvents: SealedTable = {
  ...once(SEALED_STATUS),
  needed: (row) => `${row}status <> 'PAID' and (${SEALED_STATUS.needed?.(row)} or told.sequence > 0)`,
};

const ofInvoices = rowsOf(
  'inventory-invoices',
  {
    ...{ id: 'uuid', seal: isAsSealed(once(SEALED_INVOICE)), paid: isAsSealed(once(SEALED_PAID)) },
    withdrawn: isAsSealed(once(SEALED_WITHDRAWN)),
    /** The newest event's number, which the status seal is compared with. */
    eventCount: 'int4',
    statusSeal: isAsSealed(statusWithEvents),
  },
  `with ids as (
     select r.project_id, r.id from projects p cross join lateral (
       select t.project_id, t.id from invoices t where t.project_id = p.id and t.id ${RANGE}) r
     where p.network = $1 order by r.id limit $4)
   select id, ${sealColumn(SEALED_INVOICE, 'i.')} as seal, ${sealColumn(SEALED_PAID, 'i.')} as paid,
     ${sealColumn(SEALED_WITHDRAWN, 'i.')} as withdrawn,
     told.sequence as event_count, ${sealColumn(statusWithEvents, 'i.')} as status_seal
   from ids join invoices i using (project_id, id)
   cross join lateral (
     select coalesce(max(e.sequence), 0) as sequence from events e where e.project_id = i.project_id and e.invoice_id = i.id) told
   order by id`,
  bindRange,
);

const ofTransfers = rowsOf(
  'inventory-transfers',
  { id: 'uuid', unpaidInvoiceId: 'uuid?', seal: isAsSealed(once(SEALED_TRANSFER)) },
  `select t.id, case when t.kind = 'matched' and not exists (
       select from invoices i where i.project_id = t.project_id and i.id = t.invoice_id and i.paid_transfer_id = t.id
         and i.status = 'PAID') then t.invoice_id end as unpaid_invoice_id,
     ${sealColumn(SEALED_TRANSFER, 't.')} as seal
   from transfers t where t.network = $1 and t.id ${RANGE}`,
  bindRange,
);

const ofEvents = rowsOf(
  'inventory-events',
  { id: 'uuid', seal: isAsSealed(once(SEALED_EVENT)) },
  `select t.id, ${sealColumn(SEALED_EVENT, 't.')} as seal from events t where t.network = $1 and t.id ${RANGE}`,
  bindRange,
);

/**
 * `isSealed` means that the seal is valid. `unpaidInvoiceId` is set if the transfer is recorded as paying an invoice, but that invoice
 * isn't marked as `PAID` by it.
 */
type ListedRow = { id: string; isSealed: boolean; unpaidInvoiceId: string | null };

/** Returns a network's next rows, ordered by id, after one id and up to and including another. */
export async function readListed(db: Sql, subject: Listed, range: Range): Promise<ListedRow[]> {
  switch (subject) {
    case 'invoices':
      // The seal for a change that never happened is null, which doesn't count as wrong.
      return (await ofInvoices(db, range)).map(({ id, seal, ...others }) => ({
        ...{ id, isSealed: seal && ![others.paid, others.withdrawn, others.statusSeal].includes(false) },
        unpaidInvoiceId: null,
      }));
    case 'transfers':
      return (await ofTransfers(db, range)).map(({ seal, ...row }) => ({ ...row, isSealed: seal }));
    case 'events':
      return (await ofEvents(db, range)).map(({ id, seal }) => ({ id, isSealed: seal, unpaidInvoiceId: null }));
  }
}

const known = (subject: Listed, from: string) =>
  answerOf(
    `inventory-known-${subject}`,
    { id: 'uuid' },
    `select t.id from ${from} where t.id = any($2::uuid[])`,
    (network: Network, ids: readonly string[]) => [network, ids],
    (rows) => rows.map(({ id }) => id),
  );

/** Returns which of the given ids exist. */
export const FIND_KNOWN: Record<Listed, (db: Sql, network: Network, ids: readonly string[]) => Promise<string[]>> = {
  invoices: known('invoices', 'projects p join invoices t on p.network = $1 and t.project_id = p.id'),
  transfers: known('transfers', '(select * from transfers where network = $1) t'),
  events: known('events', '(select * from events where network = $1) t'),
};

const shape = (table: SealedTable) =>
  ({
    id: 'text',
    ownerId: 'uuid',
    account: maybeHex,
    state: 'text',
    seal: isAsSealed({ ...table, isReadOnce: true }),
  }) as const;

/**
 * A row that people create and change, or a row that describes a person. `id` is a UUID, or hex for a passkey. `ownerId` is the UUID used
 * in the audit log: the row's own, or the person's for a passkey. `state` contains the sealed values, and whether the row is revoked or
 * retired. `account` is set for an address, as hex. `seal` says whether the row's seal is valid; it isn't checked for rows that don't need
 * one.
 */
type SettingRow = Row<ReturnType<typeof shape>>;

/**
 * A kind of settings. `prefix` is the prefix of its ids in the audit log; addresses appear there as text, and account keys don't appear at
 * all. `neutral` contains actions on a row that don't change it.
 */
type SettingTable = {
  table: string;
  /** The part of a row to compare. If it's empty, the comparison covers the sealed values and whether the row has ended. */
  part: string;
  prefix: IdPrefix | null;
  neutral: readonly RecordedAction[];
  /** Returns a network's next 1,000 rows after an id. */
  read(db: Sql, network: Network, after: string): Promise<SettingRow[]>;
};

const OF_PROJECT = 't.project_id in (select id from projects where network = $1)';

/** These rows don't belong to any network, so they are on each network's page. */
const OF_NONE = '$1::text is not null';

/** Actions on an endpoint that don't change its row. */
const OF_DELIVERIES = ['webhook.tested', 'webhook.rotated', 'deliveries.replayed'] as const;

export const SETTING_TABLES: readonly SettingTable[] = [
  settingsOf(SEALED_PROJECT, 'prj', { where: 't.network = $1' }),
  // A key's sealed columns never change, so `key.changed` explains no difference.
  settingsOf(SEALED_API_KEY, 'key', { isEnded: 't.revoked_at is not null', neutral: ['key.changed'] }),
  settingsOf(SEALED_ENDPOINT, 'whe', { neutral: [...OF_DELIVERIES, 'webhook.enabled', 'webhook.disabled'] }),
  // This is a separate kind because it was added later: a row that isn't on a page yet needs no log entry.
  settingsOf(SEALED_ENDPOINT, 'whe', {
    ...{ part: 'disabled', state: '(t.disabled_at is not null)::text' },
    neutral: [...OF_DELIVERIES, 'webhook.changed'],
  }),
  settingsOf(SEALED_ACCOUNT_KEY, null),
  settingsOf(SEALED_ADDRESS, null, {
    ...{ where: 't.network = $1', isEnded: 't.retired_at is not null', account: `encode(t.account, 'hex')` },
  }),
  settingsOf(SEALED_CHANNEL, 'chn', { where: OF_NONE, neutral: ['channel.tested'] }),
  settingsOf(SEALED_ADMIN_KEY, 'adm', {
    ...{ where: OF_NONE, isEnded: 't.revoked_at is not null' },
    neutral: ['admin-key.changed'],
  }),
  settingsOf(SEALED_PERSON, 'usr', {
    ...{ where: OF_NONE, isEnded: 't.removed_at is not null' },
    neutral: ['session.refused', 'passkey.added', 'passkey.removed'],
  }),
  settingsOf(SEALED_PASSKEY, 'usr', {
    ...{
      where: OF_NONE,
      isEnded: 't.removed_at is not null',
      id: `(encode(t.id, 'hex') collate "C")`,
      ownerId: 't.person_id',
    },
    neutral: ['session.refused', 'passkey.added', 'user.invited', 'user.joined', 'user.changed'],
  }),
];

function settingsOf(
  table: SealedTable,
  prefix: IdPrefix | null,
  {
    where = OF_PROJECT,
    isEnded = 'false',
    account = 'null::text',
    id = 't.id',
    ownerId = 't.id',
    part = '',
    state = contentColumn(table, 't.', isEnded),
    neutral = [],
  }: Partial<Record<'where' | 'isEnded' | 'account' | 'id' | 'ownerId' | 'part' | 'state', string>> & {
    neutral?: readonly RecordedAction[];
  } = {},
): SettingTable {
  const read = rowsOf(
    `inventory-${[table.name.replaceAll('_', '-'), part].filter(Boolean).join('-')}`,
    shape(table),
    `select ${id}::text as id, ${ownerId} as owner_id, ${account} as account, ${state} as state, ${sealColumn(table, 't.')} as seal
     from ${table.name} t where ${where} and ${id} > $2 order by ${id} limit 1000`,
    (network: Network, after: string) => [network, after],
  );
  return { table: table.name, part, prefix, neutral, read };
}
