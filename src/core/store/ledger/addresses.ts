import type { AccountHex, TronAddress } from '@quittance/tron/address';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn, type DamagedAddress, type OwnAddress, readAddress } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, conditionOf, rowsOf } from '../db/rows-of.ts';
import { hexSeal } from '../db/seal.ts';
import { SEALED_ADDRESS } from '../db/sealed-tables.ts';
import { hex, listColumns, maybeText, type Row, type Shape, statement, text } from '../db/statement.ts';

/** Whether Tether has frozen an address, and how certain that is; see migration 0037. */
export type Freeze = 'seen' | 'frozen' | 'lifted';

/** `blocked`: permanently retired. `frozen`: by Tether. `unfrozen`: Tether has unfrozen the address, but it hasn't been activated again. */
export const LIFE_STATUSES = ['active', 'retired', 'blocked', 'frozen', 'unfrozen'] as const;
type Life = { retiredAt: number | null; barredAt?: number | null; freezeState: Freeze | null };

export function lifeStatusOf({ retiredAt, barredAt = null, freezeState }: Life): (typeof LIFE_STATUSES)[number] {
  if (barredAt !== null) return 'blocked';
  if (retiredAt !== null) return 'retired';
  if (freezeState === null) return 'active';
  return freezeState === 'lifted' ? 'unfrozen' : 'frozen';
}

/**
 * The SQL that says whether an address is used for new invoices, which means that it's neither retired nor frozen by Tether. `row` is the
 * prefix for its columns.
 */
export const isInUse = (row: string) => `${row}retired_at is null and ${row}freeze_state is null`;

const columns = {
  id: 'uuid',
  address: 'address',
  policy: text<Policy>(),
  position: 'int4',
  createdAt: 'timestamptz',
  retiredAt: 'timestamptz?',
  freezeState: maybeText<Freeze>(),
  accountKeyId: 'uuid?',
  derivationIndex: 'int4?',
} as const;
const COLUMNS = namesOf(columns);

function namesOf(shape: Shape): string {
  return listColumns(shape).replace(/\baddress\b/, () => `${addressColumn('addresses')} as address`);
}

/** Maximum number of addresses per list. */
export const MAX_LISTED = 10_000;

/** Returns the project's addresses by position, after `afterPosition`, at most `MAX_LISTED`. Positions may have gaps. */
export const listAddresses = rowsOf(
  'address-list',
  columns,
  `select ${COLUMNS} from addresses where project_id = $1 and position > $2 order by position limit ${MAX_LISTED}`,
  (projectId: string, afterPosition: number = 0) => [projectId, afterPosition],
);

type NewAddress = { id: string; account: AccountHex; address: TronAddress };

/**
 * `policy`: `null` means the project's policy. `accountKeyId`: the key that all `entries` were derived from, each with its `index`;
 * otherwise null.
 */
type NewAddresses = {
  projectId: string;
  policy: Policy | null;
  accountKeyId: string | null;
  entries: readonly (NewAddress & { index: number | null })[];
};

/** The only statement that inserts addresses. */
export const ADDING = 'address-insert';

// The accounts are sorted, so that two projects can't deadlock when they add the same accounts.
/**
 * Adds addresses at the end of the project's list, and returns the added ones. All others already belong to a project on this network. If
 * two additions run concurrently, one of them fails, unless both have acquired the project's lock (`lockProject`).
 */
export async function insertAddresses(
  db: Sql,
  { projectId, policy, accountKeyId, entries }: NewAddresses,
): Promise<TronAddress[]> {
  const sealer = await db.sealer();
  const mac = ({ id, account }: NewAddress) => hexSeal(sealer, SEALED_ADDRESS, { id, projectId, account });
  const rows = await db.run(insert, [
    ...[projectId, policy, accountKeyId],
    entries.map(({ id }) => id),
    entries.map(({ account }) => account),
    entries.map(({ address }) => address),
    entries.map(({ index }) => (index === null ? null : BigInt(index))),
    entries.map(mac),
  ]);
  return rows.map(({ address }) => address);
}

const insert = statement(
  ADDING,
  { address: 'address' },
  `insert into addresses (id, project_id, network, account, address, policy, account_key_id, derivation_index, position, mac)
   select e.id, p.id, p.network, decode(e.account, 'hex'), e.address, coalesce($2::text, p.policy), $3::uuid, e.index,
     (select coalesce(max(position), 0) from addresses where project_id = p.id) + e.place::int4,
     decode(e.mac, 'hex')
   from projects p,
     unnest($4::uuid[], $5::text[], $6::text[], $7::int4[], $8::text[]) with ordinality
       e(id, account, address, index, mac, place)
   where p.id = $1
   order by e.account
   on conflict (network, account) do nothing
   returning ${addressColumn('addresses')} as address`,
);

/** Adds one address. Returns `false` if a project on this network already has the address. */
export async function insertAddress(
  db: Sql,
  entry: NewAddress & {
    projectId: string;
    policy?: Policy;
    derivedFrom?: { accountKeyId: string; index: number };
  },
): Promise<boolean> {
  const { id, account, address, projectId, policy = null, derivedFrom } = entry;
  const entries = [{ id, account, address, index: derivedFrom?.index ?? null }];
  const accountKeyId = derivedFrom?.accountKeyId ?? null;
  return (await insertAddresses(db, { projectId, policy, accountKeyId, entries })).length === 1;
}

