import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseObject } from '../runtime/parse-object.ts';
import { writePrivateFile } from '../runtime/private-file.ts';
import { findActionsSince } from '../store/access/audit-log.ts';
import type { Sql } from '../store/db/database.ts';
import { findLedgerIdentity } from '../store/db/ledger-identity.ts';

/** Identifies the ledger and each restore recorded in its sealed audit log. */
export type LedgerLine = Readonly<{ ledgerId: string; restores: readonly string[] }>;

/** Returns `null` if the ledger has no id yet. */
export async function findLedgerLine(db: Sql): Promise<LedgerLine | null> {
  const identity = await findLedgerIdentity(db);
  if (identity === null) return null;
  const restores = await findActionsSince(db, 0, [], ['backup.restored', 'backup.accepted']);
  return { ledgerId: identity.id, restores: restores.map(({ seq, actedAt }) => `${seq} ${actedAt}`) };
}

/** The last state that a watch saw. It's stored in a file in the data directory, so an attacker who resets the database can't erase it. */
export type ExternalCheckpoint = {
  /**
   * Returns `null` if there's no state for this ledger, or if an operator has restored the ledger to an earlier state since then. Throws if
   * the file is damaged or unreadable.
   */
  read(line: LedgerLine): Promise<Record<string, unknown> | null>;
  write(line: LedgerLine, seen: object): Promise<void>;
};

/** Returns `null` if there's no data directory on this machine, for example because the database runs elsewhere. */
export async function openExternalCheckpoint(
  dataDir: string | undefined,
  file: string,
): Promise<ExternalCheckpoint | null> {
  if (dataDir === undefined || !(await isThere(dataDir))) return null;
  const path = join(dataDir, file);
  let written: Promise<void> = Promise.resolve();
  return {
    read: async ({ ledgerId, restores }) => {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw error;
      });
      if (text === null) return null;
      const { ledgerId: of, restores: known, ...seen } = parseObject(text);
      if (typeof of !== 'string') {
        throw new Error(
          `${path}, which records the last known state of the ledger, is damaged: remove it if you know the cause`,
        );
      }
      const isRestored = restores.some((restore) => !(Array.isArray(known) && known.includes(restore)));
      return of === ledgerId && !isRestored ? seen : null;
    },
    // Each network has its own watch, so writes to the file have to be sequential.
    write: (line, seen) => {
      const write = () => writePrivateFile(path, `${JSON.stringify({ ...line, ...seen })}\n`);
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
