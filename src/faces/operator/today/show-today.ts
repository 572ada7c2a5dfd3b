import { type AlarmKind, adviceOn, alarmRow } from '../../../core/domain/alarm-kinds.ts';
import { firstIdOf } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { asSum, formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { keyMode } from '../../../core/domain/network.ts';
import { DAY_MS, HOUR_MS, toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { keepNewest } from '../../../core/runtime/keep-newest.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { count, micro } from '../../../core/store/db/statement.ts';
import { listAddresses } from '../../../core/store/ledger/addresses.ts';
import { notAnnulled } from '../../../core/store/ledger/annulments.ts';
import type { Project } from '../../../core/store/ledger/projects.ts';
import { listNotifyChannels } from '../../../core/store/outbox/notify-channels.ts';
import type { Actor } from '../actor.ts';
import { findNewestBackup } from '../backup/backup-directory.ts';
import { shorten } from '../input/problems.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import type { Vouching } from '../operation.ts';
import { selectProject } from '../select.ts';
import { type ChainStatusView, showStatus } from '../subjects/chain.ts';
import { countActive, showProject } from '../subjects/projects.ts';
import { type ListedEndpointView, listEndpoints } from '../subjects/webhooks.ts';

/**
 * A problem or task that needs a person. Rank 1 stops or threatens payments, rank 2 waits for a person, and rank 3 will soon need a person.
 * `next` is the step to take.
 */
export type ConcernView = {
  rank: number;
  about: 'alarm' | 'receiver' | 'money' | 'backup' | 'project' | 'addresses';
} & Record<'code' | 'subject' | 'text', string> & { since: string | null; next: Text };

type Step = 'address' | 'key' | 'webhook' | 'payment' | 'notifications' | 'backup' | 'attestation';

/**
 * `setUp` has no `attestation` if addresses needn't be signed. `figures` is `null` if they took too long. `share` counts the invoices of
 * the last 30 days that were paid or expired, and how many of these were paid. `timed` is the number of payments that the median covers.
 * `isSample` means that only the newest 5,000 invoices or 500 payments were counted. Days are in UTC.
 */
export type TodayView = Awaited<ReturnType<typeof showToday>>;

/** A row is written after its block, and our clock may differ from the chain's by this much. */
const CLOCK_ERROR_MS = 600_000;

/** Sums the payments in blocks since `from` by day (UTC, `2026-09-01`), for rows recorded in a period. */
const sumRecorded = rowsOf(
  'today-paid',
  { day: 'text', count, amountMicro: micro() },
  `select day::text, count(*) as count, sum(amount_micro) as amount_micro
   from (select (t.block_time at time zone 'UTC')::date as day, t.amount_micro from transfers t
     where t.project_id = $1 and t.id >= $2 and t.id < $3 and t.block_time >= $4 and t.kind = 'matched' and ${notAnnulled('t')}) paid
   group by day order by day`,
  (projectId: string, recorded: { from: number; until: number }, from: UnixMs) => [
    projectId,
    firstIdOf(recorded.from),
    firstIdOf(recorded.until),
    new Date(from),
  ],
);

const countAnnulments = answerOf(
  'today-annulments',
  { count },
  'select count(*) as count from (select from transfer_annulments limit 10000) annulled',
  () => [],
  ([row]) => row?.count ?? 0,
);

type PaidDay = Awaited<ReturnType<typeof sumRecorded>>[number];

/**
 * Summing up a busy project's month takes a tenth of a second or more. Sums of rows recorded at least an hour before today change only if a
 * transfer is taken back.
 */
const summed = new Map<string, PaidDay[]>();
const MAX_SUMMED = 100;
const AFTER_ALL_MS = 365 * 24 * HOUR_MS;

/** Sums the payments in blocks since `from` by day; a day may appear twice. `today` is when the current day began. */
async function sumPaidByDay(db: Sql, projectId: string, { from, today }: { from: UnixMs; today: number }) {
  const until = today - HOUR_MS;
  const name = [projectId, until, await countAnnulments(db)].join();
  const before = summed.get(name) ?? (await sumRecorded(db, projectId, { from: from - CLOCK_ERROR_MS, until }, from));
  keepNewest(summed, name, before, MAX_SUMMED);
  return [...before, ...(await sumRecorded(db, projectId, { from: until, until: today + AFTER_ALL_MS }, from))];
}

/** This many invoices are enough for a meaningful share, and reading them takes a few hundredths of a second. */
export const MAX_SHARED = 5000;

/**
 * Counts how many of the newest 5,000 invoices since `from` are decided (paid, or past their deadline), and how many are paid. `isSample`
 * means that there may be more.
 */
const countPaidShare = answerOf(
  'today-share',
  { decided: count, paid: count, looked: count },
  `select count(*) filter (where status in ('PAID', 'EXPIRED')) as decided, count(*) filter (where status = 'PAID') as paid, count(*) as looked
   from (select status from invoices where project_id = $1 and id >= $2 order by id desc limit ${MAX_SHARED}) newest`,
  (projectId: string, from: UnixMs) => [projectId, firstIdOf(from)],
  ([{ decided, paid, looked } = { decided: 0, paid: 0, looked: 0 }]) => ({
    decided,
    paid,
    isSample: looked >= MAX_SHARED,
  }),
);

/** This many payments are enough for a median. */
const MAX_TIMED = 500;

/**
 * Returns the median time from an invoice's creation until it was `PAID`, over the newest 500 payments since `from`. Returns `null` if
 * there are none. `isSample` means that there may be more.
 */
const findMedianPaid = answerOf(
  'today-median',
  { medianMs: 'int8?', count },
  `select (percentile_cont(0.5) within group (order by extract(epoch from coalesce(e.created_at, t.recorded_at) - i.created_at)) * 1000)::int8
     as median_ms, count(*) as count
   from (select * from transfers where project_id = $1 and id >= $2 and kind = 'matched' order by id desc limit ${MAX_TIMED}) t
   join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   left join lateral (select created_at from events where transfer_id = t.id order by created_at limit 1) e on true`,
  (projectId: string, from: UnixMs) => [projectId, firstIdOf(from)],
  ([{ medianMs, count } = { medianMs: null, count: 0 }]) => ({
    ...{ medianMs: medianMs === null ? null : Number(medianMs), count, isSample: count >= MAX_TIMED },
  }),
);

/** A higher count adds no information. */
const MAX_OPEN = 10_000;

/** Sums up the newest 10,000 transfers that paid nothing and wait for a decision. */
const sumOpenTransfers = answerOf(
  'today-open',
  { count, amountMicro: micro(), oldestAt: 'timestamptz?' },
  `select count(*) as count, coalesce(sum(amount_micro), 0) as amount_micro, min(block_time) as oldest_at from (
     select t.amount_micro, t.block_time from transfers t
     where t.project_id = $1 and t.kind <> 'matched' and ${notAnnulled('t')}
       and not exists (select from transfer_resolutions r where r.transfer_id = t.id)
     order by t.id desc limit ${MAX_OPEN}) open`,
  (projectId: string) => [projectId],
  ([row]) => row ?? { count: 0, amountMicro: 0n, oldestAt: null },
);

/** Whether any payment was ever made. */
const hasPayment = answerOf(
  'today-has-payment',
  { found: 'bool' },
  `select exists (select from transfers where project_id = $1 and kind = 'matched') as found`,
  (projectId: string) => [projectId],
  ([row]) => row?.found === true,
);

type Deps = { db: Database; now(): UnixMs; addressGuard: Vouching };

const DAYS = 30;
/** Summing up a busy month can take a long time. The list of concerns doesn't wait longer than this for them. */
const TIMEOUT_MS = 3000;

/** Shows whether a project is healthy, what needs a person, and recent payments. Throws `NOT_FOUND` or `INVALID_ARGUMENT`. */
export async function showToday(deps: Deps, actor: Actor, { projectId }: { projectId: string | undefined }) {
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
    ] satisfies { step: Step; isDone: boolean }[],
    figures: await readFigures(db, project, now).catch(ifTooSlow),
    chain: describeChain(status),
  };
}

