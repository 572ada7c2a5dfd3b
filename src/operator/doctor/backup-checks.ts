import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DAY_MS } from '../../domain/capacity.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import { limitOfAge } from '../backup/backup-ages.ts';
import { isAsDigestSays } from '../backup/backup-directory.ts';
import { admitBackup } from '../backup/backup-mac.ts';
import { checkBackup } from '../backup/backup-read.ts';
import { findNewestBackup } from '../backup/find-backup.ts';
import { atStake, type Check, type Finding, failed, good, type Look, skipped, spell, warning } from './check.ts';

/** As the console says it. */
const OLD_MS = 7 * DAY_MS;
/** Larger ones take longer than a check may. */
const MAX_READ_BYTES = 256 * 1024 ** 2;

const MAKE = say`Schedule "${{ command: 'backup' }}" with a timer, and keep the backups on another machine: see docs/backup.md.`;
const SEE_WHY =
  'Check the alarm "backup-failed" and the logs of the processes with the role watcher, which make backups: see docs/backup.md.';

/** The newest backup that this program made, as its ledger recorded it. */
const findNewest = ({ read }: Look) => read(findNewestBackup);

export const backupAge: Check = {
  name: 'backup-age',
  needs: 'schema',
  look: async (look) => {
    const { backups } = look.settings;
    const backup = await findNewest(look);
    const judge = (says: string): Finding => {
      if (backups !== null)
        return atStake(look, `${says}, and ${backups.directory} is set for scheduled ones`, SEE_WHY);
      if (look.database().kind === 'embedded') return atStake(look, says, MAKE);
      // A server of one's own has means of its own, which are not seen from here.
      return warning(`${says}; backups made with PostgreSQL's own tools aren't visible here`, MAKE);
    };
    if (backup === null) return judge('Quittance has made no backup');
    const age = look.now() - backup.madeAt;
    const says = `the newest backup by Quittance is ${spell(age)} old`;
    return age > (backups === null ? OLD_MS : limitOfAge(backups.intervalMs)) ? judge(says) : good(says);
  },
};

export const backupVerified: Check = {
  name: 'backup-verified',
  needs: 'schema',
  look: async (look) => {
    const backup = await findNewest(look);
    if (backup === null) return skipped('Quittance has made no backup');
    const { file } = backup;
    const verifiedAt = backup.verifiedAt && toIso(backup.verifiedAt);
    const verify = say`Verify it completely: "${{ command: 'backup', input: { verify: file } }}".`;
    const found = await stat(file).catch(() => null);
    if (found === null) {
      const says = `${file} is not here`;
      if (verifiedAt === null) return warning(`${says}, and it was never verified completely`, verify);
      const once = `${says}; it was verified at ${verifiedAt}`;
      // Where its directory is set, it was made to stay there.
      return dirname(file) === look.settings.backups?.directory ? warning(once, MOUNT) : good(once);
    }
    if (found.size > MAX_READ_BYTES) {
      return verifiedAt === null
        ? warning(`${file} is too large to check here, and it was never verified completely`, verify)
        : good(`${file} was verified at ${verifiedAt}`);
    }
    return readBackup(look, { file, verifiedAt });
  },
};

const MOUNT =
  'If this machine made the backup, mount its disk again or find out who deleted it. If another machine made it, run this command there.';

async function readBackup(
  { settings }: Look,
  { file, verifiedAt }: { file: string; verifiedAt: string | null },
): Promise<Finding> {
  const keyRing = await openKeyRing(settings, { mayCreate: false });
  const verify = say`Verify it completely: "${{ command: 'backup', input: { verify: file } }}".`;
  const anew = say`Make a new backup now: "${{ command: 'backup' }}". Find out what happened to this one.`;
  if ((await isAsDigestSays(file)) === false)
    return failed(`${file} was changed after it was verified: ${file}.sha256 contains another digest`, anew);
  try {
    const { authenticity } = await checkBackup(file, { keyRing });
    admitBackup(file, authenticity, false);
    if (verifiedAt !== null) return good(`${file} is complete and authentic, and was verified at ${verifiedAt}`);
    return good(`${file} is complete and authentic; a restore was not tested`);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'BACKUP_ENCRYPTED') {
      if (verifiedAt !== null) return good(`${file} is encrypted, and was verified at ${verifiedAt}`);
      return skipped(`${file} is encrypted and can be checked only with its secret key`);
    }
    if (error.code === 'BACKUP_UNAUTHENTICATED') return warning(error.text, verify);
    return failed(error.text, anew);
  }
}
