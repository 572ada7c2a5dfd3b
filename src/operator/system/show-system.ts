import { toIso, type UnixMs } from '../../domain/time.ts';
import type { RecordedAction } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import { findApplied } from '../../store/db/migrate.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';
import { isAsSealed, json, text } from '../../store/db/statement.ts';
import type { Actor } from '../actor.ts';
import type { SystemView } from './views.ts';

/** A process of the service. `release`: the version of this program. */
export type RunningProcess = { release: string; roles: readonly string[]; startedAt: UnixMs };

type Deps = { db: Sql; now(): UnixMs; process: RunningProcess };

/** What runs here, over which database, and how old its last backup is. */
export async function showSystem(
  { db, now, process: { release, roles, startedAt } }: Deps,
  _actor: Actor,
): Promise<SystemView> {
  const applied = await findApplied(db);
  const backups = await listBackupActions(db);
  const made = backups.find(({ action }) => action === 'backup.created');
  const verified = backups.find(
    ({ action, subject, detail }) => action === 'backup.verified' && subject === made?.subject && detail.good === true,
  );
  return {
    ...{ release, node: process.versions.node, postgres: await findServerVersion(db) },
    ...{ schema: applied.at(-1)?.name ?? '', migrations: applied.length },
    ...{ roles: [...roles], startedAt: toIso(startedAt), asOf: toIso(now()) },
    backup:
      made === undefined
        ? null
        : {
            ...{ madeAt: toIso(made.actedAt), file: made.detail.file, isFinal: made.detail.isFinal },
            verifiedAt: verified === undefined ? null : toIso(verified.actedAt),
          },
  };
}

/** Of the database server, as it says itself: `18.1 (Debian 18.1-1)`. */
const findServerVersion = answerOf(
  'system-server-version',
  { version: 'text' },
  `select current_setting('server_version') as version`,
  () => [],
  ([row]) => row?.version ?? '',
);

type Detail = { file: string; isFinal: boolean; good?: boolean };

/** What was done with backups, among the newest 10,000 actions; the newest 100, the newest first. */
const listBackupActions = answerOf(
  'system-backups',
  {
    action: text<RecordedAction>(),
    subject: 'text',
    detail: json<Detail>(),
    actedAt: 'timestamptz',
    isSound: isAsSealed(SEALED_ACTION),
  },
  `select action, subject, detail::text as detail, acted_at, ${sealColumn(SEALED_ACTION, '')} as is_sound from (select * from operator_actions order by seq desc limit 10000) newest
   where action in ('backup.created', 'backup.verified') order by seq desc limit 100`,
  () => [],
  (rows) => rows.filter(({ isSound }) => isSound),
);
