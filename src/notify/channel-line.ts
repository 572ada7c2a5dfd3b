import { encodeId } from '../domain/ids.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { backoffMs } from '../runtime/backoff.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Database } from '../store/db/database.ts';
import {
  claimNotifications,
  type Due,
  type Notification,
  peekNotifications,
  recordNotificationsSent,
  returnNotifications,
} from '../store/outbox/notifications.ts';
import {
  findSealedTarget,
  type NotifyChannel,
  recordChannelFailed,
  recordChannelSent,
} from '../store/outbox/notify-channels.ts';
import type { Attempt } from './attempt.ts';
import { openTarget } from './channel-target.ts';
import { composeMessage, type Installation } from './message.ts';
import { isQuiet } from './quiet-hours.ts';
import { ATTEMPT_MS, type SendDeps, sendMessage } from './send-message.ts';

type LineDeps = SendDeps & {
  db: Database;
  keyRing: KeyRing;
  log: Logger;
  installation: Installation;
  /** Whether this process is surely the one that sends. */
  isLeader(): boolean;
};

/** What a channel is sent, one message after the other; channels know nothing of each other. */
export type ChannelLine = {
  /** Sends what is due, unless it is at it already. Returns at once. */
  work(channel: NotifyChannel): void;
  ended(): Promise<void>;
};

/** Longer than an attempt and its record take. After a crash in the middle of an attempt the message is sent again when this is over. */
const CLAIM_MS = 2 * ATTEMPT_MS;
const MAX_DIGEST = 1000;
/** Three attempts fit into the first minute, and a server that is down for a day is asked some 150 times. */
const BACKOFF = { firstMs: 5000, longestMs: 600_000 };

export function createChannelLine(deps: LineDeps): ChannelLine {
  const pace = createPace(() => performance.now());
  /** They arrived, and the database could not be told: they must not be sent again. */
  const unrecorded = new Set<string>();
  let working: Promise<void> | null = null;
  return {
    work: (channel) => {
      if (working !== null || isPutOff(channel, deps.now())) return;
      working = sendDue({ ...deps, pace, unrecorded }, channel)
        .catch((error: unknown) => deps.log.warn({ err: error, channel: encodeId('chn', channel.id) }, NOT_SENT))
        .finally(() => {
          working = null;
        });
    },
    ended: async () => (await working) ?? undefined,
  };
}

/** Nobody is put off for longer than the longest pause: somebody wrote that, or a clock was wrong. */
function isPutOff({ dueAt }: NotifyChannel, now: UnixMs): boolean {
  return dueAt !== null && dueAt > now && dueAt <= now + BACKOFF.longestMs;
}

const NOT_SENT = 'could not send or record the notifications of a channel; Quittance tries again in the next round';

type Line = LineDeps & { pace: Pace; unrecorded: Set<string> };

/** Sends until nothing is due, the channel fails or has had enough, or another process sends. */
async function sendDue(line: Line, channel: NotifyChannel): Promise<void> {
  const { db, now, pace, isLeader, stopping } = line;
  while (isLeader() && !stopping.aborted) {
    // Quiet hours that somebody wrote past Quittance count for nothing.
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

/** Makes one attempt; whether it arrived. */
async function sendRows(line: Line, channel: NotifyChannel, rows: readonly Notification[]): Promise<boolean> {
  const { db, now, log, isLeader, unrecorded } = line;
  const ids = rows.map(({ id }) => id);
  const target = await findTarget(line, channel);
  // A process that was paused learns here that another one sends.
  const attempt: Attempt =
    target.kind === 'failed'
      ? target
      : isLeader()
        ? await sendMessage(line, target.target, composeMessage(rows, line.installation))
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
      'could not send a notification; Quittance tries again',
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

/** How many messages a channel may be sent at the moment: `one`, `all` that waits in a digest, or none yet. */
type Pace = {
  next(waiting: { count: number; wasHeld: boolean }): 'one' | 'all' | 'none';
  /** A message was sent. */
  sent(kind: 'one' | 'all'): void;
};

/** What comes one by one is sent one by one, and a storm in one message every 15 s: each alarm still arrives within a minute. */
const SINGLES_PER_MINUTE = 5;
const MINUTE_MS = 60_000;
const BETWEEN_DIGESTS_MS = 15_000;

/** Bounds what one channel is sent. `elapsedMs`: a clock that only goes forward. */
export function createPace(elapsedMs: () => number): Pace {
  let singles: number[] = [];
  let digestAtMs = Number.NEGATIVE_INFINITY;
  return {
    next: ({ count, wasHeld }) => {
      const now = elapsedMs();
      singles = singles.filter((at) => now - at < MINUTE_MS);
      if (count <= SINGLES_PER_MINUTE - singles.length && !(wasHeld && count > 1)) return 'one';
      return now - digestAtMs < BETWEEN_DIGESTS_MS ? 'none' : 'all';
    },
    sent: (kind) => {
      if (kind === 'one') singles.push(elapsedMs());
      else digestAtMs = elapsedMs();
    },
  };
}
