import { createHash } from 'node:crypto';
import { alarmRow } from '../../core/domain/alarm-kinds.ts';
import { encodeId, uuidV7 } from '../../core/domain/ids.ts';
import { asSum, formatAmount, microUsdt } from '../../core/domain/money.ts';
import { NETWORKS, type Network } from '../../core/domain/network.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso, type UnixMs, unixMs } from '../../core/domain/time.ts';
import type { KeyRing } from '../../core/runtime/key-ring.ts';
import type { Logger } from '../../core/runtime/log.ts';
import { backoffMs, type Loop, type LoopHealth, startLoop } from '../../core/runtime/loop.ts';
import { findAuditHead } from '../../core/store/access/audit-log.ts';
import { areWordsSound, endAlarm, findAlarmSubjects, isSilenced, tellAlarm } from '../../core/store/chain/alarms.ts';
import { holdLease } from '../../core/store/chain/leases.ts';
import type { Database, Sql } from '../../core/store/db/database.ts';
import {
  claimNotifications,
  countAlarms,
  type Due,
  type PendingAlarm as FoundAlarm,
  findPendingAlarms,
  findPendingOwnerChanges,
  findPendingTransfers,
  findSettledTransfers,
  forgetOldNotifications,
  giveUpNotifications,
  isPlanned,
  type Notification,
  type PendingOwnerChange,
  type PendingTransfer,
  type Phase,
  peekNotifications,
  planNotification,
  recordNotificationsSent,
  returnNotifications,
  sumDay,
} from '../../core/store/outbox/notifications.ts';
import {
  findSealedTarget,
  listNotifyChannels,
  type NotifyChannel,
  recordChannelFailed,
  recordChannelSent,
} from '../../core/store/outbox/notify-channels.ts';
import { createWebhookSender } from '../../core/webhooks/send.ts';
import { openTarget } from './channel-target.ts';
import { isQuiet, localTime } from './quiet-hours.ts';
import { ATTEMPT_MS, type Attempt, clipText, type Message, type SendDeps, sendMessage } from './send-message.ts';

export type NotifierOptions = {
  db: Database;
  now(): UnixMs;
  log: Logger;
  random(bytes: number): Uint8Array;
  keyRing: KeyRing;
  installation?: Installation;
  /** The network where an alarm is raised if a channel fails. If it's `null`, such failures are only logged. */
  network: Network | null;
  /** Identifies this process in the lease. */
  holder: string;
  /** Whether no process renews the lease. In that case every process sends, which is safe, because each outbox row is claimed only once. */
  isStalled?(): boolean;
  loops?: LoopHealth;
  pollMs?: number;
  attemptMs?: number;
};

/** How often to check for news. With this interval, a message arrives within a minute even if an attempt fails. */
const POLL_MS = 2000;
const LEASE = 'notifier';
/** A process releases the lease when it stops. After a crash, another process takes over after this time. */
const LEASE_MS = 10_000;
const TIDY_MS = 60_000;
/** Older news does more harm than good. */
const GIVE_UP_MS = 24 * HOUR_MS;
const KEEP_MS = 30 * 24 * HOUR_MS;
/** This is enough for a few concurrent attempts. Waiting for a connection would use up an attempt's time. */
const CONNECTIONS = 4;

/**
 * Notifies operators through their channels until it's stopped. Only one process works at a time, while the others stand by. Each channel
 * is handled separately, so a hanging channel doesn't delay the others. `stop` aborts the current attempts, which are repeated later.
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
      let planned = 0;
      if (channels.length > 0) await collectNews({ ...options, count: () => planned++ }, channels);
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
  if (notifications > 0) log.warn({ notifications }, 'discarded notifications older than a day');
  await forgetOldNotifications(db, before(KEEP_MS));
}

type Deps = { db: Database; now(): UnixMs; log: Logger; network: Network | null };

/** A server that is just restarting shouldn't cause an alarm. */
const FAILING_MS = 5 * 60_000;
const KIND = 'notify-failing';
const MAX_SHOWN = 100;

/**
 * Raises an alarm for each channel that has been failing for 5 minutes, so that the other channels report it. Closes the alarm when a
 * message is delivered or the channel is removed.
 */
async function watchChannels({ db, now, log, network }: Deps, channels: readonly NotifyChannel[]): Promise<void> {
  const failing = channels.filter(({ failingSince }) => failingSince !== null && now() - failingSince >= FAILING_MS);
  const failingIds = new Set(failing.map(({ id }) => encodeId('chn', id)));
  const told = new Set<string>();
  for (const each of NETWORKS) {
    for (const subject of await findAlarmSubjects(db, each, KIND)) {
      told.add(subject);
      if (failingIds.has(subject)) continue;
      await endAlarm({ db, log }, KIND, each, subject);
    }
  }
  for (const channel of failing) {
    const subject = encodeId('chn', channel.id);
    if (told.has(subject) || network === null) continue;
    await tellAlarm({ db, log }, KIND, { network, subject, detail: describe(channel, subject) });
  }
}

