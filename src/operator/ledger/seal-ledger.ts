import type { UnixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { requireOwner, requireSealer } from './require-sealer.ts';
import type { SealsView } from './views.ts';
import { type Walked, walkRows } from './walk-rows.ts';

type Deps = { db: Database; kind: 'external' | 'embedded'; now(): UnixMs; onProgress(text: string): void };

/**
 * Seals every row that has no MAC, beside services that run. What was changed stays as it is, and is named. Cut off at any point it is
 * finished by running it again. Errors: `CONFIG_INVALID`, `CONFLICT`.
 */
export async function sealLedger({ db, kind, now, onProgress }: Deps, actor: Actor): Promise<SealsView> {
  const sealer = await requireSealer(db);
  await requireOwner(db, kind);
  const walked = await walkRows({ db, sealer, onProgress }, ({ problem }) => problem === 'unsealed');
  const view = viewSeals(walked);
  const sealed = walked.tallies.reduce((sum, { resealed }) => sum + resealed, 0);
  const ledger = await findLedgerIdentity(db);
  const done = { action: 'ledger.sealed', subject: ledger?.id ?? '', detail: { sealed, good: view.good } } as const;
  await db.transaction((tx) => recordActions(tx, actor, now(), [{ ...done, projectId: null }]));
  return view;
}

/** Looks at every row, or at the first `maxRows` of each table, and changes none. Error: `CONFIG_INVALID`. */
export async function checkSeals(
  { db, onProgress, maxRows }: { db: Sql; maxRows?: number } & Pick<Deps, 'onProgress'>,
  _actor: Actor,
): Promise<SealsView> {
  const sealer = await requireSealer(db);
  const limit = maxRows === undefined ? {} : { maxRows };
  return viewSeals(await walkRows({ db, sealer, onProgress, ...limit }, () => false));
}

function viewSeals({ tallies, wrong }: Walked): SealsView {
  const isGood = tallies.every(({ unsealed, changed, unknownKey }) => unsealed + changed + unknownKey === 0);
  return { good: isGood, tables: tallies, wrong };
}
