import { AppError } from '../../../core/domain/errors.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { hasAlarm } from '../../../core/store/chain/alarms.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findLedgerIdentity } from '../../../core/store/db/ledger-identity.ts';
import { coveredValues, type Sealer } from '../../../core/store/db/seal.ts';
import { mayReseal, SEALED_ROWS, type SealedRows } from '../../../core/store/db/sealed-rows.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/problems.ts';
import { recordAction } from '../record-actions.ts';
import { type Judged, judge, resealedRow, type Scanned, scanRows, type Tally, type WrongRow } from './scan-rows.ts';

/** `wrong` contains the first 100 rows that were changed, have no seal, or were sealed with a key that isn't configured. */
export type SealsView = { good: boolean; tables: Tally[]; wrong: WrongRow[] };

/**
 * `missing`: the row is in the inventory but not in the ledger. `put-back`: its seal is valid, but no recorded action left it in this
 * state.
 */
type AcceptedRowView = { table: string; id: string; was: WrongRow['kind'] | 'missing' | 'put-back' };

/** Returns this ledger's sealer. Throws `CONFIG_INVALID`. */
async function requireSealer(db: Pick<Sql, 'sealer'>): Promise<Sealer> {
  const sealer = await db.sealer();
  if (sealer !== null) return sealer;
  throw new AppError(
    'CONFIG_INVALID',
    "row seals are turned off here: set QUITTANCE_ROW_MACS to warn or require, and QUITTANCE_MASTER_KEY to the service's key",
  );
}

/** Throws `CONFLICT` if the database user may not seal existing rows. */
async function requireOwner(db: Database, kind: 'external' | 'embedded'): Promise<void> {
  if (await mayReseal(db)) return;
  throw new AppError(
    'CONFLICT',
    kind === 'embedded'
      ? 'only the owner of the tables can seal existing rows, and no one can connect as the owner while the service runs: stop the service, run this command again, then start the service'
      : 'only the owner of the tables can seal existing rows: set DATABASE_OWNER_URL for this command',
  );
}

type Deps = { db: Database; kind: 'external' | 'embedded'; now(): UnixMs; onProgress(text: string): void };

/**
 * Seals every row that has no MAC, while services keep running. Changed rows are reported, but not touched. An interrupted run can simply
 * be repeated. Throws `CONFIG_INVALID` or `CONFLICT`.
 */
export async function sealLedger({ db, kind, now, onProgress }: Deps, actor: Actor): Promise<SealsView> {
  const sealer = await requireSealer(db);
  await requireOwner(db, kind);
  const walked = await scanRows({ db, sealer, onProgress }, ({ problem }) => problem === 'unsealed');
  const view = viewSeals(walked);
  const sealed = walked.tallies.reduce((sum, { resealed }) => sum + resealed, 0);
  const ledger = await findLedgerIdentity(db);
  const done = { subject: ledger?.id ?? '', detail: { sealed, good: view.good } };
  await db.transaction((tx) => recordAction(tx, actor, now(), 'ledger.sealed', done));
  return view;
}

/** Checks every row, or the first `maxRows` of each table, without changing anything. Throws `CONFIG_INVALID`. */
export async function checkSeals(
  { db, onProgress, maxRows }: { db: Sql; maxRows?: number } & Pick<Deps, 'onProgress'>,
  _actor: Actor,
): Promise<SealsView> {
  const sealer = await requireSealer(db);
  const limit = maxRows === undefined ? {} : { maxRows };
  return viewSeals(await scanRows({ db, sealer, onProgress, ...limit }, () => false));
}

function viewSeals({ tallies, wrong }: Scanned): SealsView {
  const isGood = tallies.every(({ unsealed, changed, unknownKey }) => unsealed + changed + unknownKey === 0);
  return { good: isGood, tables: tallies, wrong };
}

type AcceptRowDeps = { db: Database; kind: 'external' | 'embedded'; now(): UnixMs };

/** A changed row with the fields that its MAC covers. `judged` is `null` if the inventory found the change. */
export type ChangedRow = AcceptedRowView & {
  fields: readonly (readonly [name: string, value: string | null])[];
  source: SealedRows;
  judged: Judged | null;
};

const LOOKS_LIKE = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  int8: /^\d{1,18}$/,
  text: /^[^/]{1,200}$/,
  // Passkeys have the longest ids.
  bytea: /^([0-9a-f]{2}){1,1023}$/,
};

/** Finds a row by `TABLE:ID`, the form used in alarms and seal checks. Throws `INVALID_ARGUMENT`, `NOT_FOUND` or `CONFLICT`. */
export async function selectChangedRow({ db, kind }: AcceptRowDeps, name: string): Promise<ChangedRow> {
  const [table = '', id = ''] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
  const source = SEALED_ROWS.find(({ tables }) => tables.some((each) => each.name === table));
  const place = source?.tables.findIndex((each) => each.name === table) ?? 0;
  const sealed = source?.tables[place];
  if (source === undefined || sealed === undefined) {
    const names = SEALED_ROWS.flatMap(({ tables }) => tables.map((each) => each.name)).join(', ');
    throw new AppError(
      'INVALID_ARGUMENT',
      `${clip(name)} is not the name of a row: use TABLE:ID, where TABLE is one of ${names}`,
    );
  }
  const sealer = await requireSealer(db);
  await requireOwner(db, kind);
  const rows = isId(source, id) ? await source.find(db, id) : [];
  // Only this table's seals matter here.
  const sealedRows = rows.flatMap(({ key, seals }) => {
    const own = seals.map((seal, at) => (at === place ? seal : null));
    return own[place] == null ? [] : [judge(sealer, source, { key, seals: own })];
  });
  const row = sealedRows.find((each) => each.seals[place]?.opened.problem != null) ?? sealedRows[0] ?? null;
  const opened = row?.seals[place]?.opened;
  const values = opened === undefined ? [] : coveredValues(sealed, opened);
  const fields = Object.keys(sealed.fields).map((field, at) => [field, values[at] ?? null] as const);
  if (row !== null && opened !== undefined && opened.problem !== null) {
    return { table, id, was: opened.problem, fields, source, judged: row };
  }
  if (await hasAlarm(db, [`${table}:${id}`, `${table} ${id}`])) {
    const [was, shown] = rows.length === 0 ? (['missing', []] as const) : (['put-back', fields] as const);
    return { table, id, was, fields: shown, source, judged: null };
  }
  if (row === null) throw new AppError('NOT_FOUND', `${table} has no row with the id ${clip(id)} that needs a seal`);
  throw new AppError('CONFLICT', `${table}:${id} has a valid seal, so nothing was changed`);
}

function isId({ keyTypes, idPlace }: SealedRows, id: string): boolean {
  return LOOKS_LIKE[keyTypes[idPlace] ?? 'text'].test(id);
}

/**
 * Accepts a row in the state that the person has seen: seals it again, records its current state, or records that it was deleted. Throws
 * `CONFLICT` if it has changed since then.
 */
export async function acceptRow({ db, now }: AcceptRowDeps, actor: Actor, row: ChangedRow): Promise<AcceptedRowView> {
  const { table, id, was, source, judged } = row;
  const sealer = await requireSealer(db);
  await db.transaction(async (tx) => {
    const done =
      judged === null ? null : await source.reseal(tx, [resealedRow(sealer, source, { row: judged, due: () => true })]);
    if (done?.length === 0) {
      throw new AppError('CONFLICT', `${table}:${id} was changed in the meantime: run this command again`);
    }
    await recordAction(tx, actor, now(), 'row.accepted', { subject: `${table}:${id}`, detail: { was } });
  });
  return { table, id, was };
}