function describe({ kind, name, failingSince, lastError }: NotifyChannel, id: string): string {
  const since = failingSince === null ? '' : ` since ${toIso(failingSince)}`;
  return `Quittance cannot reach the notification channel ${id} (${kind}, ${oneLine(name, MAX_SHOWN)})${since}: ${lastError ?? ''}. It keeps unsent notifications for one day. Test the channel with: quittance notify test ${id}`;
}

/** `count` counts the news of a round, which are sent in this order. */
type NewsDeps = { db: Sql; now(): UnixMs; random(bytes: number): Uint8Array; count(): number };

/**
 * Adds each channel's news to the outbox: alarms, money without an order, new owners, daily summaries. Each beginning and each end gets
 * exactly one row, however many processes run this and however often. Anything that ended more than a day ago is skipped.
 */
async function collectNews(deps: NewsDeps, channels: readonly NotifyChannel[]): Promise<void> {
  const since = unixMs(Math.max(0, deps.now() - DAY_MS));
  await collectAlarms(deps, since);
  await collectMoney(deps, since);
  await collectOwners(deps, since);
  for (const channel of channels) await collectSummary(deps, channel, since);
}

async function collectAlarms(deps: NewsDeps, since: UnixMs): Promise<void> {
  const sealer = await deps.db.sealer();
  for (const { end, words, ...found } of await findPendingAlarms(deps.db, since)) {
    // An alarm that was closed directly in the database is reported as still open.
    const isOpen = isSilenced(sealer, end);
    const news = isOpen ? { ...found, resolvedAt: null, seal: areWordsSound(sealer, words) } : found;
    const { resolvedAt, channelId, id, kind, subject, wasRaised } = news;
    // A failing channel is reported only through the other channels.
    if (kind === 'notify-failing' && subject === encodeId('chn', channelId)) continue;
    const about = { channelId, about: `alarm:${id}` };
    if (!wasRaised)
      await plan(deps, { ...about, phase: 'raised', isUrgent: alarmRow(kind).isUrgent }, alarmWords(news));
    if (resolvedAt !== null) await plan(deps, { ...about, phase: 'over', isUrgent: false }, alarmOverWords(news));
  }
}

async function collectMoney(deps: NewsDeps, since: UnixMs): Promise<void> {
  const aboutOf = ({ channelId, transferId }: { channelId: string; transferId: string }) => {
    return { channelId, about: `transfer:${transferId}`, isUrgent: false };
  };
  for (const news of await findPendingTransfers(deps.db, since))
    await plan(deps, { ...aboutOf(news), phase: 'raised' }, moneyWords(news));
  for (const news of await findSettledTransfers(deps.db, since))
    await plan(deps, { ...aboutOf(news), phase: 'over' }, settledWords(news));
}

/** A new owner can remove channels, so this notification doesn't wait until quiet hours are over. */
async function collectOwners(deps: NewsDeps, since: UnixMs): Promise<void> {
  for (const news of await findPendingOwnerChanges(deps.db, since)) {
    const about = { channelId: news.channelId, about: `owner:${news.seq}`, phase: 'raised', isUrgent: true } as const;
    await plan(deps, about, ownerWords(news));
  }
}

/**
 * The summary is due from its minute on, because a late summary is better than none. It's skipped on the day on which the channel was
 * added, if that was after this minute.
 */
async function collectSummary(deps: NewsDeps, channel: NotifyChannel, since: UnixMs): Promise<void> {
  const { id, summaryAt, timeZone, createdAt } = channel;
  if (summaryAt === null) return;
  const { day, minute } = localTime(timeZone, deps.now());
  const added = localTime(timeZone, createdAt);
  if (minute < summaryAt || (added.day === day && added.minute >= summaryAt)) return;
  const about = `summary:${day}`;
  if (await isPlanned(deps.db, { channelId: id, about })) return;
  const [sums, alarms, auditHead] = [
    await sumDay(deps.db, since),
    await countAlarms(deps.db),
    await findAuditHead(deps.db),
  ];
  const words = summaryWords({ day, sums, alarms, auditHead });
  await plan(deps, { channelId: id, about, phase: 'raised', isUrgent: false }, words);
}

type About = { channelId: string; about: string; phase: Phase; isUrgent: boolean };

async function plan({ db, now, random, count }: NewsDeps, about: About, { title, body }: Words): Promise<void> {
  const createdAt = now();
  await planNotification(db, { ...about, id: uuidV7(createdAt, random(10), count()), title, body, createdAt });
}

