import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseObject } from '../../runtime/parse-object.ts';
import { writePrivateFile } from '../../runtime/private-file.ts';
import type { AuditHead } from '../../store/access/audit-log.ts';

/** The newest entry of the audit log that was looked at here. It stands outside the database, so that who rewrites the log cannot forget it. */
export type HeadMark = {
  /** `null`: none is known of this ledger. Error: the file is damaged, or cannot be read. */
  read(ledgerId: string): Promise<AuditHead | null>;
  write(ledgerId: string, head: AuditHead): Promise<void>;
};

/** `null`: there is no data directory here, as beside a database elsewhere. */
export async function openHeadMark(dataDir: string | undefined): Promise<HeadMark | null> {
  if (dataDir === undefined || !(await isThere(dataDir))) return null;
  const path = join(dataDir, 'audit-head.json');
  let written: Promise<void> = Promise.resolve();
  return {
    read: async (ledgerId) => {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw error;
      });
      if (text === null) return null;
      const found = parseObject(text);
      const { seq, hash } = found;
      if (!Number.isSafeInteger(seq) || typeof hash !== 'string' || typeof found['ledgerId'] !== 'string') {
        throw new Error(
          `${path}, which knows the newest entry of the audit log, is damaged: remove it if you know why`,
        );
      }
      return found['ledgerId'] === ledgerId ? { seq: seq as number, hash } : null;
    },
    // Each network has its watch, and a file takes one draft at a time.
    write: (ledgerId, { seq, hash }) => {
      const write = () => writePrivateFile(path, `${JSON.stringify({ ledgerId, seq, hash })}\n`);
      written = written.then(write, write);
      return written;
    },
  };
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