const ownedColumns = {
  id: 'uuid',
  projectId: 'uuid',
  address: 'address',
  policy: text<Policy>(),
  retiredAt: 'timestamptz?',
  barredAt: 'timestamptz?',
  freezeState: maybeText<Freeze>(),
} as const;

/**
 * An address belonging to any of a network's projects. A blocked address was in a ledger that was restored. Payers may know amounts on it
 * that the restore lost, so it never gets new invoices.
 */
export type OwnedAddress = Row<typeof ownedColumns>;

/** Returns which of the given accounts are addresses of a project on this network, in any order. */
export const findAddresses = rowsOf(
  'address-find',
  ownedColumns,
  `select ${namesOf(ownedColumns)} from addresses
   where network = $1 and account in (select decode(a, 'hex') from unnest($2::text[]) a)`,
  (network: Network, accounts: readonly AccountHex[]) => [network, accounts],
);

const countByPolicy = rowsOf(
  'address-count',
  { projectId: 'uuid', policy: text<Policy>(), active: 'int4', retired: 'int4' },
  `select project_id, policy, (count(*) filter (where ${isInUse('')}))::int4 as active,
     count(retired_at)::int4 as retired
   from addresses where project_id = any($1::uuid[]) group by project_id, policy`,
  (projectIds: readonly string[]) => [projectIds],
);

/** How many active addresses a project has for each policy, and how many retired ones. */
type AddressCounts = { active: Record<Policy, number>; retired: number };

export async function countAddressesByProject(
  db: Sql,
  projectIds: readonly string[],
): Promise<Map<string, AddressCounts>> {
  const byProject = new Map(projectIds.map((id) => [id, noAddresses()]));
  for (const row of await countByPolicy(db, projectIds)) {
    const counts = byProject.get(row.projectId);
    if (counts === undefined) continue;
    counts.active[row.policy] = row.active;
    counts.retired += row.retired;
  }
  return byProject;
}

export async function countAddresses(db: Sql, projectId: string): Promise<AddressCounts> {
  return (await countAddressesByProject(db, [projectId])).get(projectId) ?? noAddresses();
}

function noAddresses(): AddressCounts {
  return { active: { tail: 0, 'tail-4': 0, 'tail-3': 0, exact: 0 }, retired: 0 };
}

/** Retires addresses (by UUID), so that they get no new invoices but are still watched. Returns the addresses that were active. */
export const markRetired = answerOf(
  'address-retire',
  { id: 'uuid' },
  'update addresses set retired_at = $2 where id = any($1::uuid[]) and retired_at is null returning id',
  (ids: readonly string[], retiredAt: UnixMs) => [ids, new Date(retiredAt)],
  (rows) => new Set(rows.map(({ id }) => id)),
);

/** Whether a project has or ever had an address. Addresses are never deleted. */
export const hasAddresses = conditionOf(
  'address-any',
  'exists (select from addresses where project_id = $1)',
  (projectId: string) => [projectId],
);

const listAllTexts = rowsOf(
  'address-all-texts',
  { id: 'uuid', projectId: 'uuid', account: hex<AccountHex>(), address: text<TronAddress>(), isRetired: 'bool' },
  `select id, project_id, encode(account, 'hex') as account, address, retired_at is not null as is_retired from addresses
   where network = $1 and id > $2 order by id limit ${MAX_LISTED}`,
  (network: Network, after: string) => [network, after],
);

/** Returns all of a network's addresses as they are stored, in batches. The caller must check whether each text matches its account. */
export async function* listStored(db: Sql, network: Network): AsyncGenerator<(OwnAddress & { isRetired: boolean })[]> {
  for (let after: string | undefined = FIRST_UUID; after !== undefined; ) {
    const rows: (Omit<OwnAddress, 'network'> & { id: string; isRetired: boolean })[] = await listAllTexts(
      db,
      network,
      after,
    );
    yield rows.map((row) => ({ ...row, network }));
    after = rows.length === MAX_LISTED ? rows.at(-1)?.id : undefined;
  }
}

const listTexts = rowsOf(
  'address-texts',
  { id: 'uuid', address: 'text' },
  `select id, ${addressColumn('addresses')} as address from addresses where network = $1 and id > $2 order by id limit 500`,
  (network: Network, after: string) => [network, after],
);

const FIRST_UUID = '00000000-0000-0000-0000-000000000000';

/** Returns up to `limit` of a network's addresses whose text doesn't match their account, in any order. */
export async function findDamagedAddresses(db: Sql, network: Network, limit: number): Promise<DamagedAddress[]> {
  const damaged: DamagedAddress[] = [];
  for (let after: string | undefined = FIRST_UUID; after !== undefined && damaged.length < limit; ) {
    const rows: { id: string; address: string }[] = await listTexts(db, network, after);
    for (const { address } of rows) {
      const read = readAddress(address);
      if (read.kind === 'damaged') damaged.push(read);
    }
    after = rows.at(-1)?.id;
  }
  return damaged.slice(0, limit);
}