type Words = { title: string; body: string };

/** `resolvedAt` is also `null` if the alarm was closed directly in the database. */
type PendingAlarm = Omit<FoundAlarm, 'end' | 'words'>;

const MADE_UP =
  'Someone changed this alarm directly in the database: Quittance did not raise it, or raised it with different text. See "row-changed" in docs/reference/alarms.md';
/** The database schema allows longer values. */
const MAX_SUBJECT = 80;
const MAX_TITLE = 180;

function alarmWords(news: PendingAlarm): Words {
  const { network, detail, raisedAt, resolvedAt, seal } = news;
  const title = oneLine(`ALARM on ${network}: ${name(news)}`, MAX_TITLE);
  // A resolved alarm's text isn't repeated, because it has no seal.
  if (resolvedAt !== null)
    return { title, body: `The alarm was raised at ${toIso(raisedAt)} and has since been resolved.` };
  const body = `${seal ? detail : MADE_UP}\n\nRaised at ${toIso(raisedAt)}. Details: quittance chain status --network ${network}, and docs/reference/alarms.md#${news.kind}`;
  return { title, body };
}

function alarmOverWords(news: PendingAlarm): Words {
  const { network, raisedAt, resolvedAt } = news;
  const ended = resolvedAt === null ? 'has since been resolved' : `was resolved at ${toIso(resolvedAt)}`;
  return {
    title: oneLine(`Resolved on ${network}: ${name(news)}`, MAX_TITLE),
    body: `The alarm was raised at ${toIso(raisedAt)} and ${ended}.`,
  };
}

function name({ kind, subject }: Pick<PendingAlarm, 'kind' | 'subject'>): string {
  return subject === '' ? kind : `${kind} (${oneLine(subject, MAX_SUBJECT)})`;
}

function moneyWords({ network, projectId, projectName, kind, amountMicro, txId, seal }: PendingTransfer): Words {
  if (!seal) return { title: `Unmatched payment on ${network}: the record was changed`, body: MADE_UP };
  const why = kind === 'duplicate' ? 'it pays an invoice that is already paid' : 'it matches no invoice';
  const amount = formatAmount(microUsdt(amountMicro));
  return {
    title: oneLine(`Unmatched payment on ${network}: ${amount} USDT to ${projectName}`, MAX_TITLE),
    body: `The project ${oneLine(projectName, MAX_SUBJECT)} (${encodeId('prj', projectId)}) received ${amount} USDT, but ${why}.\n\nTransaction ${txId}. For the cause and the next steps: quittance explain ${txId}`,
  };
}

function settledWords({ how, ...news }: PendingTransfer & { how: string }): Words {
  const { network, projectName, amountMicro, txId } = news;
  const amount = formatAmount(microUsdt(amountMicro));
  return {
    title: oneLine(`Settled on ${network}: ${amount} USDT to ${projectName}, ${how}`, MAX_TITLE),
    body: `The payment of ${amount} USDT to the project ${oneLine(projectName, MAX_SUBJECT)} was settled: ${how}. Transaction ${txId}.`,
  };
}

const OWNER_ACTIONS: Readonly<Record<PendingOwnerChange['action'], string>> = {
  'admin-key.created': 'created an admin key with the owner role',
  'user.invited': 'invited an owner',
  'user.changed': 'gave a user the owner role',
  'user.reset': 'created a new sign-in link for an owner',
};

/** An owner may do everything, so a new one is reported on every channel. */
function ownerWords({ seq, action, subject, detail, actedBy, origin, actedAt, seal }: PendingOwnerChange): Words {
  const title = 'A new owner';
  if (!seal) return { title: `${title}: entry ${seq} of the audit log was changed`, body: MADE_UP };
  const name = oneLine(detail.login ?? detail.name ?? '', MAX_SUBJECT);
  const undo = action === 'admin-key.created' ? `admin-key revoke ${subject}` : `user remove ${subject}`;
  const by = `${oneLine(actedBy, MAX_SUBJECT)}${origin === null ? '' : ` (${oneLine(origin, MAX_SUBJECT)})`}`;
  return {
    title: oneLine(`${title}: ${name}`, MAX_TITLE),
    body: `${by} ${OWNER_ACTIONS[action]}: ${name}, ${subject}, at ${toIso(actedAt)}. An owner has all permissions.\n\nIf you did not expect this, undo it now: quittance ${undo}`,
  };
}

/**
 * The day of a summary, according to the database. `auditHead` is the end of the audit log, which lets readers notice if the log is
 * rewritten.
 */
type Day = {
  day: string;
  sums: Awaited<ReturnType<typeof sumDay>>;
  alarms: Awaited<ReturnType<typeof countAlarms>>;
  auditHead: { seq: number; hash: string } | null;
};

