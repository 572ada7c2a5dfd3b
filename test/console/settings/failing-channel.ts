import { randomBytes } from 'node:crypto';
import { unixMs } from '../../../src/core/domain/time.ts';
import { listNotifyChannels, recordChannelFailed } from '../../../src/core/store/outbox/notify-channels.ts';
import { commandActor } from '../../../src/faces/operator/actor.ts';
import { addChannel } from '../../../src/faces/operator/subjects/notify.ts';
import type { TestConsole } from '../console.ts';
import { operationDeps } from '../operation-deps.ts';

/** Adds a failing notification channel, whose name and failure have the greatest allowed length. */
export async function addFailingChannel({ service, actors }: TestConsole): Promise<string> {
  const { db, clock } = service;
  const deps = {
    ...operationDeps({ db, now: () => unixMs(clock.now()), random: (n: number) => randomBytes(n) }),
    keyRing: null,
  };
  const target = { url: `https://${'x'.repeat(60)}.example.com/services/x`, quiet: '22:00-07:00', summary: '08:00' };
  const given = {
    kind: 'slack',
    name: 'قهوة'.repeat(25),
    timeZone: 'America/Argentina/ComodRivadavia',
    ...target,
  } as const;
  const wanted = addChannel.read(given, deps.now());
  const { channelId } = await addChannel.run(deps, actors['ana'] ?? commandActor('ana'), wanted);
  const at = deps.now();
  const [row] = await listNotifyChannels(db);
  await recordChannelFailed(db, row?.id ?? '', at, { dueAt: at, error: `http_503: ${'x'.repeat(290)}` });
  return channelId;
}
