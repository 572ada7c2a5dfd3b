import { setTimeout as delay } from 'node:timers/promises';
import { type Loop, startLoop } from '../runtime/loop.ts';
import { type AuditHead, findAuditHead } from '../store/access/audit-log.ts';
import type { Context } from './context.ts';

const LOOK_MS = 60_000;
const LOG_MS = 3_600_000;
/** A stop waits no longer for a database that does not answer. */
const LAST_LOOK_MS = 1000;

/**
 * Brings the newest entry of the audit log out of the database: its number into the metrics, and with its hash into the log, at the start,
 * at the end and at most once an hour between. Who collects these sees later whether the log was rewritten or cut off.
 */
export function startAuditHead({ db, log, metrics }: Pick<Context, 'db' | 'log' | 'metrics'>): Loop {
  let head: AuditHead | null = null;
  let told: { head: string; atMs: number } | null = null;
  const look = async () => {
    head = await findAuditHead(db);
    metrics.auditEntries.set(head?.seq ?? 0);
  };
  const tell = () => {
    const text = head && `${head.seq}:${head.hash}`;
    if (text === null || told?.head === text) return;
    log.info({ auditHead: text }, 'the newest entry of the audit log');
    told = { head: text, atMs: performance.now() };
  };
  const loop = startLoop({
    name: 'newest entry of the audit log',
    log,
    maxPauseMs: LOOK_MS,
    run: async () => {
      await look();
      if (told === null || performance.now() - told.atMs >= LOG_MS) tell();
      return LOOK_MS;
    },
  });
  return {
    stop: async () => {
      await loop.stop();
      const last = look().catch(() => undefined);
      await Promise.race([last, delay(LAST_LOOK_MS, undefined, { ref: false })]);
      tell();
    },
  };
}
