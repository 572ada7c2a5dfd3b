import { LISTED, type Subject } from '../../store/ledger/inventory.ts';
import { findLedgerLine, type LedgerLine, type OutsideMark } from '../outside-mark.ts';
import type { Keeping } from './keeping.ts';

const SUBJECTS: readonly Subject[] = [...LISTED, 'settings'];

/** Where the inventory was seen to end, kept outside the database, so that it is known to a process that begins anew. */
export function createSeenMark({ db, log, seen }: Keeping, mark: OutsideMark | null) {
  let line: LedgerLine | null = null;
  let written = '';
  return {
    /** Once. */
    read: async () => {
      if (mark === null || line !== null) return;
      const found = await findLedgerLine(db);
      if (found === null) return;
      const kept = await mark.read(found).catch((error: unknown) => {
        log.error({ err: error }, 'where the inventory ended, as it was kept in the data directory, is not known');
        return null;
      });
      line = found;
      for (const subject of SUBJECTS) {
        const end = kept?.[subject];
        if (!seen.has(subject) && isEnd(end)) seen.set(subject, end);
      }
    },
    write: async () => {
      const ends = Object.fromEntries(seen);
      const text = JSON.stringify(ends);
      if (mark === null || line === null || text === written) return;
      try {
        await mark.write(line, ends);
        written = text;
      } catch (error) {
        log.warn({ err: error }, 'where the inventory ends could not be kept in the data directory');
      }
    },
  };
}

function isEnd(value: unknown): value is { number: number; bytes: number } {
  if (typeof value !== 'object' || value === null) return false;
  const { number, bytes } = value as Record<string, unknown>;
  return Number.isSafeInteger(number) && Number.isSafeInteger(bytes);
}
