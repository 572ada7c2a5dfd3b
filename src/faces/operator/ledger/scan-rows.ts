import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../../core/store/db/database.ts';
import { coveredValues, type OpenedSeal, type Sealer } from '../../../core/store/db/seal.ts';
import { type Resealed, SEALED_ROWS, type SealedRows, type StoredRow } from '../../../core/store/db/sealed-rows.ts';

/** `onProgress` is called from time to time. `maxRows` limits the rows that are read in each table; if it's absent, all are read. */
export type ScanDeps = { db: Sql; sealer: Sealer; onProgress(text: string): void; maxRows?: number };

/** The state of a table's rows after a scan. `resealed` is how many of the `sealed` rows got a new MAC. */
export type Tally = {
  table: string;
  sealed: number;
  resealed: number;
  unsealed: number;
  changed: number;
  unknownKey: number;
};
export type WrongRow = { table: string; id: string; kind: NonNullable<OpenedSeal['problem']> };

/**
 * `wrong` contains the first rows that were changed or whose key isn't configured. `formerKeys` contains the number of intact rows by the
 * id of a key that is no longer used for sealing.
 */
export type Scanned = { tallies: Tally[]; wrong: WrongRow[]; formerKeys: Map<string, number> };

/** A row and its seals: for each table the seal and its content, or null if the table needs none. */
export type Judged = { key: string; seals: readonly ({ seal: string; opened: OpenedSeal } | null)[] };

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

export function judge(sealer: Sealer, { tables }: SealedRows, { key, seals }: StoredRow): Judged {
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
export function resealedRow(sealer: Sealer, { tables }: SealedRows, { row, due }: { row: Judged; due: Due }): Resealed {
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
