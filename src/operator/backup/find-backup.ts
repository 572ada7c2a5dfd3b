import type { UnixMs } from '../../domain/time.ts';
import type { RecordedAction } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';
import { isAsSealed, json, text } from '../../store/db/statement.ts';
import { isUnverified, nameWhenVerified } from './backup-directory.ts';

/** `verifiedAt`: when that very one was last found good. */
export type NewestBackup = { madeAt: UnixMs; file: string; isFinal: boolean; verifiedAt: UnixMs | null };

/** The newest backup that this program made, as the audit log says; a scheduled one is none until it was verified. */
export async function findNewestBackup(db: Sql): Promise<NewestBackup | null> {
  const actions = await listBackupActions(db);
  const good = actions.filter(({ action, detail }) => action === 'backup.verified' && detail.good === true);
  const verifiedAtOf = (subject: string) => good.find((each) => each.subject === subject)?.actedAt ?? null;
  for (const { action, subject, detail, actedAt } of actions) {
    const { file, isFinal = false } = detail;
    // Where seals are not required, a row may say anything.
    if (action !== 'backup.created' || typeof file !== 'string') continue;
    const verifiedAt = verifiedAtOf(subject);
    if (verifiedAt === null && isUnverified(file)) continue;
    return { madeAt: actedAt, file: nameWhenVerified(file), isFinal, verifiedAt };
  }
  return null;
}

/** When a backup was asked for that is not made yet, or `null`. */
export async function findRequestedBackup(db: Sql): Promise<UnixMs | null> {
  const [newest] = (await listBackupActions(db)).filter(({ action }) => action !== 'backup.verified');
  return newest?.action === 'backup.requested' ? newest.actedAt : null;
}

type Detail = { file?: string; isFinal?: boolean; good?: boolean };

/** Of the newest 10,000 actions, the newest first. A scheduled backup that fails is two of them every ten minutes, which is three days. */
const listBackupActions = answerOf(
  'newest-backup',
  {
    action: text<RecordedAction>(),
    subject: 'text',
    detail: json<Detail>(),
    actedAt: 'timestamptz',
    isSound: isAsSealed(SEALED_ACTION),
  },
  `select action, subject, detail::text as detail, acted_at, ${sealColumn(SEALED_ACTION, '')} as is_sound from (select * from operator_actions order by seq desc limit 10000) newest
   where action in ('backup.created', 'backup.verified', 'backup.requested') order by seq desc limit 1000`,
  () => [],
  (rows) => rows.filter(({ isSound }) => isSound),
);
