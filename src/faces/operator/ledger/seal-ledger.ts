import { setTimeout as delay } from 'node:timers/promises';
import { AppError, configInvalid, conflict, invalidArgument, notFound } from '../../../core/domain/errors.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { hasAlarm } from '../../../core/store/chain/alarms.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findLedgerIdentity } from '../../../core/store/db/ledger-identity.ts';
import { coveredValues, type OpenedSeal, type Sealer } from '../../../core/store/db/seal.ts';
import {
  mayReseal,
  type Resealed,
  SEALED_ROWS,
  type SealedRows,
  type StoredRow,
} from '../../../core/store/db/sealed-rows.ts';
import { modeOf } from '../../../core/store/db/seals.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/problems.ts';
import { recordAction } from '../record-actions.ts';

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
  throw configInvalid`row seals are turned off here: set QUITTANCE_ROW_MACS to warn or require, and QUITTANCE_MASTER_KEY to the service's key`;
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

/** Returns whether Quittance uses no row of this ledger without a valid seal. `rowMacs` is the setting `QUITTANCE_ROW_MACS`. */
export async function requiresSealsHere(db: Database, rowMacs: 'off' | Parameters<typeof modeOf>[0]): Promise<boolean> {
  const ledger = await findLedgerIdentity(db);
  return ledger !== null && rowMacs !== 'off' && modeOf(rowMacs, ledger.id) === 'require';
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
async function selectChangedRow({ db, kind }: AcceptRowDeps, name: string): Promise<ChangedRow> {
  const [table = '', id = ''] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
  const source = SEALED_ROWS.find(({ tables }) => tables.some((each) => each.name === table));
  const place = source?.tables.findIndex((each) => each.name === table) ?? 0;
  const sealed = source?.tables[place];
  if (source === undefined || sealed === undefined) {
    const names = SEALED_ROWS.flatMap(({ tables }) => tables.map((each) => each.name)).join(', ');
    throw invalidArgument`${clip(name)} is not the name of a row: use TABLE:ID, where TABLE is one of ${names}`;
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
  if (row === null) throw notFound`${table} has no row with the id ${clip(id)} that needs a seal`;
  throw conflict`${table}:${id} has a valid seal, so nothing was changed`;
}

function isId({ keyTypes, idPlace }: SealedRows, id: string): boolean {
  return LOOKS_LIKE[keyTypes[idPlace] ?? 'text'].test(id);
}

/**
 * Accepts a row (`TABLE:ID`) in the state that `review` shows to a person: seals it again, records its current state, or records that it was
 * deleted. Throws `INVALID_ARGUMENT`, `NOT_FOUND`, the errors of `review`, or `CONFLICT` if the row has changed since then.
 */
export async function acceptRow(
  deps: AcceptRowDeps,
  actor: Actor,
  name: string,
  review: (row: ChangedRow) => Promise<void>,
): Promise<AcceptedRowView> {
  const { db, now } = deps;
  const row = await selectChangedRow(deps, name);
  await review(row);
  const { table, id, was, source, judged } = row;
  const sealer = await requireSealer(db);
  await db.transaction(async (tx) => {
    const done =
      judged === null ? null : await source.reseal(tx, [resealedRow(sealer, source, { row: judged, due: () => true })]);
    if (done?.length === 0) throw conflict`${table}:${id} was changed in the meantime: run this command again`;
    await recordAction(tx, actor, now(), 'row.accepted', { subject: `${table}:${id}`, detail: { was } });
  });
  return { table, id, was };
}

/** `onProgress` is called from time to time. `maxRows` limits the rows that are read in each table; if it's absent, all are read. */
type ScanDeps = { db: Sql; sealer: Sealer; onProgress(text: string): void; maxRows?: number };

/** The state of a table's rows after a scan. `resealed` is how many of the `sealed` rows got a new MAC. */
type Tally = {
  table: string;
  sealed: number;
  resealed: number;
  unsealed: number;
  changed: number;
  unknownKey: number;
};
type WrongRow = { table: string; id: string; kind: NonNullable<OpenedSeal['problem']> };

/**
 * `wrong` contains the first rows that were changed or whose key isn't configured. `formerKeys` contains the number of intact rows by the
 * id of a key that is no longer used for sealing.
 */
type Scanned = { tallies: Tally[]; wrong: WrongRow[]; formerKeys: Map<string, number> };

/** A row and its seals: for each table the seal and its content, or null if the table needs none. */
type Judged = { key: string; seals: readonly ({ seal: string; opened: OpenedSeal } | null)[] };

/** A person wouldn't read more than this. */
const MAX_WRONG = 100;
/** How often to retry a row that the service is changing at the moment. No row changes this often. */
const TRIES = 10;
const BETWEEN_TRIES_MS = 50;
/** Scanning this many rows takes a few seconds. */
const PROGRESS_ROWS = 100_000;

/** Batches run concurrently: while the database writes one, the next one is read and prepared. */
const LANES = 2;

/**
 * Scans every row of the sealed tables, 1,000 at a time, and gives a new MAC to those that are `due`. Each batch is committed separately.
 * Rows that change in the meantime are read again. Can run at the same time as services and other scans.
 */
export async function scanRows(deps: ScanDeps, due: Due): Promise<Scanned> {
  const walked: Scanned = { tallies: [], wrong: [], formerKeys: new Map() };
  for (const source of SEALED_ROWS) await walkTable(deps, source, { walked, due });
  return walked;
}

type Due = (opened: OpenedSeal) => boolean;

async function walkTable(deps: ScanDeps, source: SealedRows, { walked, due }: { walked: Scanned; due: Due }) {
  const { db, sealer, onProgress, maxRows = Number.POSITIVE_INFINITY } = deps;
  const tallies = source.tables.map(({ name }) => ({
    ...{ table: name, sealed: 0, resealed: 0, unsealed: 0, changed: 0, unknownKey: 0 },
  }));
  walked.tallies.push(...tallies);
  let [asked, seen] = [0, 0];
  const add = (batch: Batch) => {
    for (const [place, tally] of tallies.entries()) {
      tally.resealed += batch.resealed[place] ?? 0;
      for (const { key, seals } of batch.judged)
        count(walked, tally, { id: idOfKey(source, key), opened: seals[place]?.opened, sealer });
    }
    if (Math.floor(seen / PROGRESS_ROWS) < Math.floor((seen + batch.rows) / PROGRESS_ROWS)) {
      const sealed = tallies.reduce((sum, { resealed }) => sum + resealed, 0);
      onProgress(`${tallies[0]?.table}: ${seen + batch.rows} rows checked, ${sealed} sealed now`);
    }
    seen += batch.rows;
  };
  const underWay: Promise<Batch>[] = [];
  let rows = await source.read(db, source.start);
  for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
    const batch = walkBatch(deps, source, { rows, due });
    // An error of the batch is reported where the batch is awaited.
    batch.catch(() => undefined);
    underWay.push(batch);
    asked += rows.length;
    const next = asked < maxRows ? source.read(db, last.key) : [];
    const [done, read] = await Promise.all([underWay.length < LANES ? null : underWay.shift(), next]);
    if (done) add(done);
    rows = read;
  }
  for (const batch of underWay) add(await batch);
}

/** `rows` is the number of rows, `judged` contains their final state, and `resealed` is how many got a new MAC in each table. */
type Batch = { rows: number; judged: Judged[]; resealed: number[] };

async function walkBatch(
  { db, sealer }: ScanDeps,
  source: SealedRows,
  { rows, due }: { rows: readonly StoredRow[]; due: Due },
): Promise<Batch> {
  const batch: Batch = { rows: rows.length, judged: [], resealed: source.tables.map(() => 0) };
  let judged = rows.map((row) => judge(sealer, source, row));
  for (let attempt = 1; ; attempt += 1) {
    const isDue = (row: Judged) => row.seals.some((one) => one !== null && due(one.opened));
    const given = judged.filter(isDue).map((row) => resealedRow(sealer, source, { row, due }));
    const done = new Set(given.length === 0 ? [] : await source.reseal(db, given));
    const left: Judged[] = [];
    for (const row of judged) {
      if (done.has(row.key)) batch.judged.push(asSealed(row, { sealer, due, resealed: batch.resealed }));
      else (isDue(row) ? left : batch.judged).push(row);
    }
    if (left.length === 0 || attempt === TRIES) {
      batch.judged.push(...left);
      return batch;
    }
    await delay(BETWEEN_TRIES_MS);
    judged = [];
    for (const { key } of left) {
      const row = (await source.find(db, idOfKey(source, key))).find((each) => each.key === key);
      if (row !== undefined) judged.push(judge(sealer, source, row));
    }
  }
}

function judge(sealer: Sealer, { tables }: SealedRows, { key, seals }: StoredRow): Judged {
  const opened = tables.map((table, place) => {
    const seal = seals[place] ?? null;
    return seal === null ? null : { seal, opened: sealer.open(table, seal) };
  });
  return { key, seals: opened };
}

function asSealed(
  { key, seals }: Judged,
  { sealer, due, resealed }: { sealer: Sealer; due: Due; resealed: number[] },
): Judged {
  const now = seals.map((one, place) => {
    if (one === null || !due(one.opened)) return one;
    resealed[place] = (resealed[place] ?? 0) + 1;
    return { ...one, opened: { ...one.opened, problem: null, keyId: sealer.keyId() } };
  });
  return { key, seals: now };
}

/** Returns a row with new MACs, made with the current key for the contents that were read. */
function resealedRow(sealer: Sealer, { tables }: SealedRows, { row, due }: { row: Judged; due: Due }): Resealed {
  const seals = tables.map((table, place) => {
    const one = row.seals[place] ?? null;
    if (one === null || !due(one.opened)) return null;
    const values = coveredValues(table, one.opened);
    const fields = Object.keys(table.fields).map((name, at) => [name, values[at] ?? null] as const);
    return { seal: one.seal, mac: sealer.seal(table, Object.fromEntries(fields)).toString('hex') };
  });
  return { key: row.key, seals };
}

/** The id of the row, which is part of its key. */
function idOfKey({ idPlace }: Pick<SealedRows, 'idPlace'>, key: string): string {
  return key.split('/')[idPlace] ?? key;
}

function count(
  walked: Scanned,
  tally: Tally,
  { id, opened, sealer }: { id: string; opened: OpenedSeal | undefined; sealer: Sealer },
): void {
  if (opened === undefined) return;
  const { problem, keyId } = opened;
  if (problem === null) {
    tally.sealed += 1;
    if (keyId !== null && keyId !== sealer.keyId())
      walked.formerKeys.set(keyId, (walked.formerKeys.get(keyId) ?? 0) + 1);
    return;
  }
  tally[problem === 'unknown-key' ? 'unknownKey' : problem] += 1;
  if (walked.wrong.length < MAX_WRONG) walked.wrong.push({ table: tally.table, id, kind: problem });
}
