import { DAY_MS } from '../../domain/capacity.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { keyMode } from '../../domain/network.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { listAddresses } from '../../store/ledger/addresses.ts';
import type { Project } from '../../store/ledger/projects.ts';
import { listNotifyChannels } from '../../store/outbox/notify-channels.ts';
import type { Actor } from '../actor.ts';
import { findNewestBackup } from '../backup/find-backup.ts';
import { showStatus } from '../chain/show-status.ts';
import type { ChainStatusView } from '../chain/views.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import type { Vouching } from '../operation.ts';
import { selectProject } from '../select-project.ts';
import { countActive, showProject } from '../subjects/projects.ts';
import { listEndpoints } from '../subjects/webhooks.ts';
import { listConcerns } from './list-concerns.ts';
import { countPaidShare, findMedianPaid, hasPayment, sumOpenTransfers, sumPaidByDay } from './today-queries.ts';
import type { TodayView } from './views.ts';

type Deps = { db: Database; now(): UnixMs; addressGuard: Vouching };

const DAYS = 30;
/** The figures of a month may be many: the list of what needs somebody does not wait for them longer than this. */
const TIMEOUT_MS = 3000;

/** Whether all is well with a project, what needs somebody, and what was paid lately. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function showToday(
  deps: Deps,
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<TodayView> {
  const { db } = deps;
  const project = await selectProject(db, actor, projectId);
  const now = deps.now();
  const { view } = await showProject.run(deps, actor, { projectId });
  const { view: status } = await showStatus(deps, actor, { network: project.network });
  const endpoints = (await listEndpoints.run(deps, actor, { projectId })).data;
  const open = await sumOpenTransfers(db, project.id);
  const backup = await findNewestBackup(db);
  const wasPaid = await hasPayment(db, project.id);
  const addressCount = countActive(view.activeAddresses);
  const unsigned = await countUnsigned(deps, project, addressCount);
  return {
    projectId: view.projectId,
    asOf: toIso(now),
    concerns: listConcerns({
      actor,
      view,
      alarms: status.alarms,
      endpoints,
      open,
      unsigned: unsigned ?? 0,
      wasPaid,
      backupAt: backup?.madeAt ?? null,
      now,
    }),
    setUp: [
      { step: 'address', isDone: view.activeAddresses[project.policy] > 0 },
      { step: 'key', isDone: view.activeKeys > 0 },
      { step: 'webhook', isDone: view.webhookEndpoints > 0 },
      { step: 'payment', isDone: wasPaid },
      { step: 'notifications', isDone: (await listNotifyChannels(db)).length > 0 },
      { step: 'backup', isDone: backup !== null },
      ...(unsigned === null ? [] : [{ step: 'attestation' as const, isDone: addressCount > 0 && unsigned === 0 }]),
    ],
    figures: await readFigures(db, project, now).catch(ifTooSlow),
    chain: describeChain(status),
  };
}

/** Of the addresses in use, how many nobody vouches for; `null`: they need not be signed. */
async function countUnsigned(
  { db, addressGuard }: Deps,
  { id: projectId, network }: Project,
  addressCount: number,
): Promise<number | null> {
  if (!addressGuard.isGuarded(network)) return keyMode(network) === 'live' ? addressCount : null;
  const used = (await listAddresses(db, projectId)).filter(({ retiredAt }) => retiredAt === null);
  return used.filter(({ address }) => !addressGuard.vouchesFor({ network, projectId, address })).length;
}

async function readFigures(db: Database, { id }: Project, now: UnixMs): Promise<NonNullable<TodayView['figures']>> {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const from = unixMs(Math.max(0, today - (DAYS - 1) * DAY_MS));
  const read = await db.snapshot(async (tx) => {
    await limitTime(tx, TIMEOUT_MS);
    const [paid, share] = [await sumPaidByDay(tx, id, { from, today }), await countPaidShare(tx, id, from)];
    return { paid, share, timed: await findMedianPaid(tx, id, from) };
  });
  const days = Array.from({ length: DAYS }, (_, index) => {
    const day = new Date(today - (DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10);
    const paid = read.paid.filter((row) => row.day === day);
    return {
      day,
      count: paid.reduce((sum, { count }) => sum + count, 0),
      micro: paid.reduce((sum, { amountMicro }) => sum + amountMicro, 0n),
    };
  });
  const sumOf = (list: typeof days) => ({
    count: list.reduce((sum, { count }) => sum + count, 0),
    amount: formatAmount(microUsdt(list.reduce((sum, { micro }) => sum + micro, 0n))),
  });
  return {
    ...{ today: sumOf(days.slice(-1)), days7: sumOf(days.slice(-7)), days30: sumOf(days) },
    ...{ share: read.share, medianMs: read.timed.medianMs },
    timed: { count: read.timed.count, isSample: read.timed.isSample },
    days: days.map(({ day, count, micro }) => ({ day, count, amount: formatAmount(microUsdt(micro)) })),
  };
}

function describeChain({ network, examined, recorded, watcher, behind }: ChainStatusView): TodayView['chain'] {
  const nodes = watcher?.nodes ?? [];
  return {
    ...{ network, head: examined?.number ?? null, recorded: recorded?.number ?? null, headAt: examined?.time ?? null },
    ...{ nodes: nodes.length, goodNodes: nodes.filter(({ state }) => state === 'healthy').length },
    why: behind.why[0]?.text ?? null,
  };
}
