import { encodeId } from '../../core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../core/domain/time.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import type { Logger } from '../../core/runtime/log.ts';
import { backoffMs } from '../../core/runtime/loop.ts';
import type { Database } from '../../core/store/db/database.ts';
import {
  claimNotifications,
  type Due,
  type Notification,
  peekNotifications,
  recordNotificationsSent,
  returnNotifications,
} from '../../core/store/outbox/notifications.ts';
import {
  findSealedTarget,
  type NotifyChannel,
  recordChannelFailed,
  recordChannelSent,
} from '../../core/store/outbox/notify-channels.ts';
import type { Attempt } from './attempt.ts';
import { openTarget } from './channel-target.ts';
import { composeNotification, type Installation } from './message.ts';
import { isQuiet } from './quiet-hours.ts';
import { ATTEMPT_MS, type SendDeps, sendMessage } from './send-message.ts';

type LineDeps = SendDeps & {
  db: Database;
  keyRing: KeyRing;
  log: Logger;
  installation: Installation;
  /** Whether this process certainly holds the lease. */
  isLeader(): boolean;
};

export type ChannelLine = ReturnType<typeof createChannelLine>;

/**
 * An attempt and the recording of its result together take less time than this. After a crash during an attempt, the message is sent again
 * after this time.
 */
const CLAIM_MS = 2 * ATTEMPT_MS;
const MAX_DIGEST = 1000;
/** Three attempts fit into the first minute. A server that is down for a day receives about 150 requests. */
const BACKOFF = { firstMs: 5000, longestMs: 600_000 };

/** Sends one channel's messages in order, regardless of other channels. */
export function createChannelLine(deps: LineDeps) {
  const pace = createChannelPace(() => performance.now());
  /** Notifications that were delivered, although this couldn't be recorded. They must not be sent again. */
  const unrecorded = new Set<string>();
  let working: Promise<void> | null = null;
  return {
    /** Starts sending due messages, unless it's already sending. Returns immediately. */
    work: (channel: NotifyChannel): void => {
      if (working !== null || isPutOff(channel, deps.now())) return;
      working = sendDue({ ...deps, pace, unrecorded }, channel)
        .catch((error: unknown) => deps.log.warn({ err: error, channel: encodeId('chn', channel.id) }, NOT_SENT))
        .finally(() => {
          working = null;
        });
    },
    ended: async (): Promise<void> => (await working) ?? undefined,
  };
}

/** No channel ever waits longer than the longest pause, so a later time was written by someone else, or by a wrong clock. */
function isPutOff({ dueAt }: NotifyChannel, now: UnixMs): boolean {
  return dueAt !== null && dueAt > now && dueAt <= now + BACKOFF.longestMs;
}

const NOT_SENT = "could not send or record a channel's notifications; Quittance retries in the next round";

type Line = LineDeps & { pace: Pace; unrecorded: Set<string> };

/** Sends messages until nothing is due, the channel fails, its pace is exceeded, or another process takes over. */
async function sendDue(line: Line, channel: NotifyChannel): Promise<void> {
  const { db, now, pace, isLeader, stopping } = line;
  while (isLeader() && !stopping.aborted) {
    // Quiet hours that were changed directly in the database are ignored.
    const onlyUrgent = channel.seal && isQuiet(channel, now());
    const due: Due = { channelId: channel.id, now: now(), onlyUrgent };
    const { count, oldestAt } = await peekNotifications(db, due);
    if (count === 0) return;
    const wasHeld = !onlyUrgent && oldestAt !== null && isQuiet(channel, oldestAt);
    const kind = pace.next({ count, wasHeld });
    if (kind === 'none') return;
    const until = unixMs(due.now + CLAIM_MS);
    const claimed = await claimNotifications(db, { ...due, until, limit: kind === 'one' ? 1 : MAX_DIGEST });
    const rows = claimed.filter(({ id }) => !line.unrecorded.has(id));
    if (rows.length > 0 && !(await sendRows(line, channel, rows))) return;
    if (rows.length > 0) pace.sent(kind);
    await recordSent(line, channel, claimed);
  }
}

async function recordSent({ db, now, unrecorded }: Line, channel: NotifyChannel, rows: readonly Notification[]) {
  const ids = rows.map(({ id }) => id);
  await db.transaction(async (tx) => {
    await recordNotificationsSent(tx, ids, now());
    await recordChannelSent(tx, channel.id, now());
  });
  for (const id of ids) unrecorded.delete(id);
}

/** Makes one attempt. Returns whether the message was delivered. */
async function sendRows(line: Line, channel: NotifyChannel, rows: readonly Notification[]): Promise<boolean> {
  const { db, now, log, isLeader, unrecorded } = line;
  const ids = rows.map(({ id }) => id);
  const target = await findTarget(line, channel);
  // If this process was paused, it notices here that another one is sending.
  const attempt: Attempt =
    target.kind === 'failed'
      ? target
      : isLeader()
        ? await sendMessage(line, target.target, composeNotification(rows, line.installation))
        : ABORTED;
  if (attempt.kind === 'sent') {
    for (const id of ids) unrecorded.add(id);
    return true;
  }
  if (attempt.kind === 'failed') {
    const { error, retryAfterMs } = attempt;
    const pauseMs = Math.max(backoffMs(channel.failures + 1, BACKOFF), Math.min(retryAfterMs ?? 0, BACKOFF.longestMs));
    log.warn(
      { channel: encodeId('chn', channel.id), error, pauseMs },
      'could not send a notification; Quittance retries',
    );
    await recordChannelFailed(db, channel.id, now(), { dueAt: unixMs(now() + pauseMs), error });
  }
  await returnNotifications(db, ids);
  return false;
}

const ABORTED = { kind: 'aborted' } as const;

async function findTarget({ db, keyRing }: Line, { id }: NotifyChannel) {
  const row = await findSealedTarget(db, id);
  const opened = row === null ? ({ kind: 'damaged' } as const) : await openTarget(keyRing, row);
  if (opened.kind === 'ok') return opened;
  const why =
    opened.kind === 'damaged'
      ? 'secret: the stored target was changed, or the channel was removed'
      : `secret: the target is encrypted with the master key ${row?.masterKeyId}, which this process does not have`;
  return { kind: 'failed', error: why, retryAfterMs: null } as const;
}

type Pace = ReturnType<typeof createChannelPace>;

/** Occasional notifications are sent one by one. A burst is sent as one digest every 15 s, so each alarm still arrives within a minute. */
const SINGLES_PER_MINUTE = 5;
const MINUTE_MS = 60_000;
const BETWEEN_DIGESTS_MS = 15_000;

/** Limits one channel's messages. `elapsedMs` is a monotonic clock. */
export function createChannelPace(elapsedMs: () => number) {
  let singles: number[] = [];
  let digestAtMs = Number.NEGATIVE_INFINITY;
  return {
    /** Returns which messages may be sent now: `one`, `all` waiting ones as a digest, or `none` yet. */
    next: ({ count, wasHeld }: { count: number; wasHeld: boolean }): 'one' | 'all' | 'none' => {
      const now = elapsedMs();
      singles = singles.filter((at) => now - at < MINUTE_MS);
      if (count <= SINGLES_PER_MINUTE - singles.length && !(wasHeld && count > 1)) return 'one';
      return now - digestAtMs < BETWEEN_DIGESTS_MS ? 'none' : 'all';
    },
    sent: (kind: 'one' | 'all'): void => {
      if (kind === 'one') singles.push(elapsedMs());
      else digestAtMs = elapsedMs();
    },
  };
}
