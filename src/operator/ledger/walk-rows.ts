import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../store/db/database.ts';
import type { OpenedSeal, Sealer } from '../../store/db/seal.ts';
import { type Resealed, SEALED_ROWS, type SealedRows, type StoredRow } from '../../store/db/sealed-rows.ts';

/** `onProgress` hears now and then how far it is. `maxRows`: no more of each table are looked at; all when absent. */
export type WalkDeps = { db: Sql; sealer: Sealer; onProgress(text: string): void; maxRows?: number };

/** How the rows of a table stand after a walk. `resealed`: those of `sealed` that it gave a MAC. */
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
 * `wrong`: the first rows that are not as they were sealed, or whose key is not at hand. `formerKeys`: how many rows are as they were sealed with
 * a key that seals no more, by its id.
 */
export type Walked = { tallies: Tally[]; wrong: WrongRow[]; formerKeys: Map<string, number> };

export type Judged = { row: StoredRow & { seal: string }; opened: OpenedSeal };

/** As many as a person looks at. */
const MAX_WRONG = 100;
/** A row that the service changes at the moment is looked at again; nothing changes one so often. */
const TRIES = 10;
const BETWEEN_TRIES_MS = 50;
/** Some seconds of work. */
const PROGRESS_ROWS = 100_000;

/**
 * Looks at every row of the sealed tables, 1,000 at a time, and gives those a new MAC that are `due`. Each batch is a transaction of its own
 * and stays done; what is changed meanwhile is looked at again. May run beside services, and beside itself.
 */
export async function walkRows(deps: WalkDeps, due: (opened: OpenedSeal) => boolean): Promise<Walked> {
  const walked: Walked = { tallies: [], wrong: [], formerKeys: new Map() };
  const current = deps.sealer.keyId();
  const { maxRows = Number.POSITIVE_INFINITY } = deps;
  for (const source of SEALED_ROWS) {
    const tally = {
      ...{ table: source.table.name, sealed: 0, resealed: 0, unsealed: 0, changed: 0, unknownKey: 0 },
    };
    walked.tallies.push(tally);
    let after: string | null = source.start;
    for (let seen = 0; after !== null && seen < maxRows; ) {
      const batch: Batch = await walkBatch(deps, source, after, due);
      tally.resealed += batch.resealed;
      for (const judged of batch.judged) count(walked, tally, judged, current);
      if (Math.floor(seen / PROGRESS_ROWS) < Math.floor((seen + batch.read) / PROGRESS_ROWS)) {
        deps.onProgress(`${tally.table}: ${seen + batch.read} rows looked at, ${tally.resealed} sealed now`);
      }
      seen += batch.read;
      after = batch.last;
    }
  }
  return walked;
}

/** `read`: how many rows there were. `judged`: how those stand in the end that need a seal. `last`: `null` behind the last row. */
type Batch = { read: number; judged: Judged[]; resealed: number; last: string | null };

async function walkBatch(
  { db, sealer }: WalkDeps,
  source: SealedRows,
  after: string,
  due: (opened: OpenedSeal) => boolean,
): Promise<Batch> {
  let resealed = 0;
  for (let attempt = 1; ; attempt += 1) {
    const rows = await source.read(db, after);
    const judged = judge(sealer, source, rows);
    const wanted = judged.filter(({ opened }) => due(opened)).map((one) => resealedRow(sealer, source, one));
    const done = new Set(wanted.length === 0 ? [] : await source.reseal(db, wanted));
    resealed += done.size;
    if (done.size < wanted.length && attempt < TRIES) {
      await delay(BETWEEN_TRIES_MS);
      continue;
    }
    const now = judged.map((one) => (done.has(one.row.key) ? asSealed(one, sealer) : one));
    return { read: rows.length, judged: now, resealed, last: rows.at(-1)?.key ?? null };
  }
}

function judge(sealer: Sealer, { table }: SealedRows, rows: readonly StoredRow[]): Judged[] {
  return rows.flatMap(({ key, seal }) =>
    seal === null ? [] : [{ row: { key, seal }, opened: sealer.open(table, seal) }],
  );
}

function asSealed({ row, opened }: Judged, sealer: Sealer): Judged {
  return { row, opened: { ...opened, problem: null, keyId: sealer.keyId() } };
}

/** A row with the MAC that the current key makes of it, as it was read. */
export function resealedRow(sealer: Sealer, { table }: SealedRows, { row, opened }: Judged): Resealed {
  const fields = Object.keys(table.fields).map((name, place) => [name, opened.values[place] ?? null] as const);
  return { ...row, mac: sealer.seal(table, Object.fromEntries(fields)).toString('hex') };
}

/** The id of the row, which is the last part of its key. */
export function idOfKey(key: string): string {
  return key.split('/').at(-1) ?? key;
}

function count(walked: Walked, tally: Tally, { row, opened: { problem, keyId } }: Judged, current: string): void {
  if (problem === null) {
    tally.sealed += 1;
    if (keyId !== null && keyId !== current) walked.formerKeys.set(keyId, (walked.formerKeys.get(keyId) ?? 0) + 1);
    return;
  }
  tally[problem === 'unknown-key' ? 'unknownKey' : problem] += 1;
  if (walked.wrong.length < MAX_WRONG) walked.wrong.push({ table: tally.table, id: idOfKey(row.key), kind: problem });
}
