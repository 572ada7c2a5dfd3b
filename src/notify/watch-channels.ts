import { encodeId } from '../domain/ids.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { findAlarmSubjects } from '../store/chain/alarms.ts';
import { endAlarm, tellAlarm } from '../store/chain/tell-alarms.ts';
import type { Database } from '../store/db/database.ts';
import type { NotifyChannel } from '../store/outbox/notify-channels.ts';
import { oneLine } from './message.ts';

type Deps = { db: Database; now(): UnixMs; log: Logger; network: Network | null };

/** A server that restarts is no alarm. */
const FAILING_MS = 5 * 60_000;
const KIND = 'notify-failing';
const MAX_SHOWN = 100;

/** Raises an alarm for each channel that has failed for 5 minutes, which the others tell of, and ends it when a message arrived or the channel was removed. */
export async function watchChannels(
  { db, now, log, network }: Deps,
  channels: readonly NotifyChannel[],
): Promise<void> {
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
  return `Nothing reaches the notification channel ${id} (${kind}, ${oneLine(name, MAX_SHOWN)})${since}: ${lastError ?? ''}. What it is to be told waits for a day at most. Try it: quittance notify test ${id}`;
}
