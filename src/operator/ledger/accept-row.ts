import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { hasAlarm } from '../../store/chain/alarms.ts';
import type { Database } from '../../store/db/database.ts';
import { coveredValues } from '../../store/db/seal.ts';
import { SEALED_ROWS, type SealedRows } from '../../store/db/sealed-rows.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { recordActions } from '../record-actions.ts';
import { requireOwner, requireSealer } from './require-sealer.ts';
import type { AcceptedRowView } from './views.ts';
import { type Judged, judge, resealedRow } from './walk-rows.ts';

type Deps = { db: Database; kind: 'external' | 'embedded'; now(): UnixMs };

/** A row that is not as it was sealed, with what its MAC covers; `judged: null` where the inventory missed it, or what it said. */
export type ChangedRow = AcceptedRowView & {
  fields: readonly (readonly [name: string, value: string | null])[];
  source: SealedRows;
  judged: Judged | null;
};

const LOOKS_LIKE = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  int8: /^\d{1,18}$/,
  text: /^[^/]{1,200}$/,
  // The longest are the ids of passkeys.
  bytea: /^([0-9a-f]{2}){1,1023}$/,
};

/** Finds a row by `TABLE:ID`, as an alarm and a check of the seals name it. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`, `CONFLICT`. */
export async function selectChangedRow({ db, kind }: Deps, name: string): Promise<ChangedRow> {
  const [table = '', id = ''] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
  const source = SEALED_ROWS.find(({ tables }) => tables.some((each) => each.name === table));
  const place = source?.tables.findIndex((each) => each.name === table) ?? 0;
  const sealed = source?.tables[place];
  if (source === undefined || sealed === undefined) {
    const names = SEALED_ROWS.flatMap(({ tables }) => tables.map((each) => each.name)).join(', ');
    throw new AppError('INVALID_ARGUMENT', `${clip(name)} names no row: write TABLE:ID, with one of ${names}`);
  }
  const sealer = await requireSealer(db);
  await requireOwner(db, kind);
  const rows = isId(source, id) ? await source.find(db, id) : [];
  // Of this table alone.
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
  if (row === null) throw new AppError('NOT_FOUND', `no row of ${table} that needs a seal has the id ${clip(id)}`);
  throw new AppError('CONFLICT', `${table}:${id} is as it was sealed: nothing was changed`);
}

function isId({ keyTypes, idPlace }: SealedRows, id: string): boolean {
  return LOOKS_LIKE[keyTypes[idPlace] ?? 'text'].test(id);
}

/** Seals a row as somebody saw it, or takes it as it is, or as gone. Error: `CONFLICT`: it is not so any more. */
export async function acceptRow({ db, now }: Deps, actor: Actor, row: ChangedRow): Promise<AcceptedRowView> {
  const { table, id, was, source, judged } = row;
  const sealer = await requireSealer(db);
  await db.transaction(async (tx) => {
    const done =
      judged === null ? null : await source.reseal(tx, [resealedRow(sealer, source, { row: judged, due: () => true })]);
    if (done?.length === 0) {
      throw new AppError('CONFLICT', `${table}:${id} was changed while you looked at it: run this again`);
    }
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'row.accepted', subject: `${table}:${id}`, detail: { was } },
    ]);
  });
  return { table, id, was };
}
