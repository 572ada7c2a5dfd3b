import type { Network } from '../domain/network.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { LoopHealth } from '../runtime/loop-health.ts';
import { holdLease } from '../store/chain/hold-lease.ts';
import type { Database } from '../store/db/database.ts';
import { forgetOldNotifications, giveUpNotifications } from '../store/outbox/notifications.ts';
import { listNotifyChannels } from '../store/outbox/notify-channels.ts';
import { createWebhookSender } from '../webhooks/send.ts';
import { type ChannelLine, createChannelLine } from './channel-line.ts';
import { collectNews } from './collect-news.ts';
import type { Installation } from './message.ts';
import { ATTEMPT_MS } from './send-message.ts';
import { watchChannels } from './watch-channels.ts';

export type NotifierOptions = {
  db: Database;
  now(): UnixMs;
  log: Logger;
  random(bytes: number): Uint8Array;
  keyRing: KeyRing;
  installation?: Installation;
  /** Of which the alarm says that a channel fails; `null`: only the log says it. */
  network: Network | null;
  /** Names this process in the lease. */
  holder: string;
  /** Whether no process renews the lease: then each that can sends, for rows of the outbox are taken once, whoever takes them. */
  isStalled?(): boolean;
  loops?: LoopHealth;
  pollMs?: number;
  attemptMs?: number;
};

/** What is new is looked for so often; together with an attempt that fails and another one, it is told within a minute. */
const POLL_MS = 2000;
const LEASE = 'notifier';
/** A process that stops gives it back; one that crashes is followed after this. */
const LEASE_MS = 10_000;
const TIDY_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Older news misleads more than it helps. */
const GIVE_UP_MS = 24 * HOUR_MS;
const KEEP_MS = 30 * 24 * HOUR_MS;
/** Some attempts may run at once; one that waits for a connection uses up its time. */
const CONNECTIONS = 4;

/**
 * Tells operators by their channels what happens, until stopped. One process does it at a time; the others stand by. Each channel has a line of
 * its own, so that one that hangs delays nothing. `stop` ends the attempts under way, which are made again.
 */
export function startNotifier(options: NotifierOptions): { stop(): Promise<void> } {
  const { db, now, log, holder, pollMs = POLL_MS, attemptMs = ATTEMPT_MS } = options;
  const stopping = new AbortController();
  const sender = createWebhookSender({ connections: CONNECTIONS, timeoutMs: attemptMs });
  const lease = holdLease(db, LEASE, holder, LEASE_MS);
  const isStalled = options.isStalled ?? (() => false);
  const lines = new Map<string, ChannelLine>();
  const isLeader = () => lease.isHeld() || isStalled();
  const installation = options.installation ?? { name: null, consoleUrl: null };
  const lineDeps = { ...options, installation, sender, attemptMs, stopping: stopping.signal, isLeader };
  let tidyMs = Number.NEGATIVE_INFINITY;
  const loop: Loop = startLoop({
    name: 'notifier',
    log,
    health: options.loops,
    maxPauseMs: POLL_MS,
    run: async () => {
      const isKept = await lease.keep().catch((error: unknown) => {
        if (!isStalled()) throw error;
        return false;
      });
      if (!isKept && !isStalled()) return pollMs;
      const channels = await listNotifyChannels(db);
      if (channels.length > 0) await collectNews(options, channels);
      for (const channel of channels) {
        const line = lines.get(channel.id) ?? createChannelLine(lineDeps);
        lines.set(channel.id, line);
        line.work(channel);
      }
      await watchChannels(options, channels);
      if (performance.now() - tidyMs >= TIDY_MS) {
        tidyMs = performance.now();
        await tidy(options, now());
      }
      return pollMs;
    },
  });
  return {
    stop: async () => {
      stopping.abort();
      await sender.close();
      await loop.stop();
      await Promise.all([...lines.values()].map((line) => line.ended()));
      await lease.release();
    },
  };
}

async function tidy({ db, log }: NotifierOptions, now: UnixMs): Promise<void> {
  const before = (ms: number) => unixMs(Math.max(0, now - ms));
  const notifications = await giveUpNotifications(db, before(GIVE_UP_MS), now);
  if (notifications > 0) log.warn({ notifications }, 'notifications of more than a day ago were given up');
  await forgetOldNotifications(db, before(KEEP_MS));
}