/** Counts the addresses in use that aren't signed. Returns `null` if no signatures are required. */
async function countUnsigned({ db, addressGuard }: Deps, { id: projectId, network }: Project, addressCount: number) {
  if (!addressGuard.isGuarded(network)) return keyMode(network) === 'live' ? addressCount : null;
  const used = (await listAddresses(db, projectId)).filter(({ retiredAt }) => retiredAt === null);
  return used.filter(({ address }) => !addressGuard.vouchesFor({ network, projectId, address })).length;
}

async function readFigures(db: Database, { id }: Project, now: UnixMs) {
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

function describeChain({ network, examined, recorded, watcher, behind }: ChainStatusView) {
  const nodes = watcher?.nodes ?? [];
  return {
    ...{ network, head: examined?.number ?? null, recorded: recorded?.number ?? null, headAt: examined?.time ?? null },
    ...{ nodes: nodes.length, goodNodes: nodes.filter(({ state }) => state === 'healthy').length },
    why: behind.why[0]?.text ?? null,
  };
}

type Facts = {
  actor: Actor;
  view: { projectId: string; supportContact: string | null };
  /** How many addresses in use aren't signed. */
  unsigned: number;
  alarms: ChainStatusView['alarms'];
  endpoints: readonly ListedEndpointView[];
  open: { count: number; amountMicro: bigint; oldestAt: UnixMs | null };
  backupAt: UnixMs | null;
  wasPaid: boolean;
  now: UnixMs;
};

const NOT_VOUCHED: AlarmKind = 'address-not-vouched';

function isShown({ projects }: Actor, own: ReadonlySet<string>, { kind, subject }: { kind: string; subject: string }) {
  // The id of a project or an endpoint may be followed by what the alarm is about, as in "whe_… given up".
  return projects === null || alarmRow(kind).scope === 'network' || own.has(subject.split(' ', 1)[0] ?? '');
}

/** With an older backup, an accident would lose more than a week of data. */
const BACKUP_OLD_DAYS = 7;

/** Lists concerns by rank, and oldest first within a rank. */
export function listConcerns(facts: Facts): ConcernView[] {
  const all = [
    ...fromAlarms(facts),
    ...fromEndpoints(facts),
    ...fromMoney(facts),
    ...fromAddresses(facts),
    ...fromBackup(facts),
    ...fromProject(facts),
  ];
  return all.toSorted((a, b) => a.rank - b.rank || (a.since ?? '').localeCompare(b.since ?? ''));
}

function fromAlarms({ actor, view, alarms, endpoints }: Facts): ConcernView[] {
  // The endpoints' own concerns describe these failures in more detail.
  const own = new Set([view.projectId, ...endpoints.map(({ endpointId }) => endpointId)]);
  const shown = new Set(endpoints.filter(isFailing).map(({ endpointId }) => endpointId));
  const seen = alarms.filter(
    ({ kind, subject }) =>
      isShown(actor, own, { kind, subject }) && !(kind === 'webhook-failing' && shown.has(subject)),
  );
  return seen.map(({ kind, subject, detail, raisedAt }) => ({
    ...{ rank: alarmRow(kind).rank, about: 'alarm', code: kind, subject, text: detail, since: raisedAt },
    next:
      alarmRow(kind).endsBy === 'operator'
        ? say`${adviceOn(kind)} After reading the alarm, close it with "${{ command: 'chain acknowledge', input: { alarm: kind } }}".`
        : adviceOn(kind),
  }));
}

const isFailing = ({ status }: Facts['endpoints'][number]) => status === 'failing' || status === 'paused';

/** A disabled endpoint already has an alarm. */
function fromEndpoints({ endpoints }: Facts): ConcernView[] {
  const pages = endpoints.flatMap(({ endpointId, url, status, lastAttempt }) => {
    if (status !== 'active' || lastAttempt == null || lastAttempt.webPage === null) return [];
    const text = `${shorten(url)} returns a web page for events, “${lastAttempt.webPage}”. The events count as delivered, but your receiver probably never sees them.`;
    return [{ ...receiver('receiver-page', endpointId, lastAttempt.attemptedAt), text }];
  });
  const failing = endpoints.filter(isFailing);
  const silent = failing.map(({ endpointId, url, undelivered, isUndeliveredMore, failingSince, lastAttempt }) => {
    const why = lastAttempt?.error == null ? '' : ` Last attempt: ${shorten(lastAttempt.error, 200)}.`;
    const waiting =
      undelivered === 1 ? '1 event is waiting' : `${undelivered}${isUndeliveredMore ? '+' : ''} events are waiting`;
    const text = `${shorten(url)} is not accepting events: ${waiting}.${why}`;
    return { ...receiver('receiver-failing', endpointId, failingSince), text };
  });
  return [...silent, ...pages];
}

function receiver(code: string, endpointId: string, since: string | null) {
  const next = say`find the cause with "${{ command: 'webhook test', args: [endpointId] }}"`;
  return { rank: 2, about: 'receiver', code, subject: endpointId, since, next } as const;
}

function fromMoney({ open: { count, amountMicro, oldestAt } }: Facts): ConcernView[] {
  if (count === 0) return [];
  const sum = `${asSum(formatAmount(microUsdt(amountMicro)))} USDT`;
  const many = `${asSum(String(count))}${count >= MAX_OPEN ? '+' : ''}`;
  const text =
    count === 1
      ? `1 transfer matches no open invoice: ${sum}.`
      : `${many} transfers match no open invoice: ${sum} in total${count >= MAX_OPEN ? `, of the newest ${asSum(String(MAX_OPEN))}` : ''}.`;
  return [
    {
      ...{ rank: 2, about: 'money', code: 'unmatched', subject: '', text, since: oldestAt && toIso(oldestAt) },
      next: say`decide on each transfer: "${{ command: 'transfers list' }}"`,
    },
  ];
}

/** With a manifest in force, an alarm already names each address, for people who see the alarms of all projects. */
function fromAddresses({ actor, view, alarms, unsigned }: Facts): ConcernView[] {
  const isTold = alarms.some(
    ({ kind, subject }) => kind === NOT_VOUCHED && isShown(actor, new Set(), { kind, subject }),
  );
  if (unsigned === 0 || isTold) return [];
  const [what, is] = unsigned === 1 ? ['1 address', 'is'] : [`${unsigned} addresses`, 'are'];
  return [
    {
      ...{ rank: 2, about: 'addresses', code: 'attestation-missing', subject: view.projectId, since: null },
      text: `${what} in use ${is} not signed, so an attacker with write access to the database could replace addresses and receive the payments.`,
      next: say`create a draft with "${{ command: 'manifest draft' }}", sign it on another machine, and install it: see docs/guides/signed-addresses.md`,
    },
  ];
}

function fromBackup({ backupAt, wasPaid, now }: Facts): ConcernView[] {
  const next = say`create one with "${{ command: 'backup' }}"`;
  if (backupAt === null) {
    if (!wasPaid) return [];
    const text =
      "Quittance has not created a backup yet. It cannot see backups made by other programs, such as PostgreSQL's own tools.";
    return [{ ...{ rank: 3, about: 'backup', code: 'backup-missing', subject: '', since: null }, text, next }];
  }
  const days = Math.floor((now - backupAt) / DAY_MS);
  if (days < BACKUP_OLD_DAYS) return [];
  return [
    {
      ...{ rank: 3, about: 'backup', code: 'backup-old', subject: '', since: toIso(backupAt) },
      text: `The last backup created by Quittance is ${days} days old.`,
      next,
    },
  ];
}

/** The payment page often tells payers to contact the merchant. */
function fromProject({ view: { projectId, supportContact } }: Facts): ConcernView[] {
  if (supportContact !== null) return [];
  return [
    {
      ...{ rank: 3, about: 'project', code: 'no-support-contact', subject: projectId, since: null },
      text: "The project has no support contact. Payers who need help see only the shop's name.",
      next: say`add a contact with "${{ command: 'project update', args: [projectId], input: { support: 'help@…' } }}"`,
    },
  ];
}
