import { alarmRow } from '../domain/alarm-kinds.ts';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { findAuditHead } from '../store/access/audit-log.ts';
import { areWordsSound, isSilenced } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import {
  countAlarms,
  findAlarmNews,
  findMoneyNews,
  findOwnerNews,
  findSettledMoneyNews,
  sumDay,
} from '../store/outbox/news.ts';
import { isPlanned, type Phase, planNotification } from '../store/outbox/notifications.ts';
import type { NotifyChannel } from '../store/outbox/notify-channels.ts';
import {
  alarmOverWords,
  alarmWords,
  moneyWords,
  ownerWords,
  settledWords,
  summaryWords,
  type Words,
} from './news-words.ts';
import { localTime } from './quiet-hours.ts';

export type NewsDeps = { db: Sql; now(): UnixMs; random(bytes: number): Uint8Array };

const DAY_MS = 86_400_000;

/**
 * Plans what each channel is to be told: alarms, money without an order, new owners, daily summaries. A row of the outbox is made once for each thing and
 * its end, however many processes do this and however often. What ended a day ago is no news.
 */
export async function collectNews(deps: NewsDeps, channels: readonly NotifyChannel[]): Promise<void> {
  const since = unixMs(Math.max(0, deps.now() - DAY_MS));
  await collectAlarms(deps, since);
  await collectMoney(deps, since);
  await collectOwners(deps, since);
  for (const channel of channels) await collectSummary(deps, channel, since);
}

async function collectAlarms(deps: NewsDeps, since: UnixMs): Promise<void> {
  const sealer = await deps.db.sealer();
  for (const { end, words, ...found } of await findAlarmNews(deps.db, since)) {
    // One that somebody closed past Quittance is told as an open one.
    const isOpen = isSilenced(sealer, end);
    const news = isOpen ? { ...found, resolvedAt: null, seal: areWordsSound(sealer, words) } : found;
    const { resolvedAt, channelId, id, kind, subject, wasRaised } = news;
    // A channel that fails is told of by the others.
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
  for (const news of await findMoneyNews(deps.db, since))
    await plan(deps, { ...aboutOf(news), phase: 'raised' }, moneyWords(news));
  for (const news of await findSettledMoneyNews(deps.db, since))
    await plan(deps, { ...aboutOf(news), phase: 'over' }, settledWords(news));
}

/** A new owner can remove channels, so it doesn't wait for the end of quiet hours. */
async function collectOwners(deps: NewsDeps, since: UnixMs): Promise<void> {
  for (const news of await findOwnerNews(deps.db, since)) {
    const about = { channelId: news.channelId, about: `owner:${news.seq}`, phase: 'raised', isUrgent: true } as const;
    await plan(deps, about, ownerWords(news));
  }
}

/** Due from its minute on, so that it comes late rather than never; not on the day on which the channel was added after it. */
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

/** Of the same millisecond what begins comes before what is over. */
const ORDER: Readonly<Record<Phase, number>> = { raised: 0, over: 1 };

type About = { channelId: string; about: string; phase: Phase; isUrgent: boolean };

async function plan({ db, now, random }: NewsDeps, about: About, { title, body }: Words): Promise<void> {
  const createdAt = now();
  await planNotification(db, {
    ...about,
    id: uuidV7(createdAt, random(10), ORDER[about.phase]),
    title,
    body,
    createdAt,
  });
}
