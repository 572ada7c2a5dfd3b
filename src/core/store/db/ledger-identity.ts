import { randomUUID } from 'node:crypto';
import { AppError, configInvalid } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from './database.ts';
import { answerOf, commandOf, conditionOf, rowOf, rowsOf } from './rows-of.ts';
import { type SealedTable, type Sealer, sealColumn, sealOf } from './seal.ts';
import {
  SEALED_ACCOUNT_KEY,
  SEALED_ADDRESS,
  SEALED_CURSOR,
  SEALED_PROOF,
  SEALED_RECEIPT_KEY,
} from './sealed-tables.ts';
import { listColumns, type Row, statement } from './statement.ts';
import { hasProjects } from './tables.ts';

/** `id` (UUID) stays with a ledger wherever it's moved. `isHere` means that this is the database where the ledger was last used. */
type LedgerIdentity = {
  id: string;
  isHere: boolean;
  /** The server's timeline, and the timeline that the ledger was last used on; `null` if the server doesn't reveal it. */
  timeline: number | null;
  formerTimeline: number | null;
  /** Whether a process found that the server was promoted without some of the commits that another server had acknowledged. */
  isLossy: boolean;
  /** Whether the server was promoted, or recovered to an earlier time. */
  isTimelineNew: boolean;
  closedAt: UnixMs | null;
  /** The first derivation index for account keys that are added from now on. */
  firstIndex: number;
};

/**
 * Returns a new ledger's id. The version of this UUID says whether seals were required from the beginning (8) or not (4). A ledger that
 * already has projects is older than its id. Every seal covers the id, so changing the id invalidates all seals. This way, no one can
 * remove the requirement unnoticed, no matter which machines use the ledger.
 */
export async function newLedgerId(db: Sql, isSealed: boolean): Promise<string> {
  const id = randomUUID();
  return isSealed && !(await hasProjects(db))
    ? `${id.slice(0, VERSION_PLACE)}${SEALED_VERSION}${id.slice(VERSION_PLACE + 1)}`
    : id;
}

/** Whether a ledger has required seals from the beginning, according to its id. */
export function requiresSeals(id: string): boolean {
  return id[VERSION_PLACE] === SEALED_VERSION;
}

const [VERSION_PLACE, SEALED_VERSION] = [14, '8'];

/** Whether the schema has a table for ledger identities. */
export const hasLedgerIdentity = conditionOf('ledger-identity-is-there', `to_regclass('ledger_identity') is not null`);

/** The values that distinguish this database from its copies. A copy of the server's files has the same values, so it isn't noticed. */
const marks = { systemIdentifier: 'text?', databaseOid: 'int8', timeline: 'int4?' } as const;

const findServer = rowOf(
  'ledger-server',
  { systemIdentifier: 'text', timeline: 'int4' },
  `select s.system_identifier::text as system_identifier, c.timeline_id as timeline
   from pg_control_system() s, pg_control_checkpoint() c`,
);

// A managed server may not let its users call these functions, and a server that only speaks PostgreSQL's protocol may not have them. An
// error would abort the surrounding transaction, so check the permission first.
const findDatabase = rowOf(
  'ledger-database',
  { oid: 'int8', isTold: 'bool' },
  `select oid::int8 as oid,
     coalesce(has_function_privilege(to_regprocedure('pg_control_system()')::oid, 'execute')
       and has_function_privilege(to_regprocedure('pg_control_checkpoint()')::oid, 'execute'), false) as is_told
   from pg_database where datname = current_database()`,
);

async function readMarks(db: Sql): Promise<Row<typeof marks>> {
  const here = await findDatabase(db);
  if (here === null) throw new Error('the current database is not in pg_database');
  const control = here.isTold ? await findServer(db) : null;
  return { ...(control ?? { systemIdentifier: null, timeline: null }), databaseOid: here.oid };
}

const identity = { id: 'uuid', ...marks, closedAt: 'timestamptz?', firstIndex: 'int4' } as const;