function summaryWords({ day, sums, alarms, auditHead }: Day): Words {
  const usdt = (micro: bigint) => `${asSum(formatAmount(microUsdt(micro)))} USDT in total`;
  const money = sums.map(
    ({ network, paid, paidMicro, strays, strayMicro }) =>
      `${network}: ${paid} invoices paid, ${usdt(paidMicro)}; unmatched payments: ${strays}, ${usdt(strayMicro)}`,
  );
  const open = alarms.map(({ network, kind, count }) => `Open on ${network}: ${kind}${count > 1 ? ` (${count})` : ''}`);
  const lines = [
    ...(money.length === 0 ? ['No transfers in the last 24 hours.'] : money),
    ...(open.length === 0 ? ['No open alarms.'] : open),
    ...(auditHead === null ? [] : [`Audit log: entry ${auditHead.seq}, ${auditHead.hash}`]),
  ];
  return { title: `Quittance, ${day}: the last 24 hours`, body: lines.join('\n').slice(0, MAX_BODY) };
}

const MAX_BODY = 2800;

type LineDeps = SendDeps & {
  db: Database;
  keyRing: KeyRing;
  log: Logger;
  installation: Installation;
  /** Whether this process certainly holds the lease. */
  isLeader(): boolean;
};

type ChannelLine = ReturnType<typeof createChannelLine>;

/**
 * An attempt and the recording of its result together take less time than this. After a crash during an attempt, the message is sent again
 * after this time.
 */
const CLAIM_MS = 2 * ATTEMPT_MS;
const MAX_DIGEST = 1000;
/** Three attempts fit into the first minute. A server that is down for a day receives about 150 requests. */
const BACKOFF = { firstMs: 5000, longestMs: 600_000 };

/** Sends one channel's messages in order, regardless of other channels. */
function createChannelLine(deps: LineDeps) {
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

/** The installation that sends the message. `name` is the host of its payers' pages. A field is `null` if it isn't configured. */
type Installation = { name: string | null; consoleUrl: string | null };

/** Replaces text that someone else has written to the outbox. */
const INSERTED =
  'Quittance did not write this message: someone inserted it directly into the database. See "row-changed" in docs/reference/alarms.md';
/** A digest lists this many notifications and counts all others. */
const MAX_NAMED = 20;

/** Composes one message from one or more notifications. It contains the name of the installation and a link to its console. */
export function composeNotification(rows: readonly Notification[], installation: Installation): Message {
  const { name, consoleUrl } = installation;
  const { title, text, ...message } = composeWords(rows);
  const [only] = rows.length === 1 ? rows : [];
  const link =
    consoleUrl === null ? '' : `\n\nIn the console: ${consoleUrl}${only === undefined ? '/' : pageOf(only.about)}`;
  return { ...message, title: name === null ? title : `${name}: ${title}`, text: text + link };
}

/** Returns the console page about `alarm:…`, `transfer:…`, `owner:…` or `summary:…`. Ids are UUIDs. */
function pageOf(about: string): string {
  const [subject, id = ''] = about.split(':');
  if (subject === 'transfer' && UUID.test(id)) return `/unmatched/${encodeId('trf', id)}`;
  return { alarm: '/chain', owner: '/settings/people' }[subject ?? ''] ?? '/';
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function composeWords(rows: readonly Notification[]): Message {
  const [first] = rows;
  if (first === undefined) throw new RangeError('a message needs at least one notification');
  const titles = rows.map(({ seal, title }) => (seal ? title : 'Message not written by Quittance'));
  const items = rows.map(({ about, phase }, index) => ({ about, phase, title: titles[index] ?? '' }));
  const isUrgent = rows.some((row) => row.isUrgent);
  if (rows.length === 1)
    return { id: first.id, title: titles[0] ?? '', text: first.seal ? first.body : INSERTED, isUrgent, items };
  const more = rows.length - MAX_NAMED;
  const lines = titles.slice(0, MAX_NAMED).map((title) => `- ${title}`);
  const rest = more > 0 ? [`… and ${more} more`] : [];
  const text = [...lines, ...rest, '', 'To see all open alarms: quittance chain status'].join('\n');
  return { id: idOfDigest(rows), title: `Quittance: ${rows.length} notifications`, text, isUrgent, items };
}

/** Derives a UUID from all ids. The UUID contains the timestamp of the first id. */
function idOfDigest(rows: readonly Notification[]): string {
  const ids = rows.map(({ id }) => id).sort();
  const hash = createHash('sha256').update(ids.join()).digest('hex');
  return `${ids[0]?.slice(0, 15)}${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

/** Turns a text into one line without control characters. */
function oneLine(text: string, max: number): string {
  return clipText(text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim(), max);
}
