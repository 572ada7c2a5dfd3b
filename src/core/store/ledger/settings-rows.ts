import type { IdPrefix } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import type { RecordedAction } from '../../domain/recorded-action.ts';
import type { Sql } from '../db/database.ts';
import { rowsOf } from '../db/rows-of.ts';
import { contentColumn, type SealedTable, sealColumn } from '../db/seal.ts';
import {
  SEALED_ACCOUNT_KEY,
  SEALED_ADDRESS,
  SEALED_ADMIN_KEY,
  SEALED_API_KEY,
  SEALED_CHANNEL,
  SEALED_ENDPOINT,
  SEALED_PASSKEY,
  SEALED_PERSON,
  SEALED_PROJECT,
} from '../db/sealed-tables.ts';
import { isAsSealed, maybeHex, type Row } from '../db/statement.ts';

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
 * all. `besides` contains actions on a row that don't change it.
 */
export type SettingTable = {
  table: string;
  /** The part of a row to compare. If it's empty, the comparison covers the sealed values and whether the row has ended. */
  part: string;
  prefix: IdPrefix | null;
  besides: readonly RecordedAction[];
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
  // The sealed values of a key are permanent, so a changed field, such as a note, explains nothing.
  settingsOf(SEALED_API_KEY, 'key', { isEnded: 't.revoked_at is not null', besides: ['key.changed'] }),
  settingsOf(SEALED_ENDPOINT, 'whe', { besides: [...OF_DELIVERIES, 'webhook.enabled', 'webhook.disabled'] }),
  // This is a separate kind because it was added later: a row that isn't on a page yet needs no log entry.
  settingsOf(SEALED_ENDPOINT, 'whe', {
    ...{ part: 'disabled', state: '(t.disabled_at is not null)::text' },
    besides: [...OF_DELIVERIES, 'webhook.changed'],
  }),
  settingsOf(SEALED_ACCOUNT_KEY, null),
  settingsOf(SEALED_ADDRESS, null, {
    ...{ where: 't.network = $1', isEnded: 't.retired_at is not null', account: `encode(t.account, 'hex')` },
  }),
  settingsOf(SEALED_CHANNEL, 'chn', { where: OF_NONE, besides: ['channel.tested'] }),
  settingsOf(SEALED_ADMIN_KEY, 'adm', {
    ...{ where: OF_NONE, isEnded: 't.revoked_at is not null' },
    besides: ['admin-key.changed'],
  }),
  settingsOf(SEALED_PERSON, 'usr', {
    ...{ where: OF_NONE, isEnded: 't.removed_at is not null' },
    besides: ['session.refused', 'passkey.added', 'passkey.removed'],
  }),
  settingsOf(SEALED_PASSKEY, 'usr', {
    ...{
      where: OF_NONE,
      isEnded: 't.removed_at is not null',
      id: `(encode(t.id, 'hex') collate "C")`,
      ownerId: 't.person_id',
    },
    besides: ['session.refused', 'passkey.added', 'user.invited', 'user.joined', 'user.changed'],
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
    besides = [],
  }: Partial<Record<'where' | 'isEnded' | 'account' | 'id' | 'ownerId' | 'part' | 'state', string>> & {
    besides?: readonly RecordedAction[];
  } = {},
): SettingTable {
  const read = rowsOf(
    `inventory-${[table.name.replaceAll('_', '-'), part].filter(Boolean).join('-')}`,
    shape(table),
    `select ${id}::text as id, ${ownerId} as owner_id, ${account} as account, ${state} as state, ${sealColumn(table, 't.')} as seal
     from ${table.name} t where ${where} and ${id} > $2 order by ${id} limit 1000`,
    (network: Network, after: string) => [network, after],
  );
  return { table: table.name, part, prefix, besides, read };
}