const findMarked = rowOf('ledger-identity', identity, `select ${listColumns(identity)} from ledger_identity`);

/** Returns the ledger's identity, and whether this is where it was last used. Returns `null` before a service's first start. */
export async function findLedgerIdentity(db: Sql): Promise<LedgerIdentity | null> {
  const row = await findMarked(db);
  if (row === null) return null;
  const { id, closedAt, firstIndex } = row;
  const here = await readMarks(db);
  const isSame = (one: unknown, other: unknown) => one === null || other === null || one === other;
  return {
    id,
    timeline: here.timeline,
    formerTimeline: row.timeline,
    isLossy: row.databaseOid === 0n,
    isHere: row.databaseOid === here.databaseOid && isSame(row.systemIdentifier, here.systemIdentifier),
    isTimelineNew: !isSame(row.timeline, here.timeline),
    closedAt,
    firstIndex,
  };
}

/** Returns the ledger's `isLossy`, using a single query. */
export const isLossyLedger = conditionOf('ledger-lossy', 'exists (select from ledger_identity where database_oid = 0)');

const take = statement(
  'ledger-take',
  {},
  `insert into ledger_identity as l (id, system_identifier, database_oid, timeline, first_index) values ($1, $2, $3, $4, $5)
   on conflict (is_only) do update set system_identifier = excluded.system_identifier, database_oid = excluded.database_oid,
     timeline = excluded.timeline, taken_at = now()
     where $6 or $7 and l.database_oid <> 0`,
);

/**
 * Marks the database as the ledger's home. An existing mark keeps its id and first index. `over` says which existing mark may be replaced.
 * With `not-lossy`, this is any mark except the one for a lossy promotion, because another process may set that mark at the same time.
 */
export async function takeLedger(
  db: Sql,
  { id, firstIndex }: Pick<LedgerIdentity, 'id' | 'firstIndex'>,
  over: 'none' | 'not-lossy' | 'any',
): Promise<void> {
  const { systemIdentifier, databaseOid, timeline } = await readMarks(db);
  await db.run(take, [id, systemIdentifier, databaseOid, timeline, firstIndex, over === 'any', over === 'not-lossy']);
}

const close = statement(
  'ledger-close',
  { closedAt: 'timestamptz' },
  'update ledger_identity set closed_at = coalesce(closed_at, now()) returning closed_at',
);

/**
 * After the commit, no process from any release can create an invoice in this database. Waits for transactions that are creating invoices.
 */
export async function closeLedger(tx: Sql): Promise<void> {
  await tx.script('alter table invoices enable trigger invoices_of_a_closed_ledger');
  const rows = await tx.run(close, []);
  if (rows.length !== 1) throw new Error('the ledger has no identity yet');
}

/** The reason for refusing a ledger with `isLossy`. */
export const LOST =
  'this server was promoted, but lacks invoices that the previous primary had acknowledged, so it would assign the amounts of these invoices to other orders. Restore the previous primary if its data still exists; otherwise stop every process and run "quittance restore accept --retire-addresses". See "The database went back" in docs/guides/incidents.md';

/** Refuses a copy, and a ledger that was moved elsewhere. Errors: `DATABASE_COPIED`, `LEDGER_CLOSED`. */
export function refuseForeignLedger({ isHere, isLossy, closedAt }: LedgerIdentity): void {
  if (closedAt !== null) {
    throw new AppError(
      'LEDGER_CLOSED',
      `this ledger was closed by "quittance backup --final" at ${new Date(closedAt).toISOString()}: start the service with the database into which that backup was restored`,
    );
  }
  if (isHere) return;
  if (isLossy) {
    throw new AppError('DATABASE_COPIED', LOST);
  }
  throw new AppError(
    'DATABASE_COPIED',
    'this database is a copy: its ledger was last used in another database, which may have used amounts that are unknown to this copy. If invoices may have been created there after the copy was made, run "quittance restore accept --retire-addresses" and add new addresses. If you are sure that no invoices were created, because the service was stopped before the copy was made and never started again, run "quittance restore accept --nothing-created-since"',
  );
}

