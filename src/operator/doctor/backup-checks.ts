import { stat } from 'node:fs/promises';
import { DAY_MS } from '../../domain/capacity.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { unixMs } from '../../domain/time.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import { admitBackup } from '../backup/backup-mac.ts';
import { checkBackup } from '../backup/backup-read.ts';
import { showSystem } from '../system/show-system.ts';
import type { SystemView } from '../system/views.ts';
import { atStake, type Check, type Finding, failed, good, type Look, skipped, spell, warning } from './check.ts';

/** As the console says it. */
const OLD_MS = 7 * DAY_MS;
/** Larger ones take longer than a check may. */
const MAX_READ_BYTES = 256 * 1024 ** 2;

/** The newest backup that this program made, as its ledger recorded it. */
async function findNewest({ read, now, actor, nodeVersion }: Look): Promise<SystemView['backup']> {
  const here = { release: nodeVersion, roles: [], startedAt: unixMs(now()) };
  return (await read((tx) => showSystem({ db: tx, now, process: here }, actor))).backup;
}

const MAKE = say`Make one, and keep it on another machine: "${{ command: 'backup' }}", from a timer; see docs/backup.md.`;

export const backupAge: Check = {
  name: 'backup-age',
  needs: 'schema',
  look: async (look) => {
    const backup = await findNewest(look);
    // A server of one's own has means of its own, which are not seen from here.
    const judge = (says: string): Finding => {
      if (look.database().kind === 'embedded') return atStake(look, says, MAKE);
      return warning(`${says}; whether PostgreSQL has backups by means of its own cannot be seen here`, MAKE);
    };
    if (backup === null) return judge('this program has made no backup');
    const age = look.now() - Date.parse(backup.madeAt);
    const says = `the newest backup by this program is ${spell(age)} old`;
    return age > OLD_MS ? judge(says) : good(says);
  },
};

export const backupVerified: Check = {
  name: 'backup-verified',
  needs: 'schema',
  look: async (look) => {
    const backup = await findNewest(look);
    if (backup === null) return skipped('this program has made no backup');
    const { file, verifiedAt } = backup;
    const verify = say`Try it whole: "${{ command: 'backup', input: { verify: file } }}".`;
    const found = await stat(file).catch(() => null);
    if (found === null) {
      const says = `${file} is not here`;
      return verifiedAt === null
        ? warning(`${says}, and nobody examined it whole`, verify)
        : good(`${says}; it was found good at ${verifiedAt}`);
    }
    if (found.size > MAX_READ_BYTES) {
      return verifiedAt === null
        ? warning(`${file} is too large to be read here, and nobody examined it whole`, verify)
        : good(`${file} was found good at ${verifiedAt}`);
    }
    return readBackup(look, { file, verifiedAt });
  },
};

async function readBackup(
  { settings }: Look,
  { file, verifiedAt }: { file: string; verifiedAt: string | null },
): Promise<Finding> {
  const keyRing = await openKeyRing(settings, { mayCreate: false });
  const verify = say`Try it whole: "${{ command: 'backup', input: { verify: file } }}".`;
  try {
    const { authenticity } = await checkBackup(file, { keyRing });
    admitBackup(file, authenticity, false);
    if (verifiedAt !== null) return good(`${file} is whole and ours, and was found good at ${verifiedAt}`);
    return good(`${file} is whole and ours; it was not restored to be tried`);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'BACKUP_ENCRYPTED') {
      if (verifiedAt !== null) return good(`${file} is encrypted, and was found good at ${verifiedAt}`);
      return skipped(`${file} is encrypted: only where its secret key is can it be examined`);
    }
    if (error.code === 'BACKUP_UNAUTHENTICATED') return warning(error.text, verify);
    return failed(error.text, say`Make a new one now: "${{ command: 'backup' }}". Find out what happened to this one.`);
  }
}
