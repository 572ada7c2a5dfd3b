import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseObject } from '../runtime/parse-object.ts';
import { writePrivateFile } from '../runtime/private-file.ts';

/** What a watch saw last, in a file of the data directory: outside the database, so that who puts that back cannot make us forget. */
export type OutsideMark = {
  /** `null`: none is known of this ledger. Error: the file is damaged, or cannot be read. */
  read(ledgerId: string): Promise<Record<string, unknown> | null>;
  write(ledgerId: string, seen: object): Promise<void>;
};

/** `null`: there is no data directory here, as beside a database elsewhere. */
export async function openOutsideMark(dataDir: string | undefined, file: string): Promise<OutsideMark | null> {
  if (dataDir === undefined || !(await isThere(dataDir))) return null;
  const path = join(dataDir, file);
  let written: Promise<void> = Promise.resolve();
  return {
    read: async (ledgerId) => {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw error;
      });
      if (text === null) return null;
      const { ledgerId: of, ...seen } = parseObject(text);
      if (typeof of !== 'string') {
        throw new Error(`${path}, which knows what was seen of the ledger, is damaged: remove it if you know why`);
      }
      return of === ledgerId ? seen : null;
    },
    // Each network has its watch, and a file takes one draft at a time.
    write: (ledgerId, seen) => {
      const write = () => writePrivateFile(path, `${JSON.stringify({ ledgerId, ...seen })}\n`);
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