/**
 * Runs when a service starts. Marks a new database as its ledger's home. Refuses a copy, and a ledger that was moved elsewhere. `isSealed`
 * makes a new ledger require seals from the beginning. Returns the ledger's id. Errors: `DATABASE_COPIED`, `LEDGER_CLOSED`,
 * `CONFIG_INVALID`.
 */
export async function claimLedger(db: Sql, { isSealed }: { isSealed: boolean }): Promise<string> {
  await takeLedger(db, { id: await newLedgerId(db, isSealed), firstIndex: 0 }, 'none');
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw new Error("the ledger's identity is missing from the database");
  refuseForeignLedger(identity);
  const sealer = await db.sealer();
  if (sealer !== null) await recordProof(db, sealer.keyId());
  return identity.id;
}

/** Tables that every release since the introduction of seals has had, with the same fields. */
const SAMPLED: readonly SealedTable[] = [SEALED_ADDRESS, SEALED_ACCOUNT_KEY, SEALED_RECEIPT_KEY, SEALED_CURSOR];
const SAMPLE_ROWS = 10;

const findParts = answerOf(
  'key-proof-parts',
  { hasProofs: 'bool', hasSeals: 'bool' },
  `select to_regclass('ledger_proofs') is not null as has_proofs, exists (
     select from pg_attribute where attrelid = to_regclass('addresses') and attname = 'mac' and not attisdropped) as has_seals`,
  () => [],
  ([row]) => row ?? { hasProofs: false, hasSeals: false },
);

const readProofs = rowsOf(
  'key-proofs',
  { seal: 'text' },
  `select ${sealColumn(SEALED_PROOF, 'p.')} as seal from ledger_proofs p order by proven_at desc limit 1000`,
);

const readSample = rowsOf(
  'key-proof-sample',
  { place: 'int4', seal: 'text' },
  SAMPLED.map(
    (table, place) =>
      `(select ${place} as place, ${sealColumn(table, 't.')} as seal from ${table.name} t where t.mac is not null limit ${SAMPLE_ROWS})`,
  ).join(' union all '),
);

/**
 * Refuses master keys that have never sealed anything in this ledger. This happens before such a process can report rows as changed or
 * write rows that are sealed with these keys. A ledger without sealed rows accepts any key. Throws `CONFIG_INVALID`.
 */
export async function refuseUnknownKey(sql: Sql, sealer: Sealer): Promise<void> {
  const { hasProofs, hasSeals } = await findParts(sql);
  const proofs = hasProofs ? (await readProofs(sql)).map(({ seal }) => sealer.open(SEALED_PROOF, seal)) : [];
  if (proofs.some(({ problem }) => problem === null)) return;
  const sample = hasSeals ? await readSample(sql) : [];
  const sampled = sample.flatMap(({ place, seal }) => {
    const table = SAMPLED[place];
    return table === undefined ? [] : [sealer.open(table, seal)];
  });
  // A forged proof must not block the start.
  if (sampled.some(({ problem }) => problem === null)) return;
  const met = [...proofs, ...sampled];
  if (met.length === 0) return;
  const keyIds = [...new Set(met.flatMap(({ keyId }) => keyId ?? []))].slice(0, 3).join(', ');
  throw configInvalid`this process's master key (${sealer.keyId()}) did not seal any row of this ledger; the ledger's seals are from ${keyIds}. Nothing was written. Set QUITTANCE_MASTER_KEY to the ledger's key; during a rotation, set it to both keys, separated by a comma. If the key is correct, the table ledger_identity was changed directly`;
}

/** Records that the sealing key belongs to this ledger. */
const recordProof = commandOf(
  'key-proof-record',
  'insert into ledger_proofs (key_id, mac) values ($1, $2) on conflict (key_id) do nothing',
  (keyId: string) => [keyId, sealOf(SEALED_PROOF, { keyId })],
);
