import { ALARM_KINDS, ALARMS, type AlarmKind, alarmRow } from '../../../core/domain/alarm-kinds.ts';
import { AppError, conflict, notFound } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { isNetwork, type Network } from '../../../core/domain/network.ts';
import { nodeOrigin } from '../../../core/domain/node.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { parseUrl } from '../../../core/domain/url.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import { type Alarm, findAlarmSubjects, findOpenAlarms, resolveAlarms } from '../../../core/store/chain/alarms.ts';
import { clearHalt, findCursor, findHalt, type Halt } from '../../../core/store/chain/cursor.ts';
import { isLeaseHeld, watcherLease } from '../../../core/store/chain/leases.ts';
import { type ChainStatus, findChainStatus, STATUS_SILENT_MS } from '../../../core/store/chain/status.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import type { Actor } from '../actor.ts';
import { type Column, columnsText, formatFields } from '../command-words.ts';
import { nullable, Time } from '../fields.ts';
import { clip } from '../input/problems.ts';
import { readOneNote } from '../input/readers.ts';
import { type OperationDeps, operation } from '../operation.ts';
import { flag, line, needed, networkName } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectNetwork } from '../select.ts';

const Text = Type.String();
const Count = Type.Integer();
const Flag = Type.Boolean();
const HaltView = Type.Object({ at: Time, reason: Text });
const Block = Type.Object({ number: Count, id: Text, time: Time });

/** Why a network is behind. `code` is for programs and never changes. */
const Cause = Type.Object({
  code: Type.Enum([
    ...(['halted', 'no-watcher', 'watcher-silent', 'alarm', 'agreement', 'nodes', 'catching-up'] as const),
    'not-built-upon',
  ]),
  text: Text,
});
type Cause = Static<typeof Cause>;

/**
 * A node as the watcher sees it. `requestsPerDay` is its limit, or `null`. Status written by older releases lacks this limit, `failures`,
 * and the watcher's `openBlock`.
 */
const NodeStatus = Type.Object({
  ...{ url: Text, operator: Text, state: Text, reason: nullable(Text), pausedForMs: Type.Number() },
  ...{ failures: Type.Optional(Count), requests: Count, refusals: Count, requestsToday: Count },
  requestsPerDay: Type.Optional(nullable(Count)),
  answerMs: nullable(Type.Number()),
});

/**
 * `recorded` is the newest recorded block, which is irreversible, and `examined` is the newest examined block. The watcher wrote `watcher`
 * at `updatedAt`.
 */
const ChainStatusView = Type.Object({
  network: Text,
  behind: Type.Object({ blocks: nullable(Count), why: Type.Array(Cause) }),
  ...{ recorded: nullable(Block), examined: nullable(Block), halt: nullable(HaltView), updatedAt: nullable(Time) },
  watcher: nullable(
    Type.Object({
      ...{ blind: nullable(Text), headNumber: Count, ownSolidNumber: Count, nodeSolidNumber: Count },
      processedNumber: Count,
      catchUp: nullable(
        Type.Object({ blocksPerSecond: nullable(Type.Number()), secondsLeft: nullable(Type.Number()) }),
      ),
      ...{ openBlock: Type.Optional(nullable(Count)), nodes: Type.Array(NodeStatus) },
      requestsPerBlock: nullable(Type.Number()),
    }),
  ),
  alarms: Type.Array(
    Type.Object({ kind: Text, subject: Text, detail: Text, raisedAt: Time, seenAt: Time, seenCount: Count }),
  ),
});
export type ChainStatusView = Static<typeof ChainStatusView>;

/**
 * `ageMs` is the time since the watcher last wrote its position. `isRunning` means that the watcher holds the network's lease and, once it
 * has something to write, writes regularly. A watcher that stops releases its lease at once. A watcher that is killed keeps the lease for
 * seconds, but doesn't write any more.
 */
type WatcherState = { ageMs: number | null; isRunning: boolean };

/** Shows how far the service has followed a network, the state of its nodes, and what an operator must know. */
export async function showStatus(
  { db, now }: { db: Sql; now(): UnixMs },
  _actor: Actor,
  { network }: { network: Network },
): Promise<{ view: ChainStatusView; state: WatcherState }> {
  const cursor = await findCursor(db, network);
  const found = await findChainStatus(db, network);
  const halt = await findHalt(db, network);
  const alarms = await findOpenAlarms(db, network);
  const isLed = await isLeaseHeld(db, watcherLease(network));
  const ageMs = found === null ? null : now() - found.updatedAt;
  const status = found && notBelow(found.status, cursor?.solid.number ?? 0);
  const view = {
    network,
    behind: { blocks: status && shownBehind(status), why: whyBehind({ status, ageMs, isLed, halt, alarms }) },
    recorded: cursor && { ...cursor.solid, time: toIso(cursor.solid.time) },
    examined: cursor && { ...cursor.head, time: toIso(cursor.head.time) },
    halt: halt && { at: toIso(halt.at), reason: halt.reason },
    updatedAt: found && toIso(found.updatedAt),
    // The path in a node's URL may be a provider's secret.
    watcher: status && {
      ...status,
      nodes: status.nodes.map((node) => ({ ...node, url: parseUrl(node.url) === null ? '' : nodeOrigin(node.url) })),
    },
    alarms: alarms.map(({ id: _, ...alarm }) => {
      return { ...alarm, raisedAt: toIso(alarm.raisedAt), seenAt: toIso(alarm.seenAt) };
    }),
  };
  return { view, state: { ageMs, isRunning: isLed && (ageMs === null || ageMs <= STATUS_SILENT_MS) } };
}

/** Returns the status without heights below the newest recorded block. The cursor may be newer than the status by two seconds. */
function notBelow(status: ChainStatus, recorded: number): ChainStatus {
  const { ownSolidNumber, nodeSolidNumber, processedNumber } = status;
  return {
    ...status,
    ownSolidNumber: Math.max(ownSolidNumber, recorded),
    nodeSolidNumber: Math.max(nodeSolidNumber, recorded),
    processedNumber: Math.max(processedNumber, recorded),
  };
}

/** Describes whether a watcher is running. */
export function sayWatcher({ ageMs, isRunning }: WatcherState): string {
  if (ageMs === null) return isRunning ? 'running, but it has not written a status yet' : 'never ran on this network';
  const seconds = Math.max(0, Math.round(ageMs / 1000));
  return isRunning ? `running, last status ${seconds} s ago` : `not running: last status ${seconds} s ago`;
}

export type Standing = {
  status: ChainStatus | null;
  /** The status's age, or `null` if no watcher ever wrote one. */
  ageMs: number | null;
  /** Whether a process holds the lease. */
  isLed: boolean;
  halt: Halt | null;
  alarms: readonly Pick<Alarm, 'kind' | 'detail'>[];
};

/** How many irreversible blocks weren't recorded when the watcher last wrote its status. */
function blocksBehind({ nodeSolidNumber, processedNumber }: ChainStatus): number {
  return Math.max(0, nodeSolidNumber - processedNumber);
}

/** Returns how many blocks are missing for display, or `null` if that isn't known, because no node shows how far the chain has grown. */
function shownBehind(status: ChainStatus): number | null {
  const behind = blocksBehind(status);
  return behind === 0 && status.blind !== null ? null : behind;
}

/** Explains why a network is behind or its state is unknown, most important cause first. The list is empty if all is well. */
export function whyBehind(standing: Standing): Cause[] {
  const { status, halt, ageMs, isLed, alarms } = standing;
  const held =
    halt === null
      ? []
      : [{ code: 'halted' as const, text: `the watcher has been halted since ${toIso(halt.at)}: ${halt.reason}` }];
  // The last status of a stopped or hanging watcher says nothing about the present.
  if (!isLed || ageMs === null || status === null) return [...held, absent(standing)];
  if (ageMs > STATUS_SILENT_MS) return [...held, silent(ageMs)];
  const holding = alarms.filter(({ kind }) => alarmRow(kind).holdsBlocks);
  const behind = blocksBehind(status);
  if (behind === 0 && holding.length === 0 && status.blind === null) return held;
  const alarmed = holding.map(({ kind, detail }) => ({ code: 'alarm', text: `alarm ${kind}: ${detail}` }) as const);
  const isBlindReported = holding.some(({ kind }) => kind === 'blind');
  const blind =
    status.blind !== null && !isBlindReported ? [{ code: 'alarm', text: `blind: ${status.blind}` } as const] : [];
  return [...held, ...alarmed, ...blind, ...waiting(status, behind), ...resting(status), ...catchingUp(status, behind)];
}

function absent({ isLed, ageMs, status }: Standing): Cause {
  if (isLed && (ageMs === null || status === null)) {
    const text = 'a watcher is running, but has not started following the chain yet: see its log';
    return { code: 'watcher-silent', text };
  }
  return { code: 'no-watcher', text: 'no watcher is running: start a process with the watcher role' };
}

function silent(ageMs: number): Cause {
  const seconds = Math.round(ageMs / 1000);
  const text = `the watcher has written no status for ${seconds} s: it has hung, or is waiting for its nodes or the database`;
  return { code: 'watcher-silent', text };
}

function waiting({ openBlock, nodeSolidNumber, ownSolidNumber, catchUp }: ChainStatus, behind: number): Cause[] {
  if (behind === 0) return [];
  if (typeof openBlock === 'number') {
    const text = `block ${openBlock} waits until enough operators agree on its transfers`;
    return [{ code: 'agreement', text }];
  }
  if (catchUp !== null || ownSolidNumber >= nodeSolidNumber) return [];
  const text = `the nodes report block ${nodeSolidNumber} as irreversible, but Quittance could verify only the blocks up to block ${ownSolidNumber}`;
  return [{ code: 'not-built-upon', text }];
}

function resting({ nodes }: ChainStatus): Cause[] {
  return nodes
    .filter(({ state }) => state !== 'healthy' && state !== 'unknown')
    .map(({ url, state, reason, pausedForMs }) => {
      const left = pausedForMs > 0 ? ` for ${Math.ceil(pausedForMs / 1000)} s` : '';
      const why = reason === null ? '' : `: ${reason}`;
      return { code: 'nodes', text: `${parseUrl(url) === null ? 'a node' : nodeOrigin(url)} is ${state}${left}${why}` };
    });
}

function catchingUp({ catchUp }: ChainStatus, behind: number): Cause[] {
  if (catchUp === null || behind === 0) return [];
  return [{ code: 'catching-up', text: `catching up: ${describeCatchUp(catchUp)}` }];
}

/** Describes the speed and the remaining time, or says that they aren't known yet. */
export function describeCatchUp({ blocksPerSecond, secondsLeft }: NonNullable<ChainStatus['catchUp']>): string {
  if (!blocksPerSecond) return 'the speed is not known yet';
  const speed = `${blocksPerSecond.toFixed(1)} blocks per second`;
  return secondsLeft ? `${speed}, about ${Math.ceil(secondsLeft)} s left` : `${speed}, but the chain grows as fast`;
}

const showStatusOperation = operation({
  action: 'showStatus',
  summary: 'Show how far Quittance has read the chain, the state of the nodes, and open alarms',
  route: 'GET /chain/:network',
  command: 'chain status',
  input: Type.Object({ network: networkName() }),
  output: ChainStatusView,
  run: async (deps, actor, { network }) =>
    showStatus(deps, actor, { network: await selectRecordedNetwork(deps.db, deps.networks, network) }),
  print: ({ view, state }) => {
    const { network, halt, recorded, examined, behind, watcher, alarms } = view;
    const fields = formatFields([
      ['network', network],
      ['halted', halt && `since ${halt.at}: ${halt.reason}`],
      ['recorded', recorded === null ? 'nothing yet' : `block ${recorded.number}, created ${recorded.time}`],
      ['examined', examined && `block ${examined.number}, created ${examined.time}`],
      ['watcher', sayWatcher(state)],
      ...describeWatcher(view),
      ...behind.why.map(({ text }, index) => [index === 0 ? 'why' : '', text] as const),
    ]);
    const tables = [columnsText(watcher?.nodes ?? [], NODES), columnsText(alarms, OPEN)];
    const resume = { command: 'chain resume', input: { network } };
    return {
      text: [fields, ...tables, alarms.length === 0 ? '' : MORE],
      next: halt !== null && say`no invoice becomes PAID until you resume the watcher: "${resume}"`,
    };
  },
});

function describeWatcher({ watcher, behind }: ChainStatusView): (readonly [string, string | null])[] {
  if (watcher === null) return [];
  const { blind, headNumber, ownSolidNumber, nodeSolidNumber, requestsPerBlock } = watcher;
  return [
    ['blind', blind],
    ['head', `block ${headNumber}`],
    ['irreversible', `block ${ownSolidNumber}, verified by Quittance; ${nodeSolidNumber}, according to the nodes`],
    [
      'behind',
      behind.blocks === null ? 'unknown, because the chain is not visible' : `${behind.blocks} irreversible blocks`,
    ],
    ['requests', requestsPerBlock === null ? null : `${requestsPerBlock.toFixed(2)} per block`],
  ];
}

const NODES: readonly Column<NonNullable<ChainStatusView['watcher']>['nodes'][number]>[] = [
  ['NODE', 'url'],
  ['OPERATOR', 'operator'],
  ['STATE', ({ state, pausedForMs }) => (pausedForMs > 0 ? `${state}, ${Math.ceil(pausedForMs / 1000)} s` : state)],
  ['REQUESTS', 'requests'],
  ['REFUSED', 'refusals'],
  [
    'TODAY',
    ({ requestsToday, requestsPerDay = null }) =>
      `${requestsToday}${requestsPerDay === null ? '' : ` of ${requestsPerDay}`}`,
  ],
  ['ANSWER', ({ answerMs }) => (answerMs === null ? '' : `${Math.round(answerMs)} ms`)],
  ['WHY', 'reason'],
];

/** The page has a section for each kind of alarm. */
const MORE = 'For the meaning of each alarm, and what to do, see docs/reference/alarms.md';

const OPEN: readonly Column<ChainStatusView['alarms'][number]>[] = [
  ['ALARM', 'kind'],
  ['SINCE', 'raisedAt'],
  ['SEEN', 'seenCount'],
  ['WHAT', 'detail'],
];

type Deps = Pick<OperationDeps, 'db' | 'now' | 'networks'>;

const closedByOperators = ALARM_KINDS.filter((kind) => ALARMS[kind].endsBy === 'operator');

/**
 * Closes the alarms of a kind, or one about a subject, after an operator has read them. Nothing else closes them. Alarms of the other kinds
 * can be closed only if the network has no watcher, because no one else closes them there. Throws `NOT_FOUND`.
 */
export const acknowledgeAlarms = operation({
  action: 'acknowledgeAlarms',
  summary: 'Close alarms about one-time events',
  route: 'POST /chain/:network/acknowledge',
  command: 'chain acknowledge',
  does: 'close alarms about one-time events after you have read them',
  input: Type.Object({
    alarm: needed(
      '<kind>',
      `one of ${closedByOperators.join(', ')}; all other alarms close when their cause is resolved`,
    ),
    subject: line(
      '<subject>',
      say`only the alarm with this subject, as listed by "${{ command: 'chain status', input: { json: true } }}"`,
    ),
    network: networkName(),
  }),
  output: Type.Object({ network: Text, kind: Text, subject: nullable(Text), closed: Count }),
  read: ({ network, alarm, subject = null }) => ({ network, kind: alarm, subject }),
  run: async ({ db, now, networks }: Deps, actor, { network: name, kind: named, subject }) => {
    const network = await selectRecordedNetwork(db, networks, name);
    const kind = readAlarmKind(named, { isWatched: await isWatched(db, network) });
    const closed = await db.transaction(async (tx) => {
      const open = kind === 'audit-broken' ? await findAlarmSubjects(tx, network, kind) : null;
      const count = await resolveAlarms(tx, network, kind, subject);
      // Records in the audit log which problems of the log itself were acknowledged, so that they aren't reported again.
      const accepted = open?.filter((each) => subject === null || each === subject);
      const detail = { kind, subject, closed: count, ...(accepted === undefined ? {} : { accepted }) };
      if (count > 0) {
        await recordAction(tx, actor, now(), 'alarm.acknowledged', { subject: network, detail });
      }
      return count;
    });
    if (closed > 0) return { network, kind, subject, closed };
    const about = subject === null ? '' : ` about ${clip(subject)}`;
    throw notFound`${network} has no open alarm ${kind}${about}: list the open alarms with "${{ command: 'chain status', input: { json: true } }}"`;
  },
  print: ({ network, kind, closed }) => ({
    text: `closed ${closed} ${closed === 1 ? 'alarm' : 'alarms'} ${kind} of ${network}`,
  }),
});

/** Whether a watcher follows the network, or is halted and continues when an operator has decided. */
async function isWatched(db: Sql, network: Network): Promise<boolean> {
  return (await isLeaseHeld(db, watcherLease(network))) || (await findHalt(db, network)) !== null;
}

/** Reads a kind of alarm that operators may close. Throws `INVALID_ARGUMENT`. */
export function readAlarmKind(text: string, { isWatched } = { isWatched: true }): AlarmKind {
  const kind = ALARM_KINDS.find((known) => known === text);
  if (kind !== undefined && (!isWatched || closedByOperators.includes(kind))) return kind;
  const choices = closedByOperators.join(', ');
  throw new AppError(
    'INVALID_ARGUMENT',
    kind === undefined
      ? say`${{ field: 'alarm' }} ${clip(text)} is not a kind of alarm that you can close: use one of ${choices}`
      : say`the alarm ${kind} closes automatically when its cause is resolved: for ${{ field: 'alarm' }}, use one of ${choices}`,
  );
}

/**
 * Restarts a halted watcher after a person has seen the reason and confirms that the problem is settled. `haltedAt` is the time of the halt
 * that the person saw; `null` means any. `reason` is for the record. Throws `NOT_FOUND`, or `CONFLICT` if it has halted again since.
 */
export const resumeChain = operation({
  action: 'resumeChain',
  summary:
    'Resume a watcher that stopped because the chain contradicted the ledger; without isSettled, only show the reason',
  route: 'POST /chain/:network/resume',
  command: 'chain resume',
  does: 'resume a watcher that stopped because the chain contradicted the ledger',
  input: Type.Object({
    isSettled: flag('confirm that you know the reason and have resolved the problem'),
    haltedAt: Type.Optional(
      Type.String({
        description: 'Time of the halt that you saw; the request fails if the watcher has halted again since then',
      }),
    ),
    reason: line(
      '<text>',
      say`with ${{ field: 'isSettled' }}: why the watcher can resume (recorded in the audit log)`,
      {
        wire: 'Why the watcher can resume (recorded in the audit log)',
      },
    ),
    network: networkName(),
  }),
  // `resumed` is `false` if the halt was only shown.
  output: Type.Object({ network: Text, resumed: Flag, halt: HaltView }),
  read: ({ network, isSettled = false, haltedAt = null, reason }) => ({
    ...{ network, isSettled, haltedAt },
    why: reason === undefined ? null : readOneNote(reason, 'reason'),
  }),
  run: async ({ db, now, networks }: Deps, actor, { network: name, isSettled, haltedAt, why }) => {
    const network = await selectRecordedNetwork(db, networks, name);
    const halt = await findHalt(db, network);
    if (halt === null) throw notFound`${network} is not halted, so there is nothing to resume`;
    if (haltedAt !== null && haltedAt !== toIso(halt.at))
      throw conflict`${network} halted again at ${toIso(halt.at)}: check the new reason`;
    if (isSettled) {
      // The halt and its alarm end together so that no one sees an alarm without its cause. The watcher can't always close the alarm,
      // because it may not be running.
      await db.transaction(async (tx) => {
        await clearHalt(tx, network);
        await resolveAlarms(tx, network, 'halted');
        const detail = { reason: halt.reason, ...(why === null ? {} : { why }) };
        await recordAction(tx, actor, now(), 'chain.resumed', { subject: network, detail });
      });
    }
    return { network, resumed: isSettled, halt: { at: toIso(halt.at), reason: halt.reason } };
  },
  print: ({ network, resumed, halt }) => {
    const reason = `${network} has been halted since ${halt.at}: ${halt.reason}`;
    if (!resumed) {
      const again = { field: 'isSettled' };
      return {
        text: '',
        refusal: say`${reason}. When you know the reason and have resolved the problem, run the command again with ${again}`,
      };
    }
    return {
      text: `${reason}\n${network} has been resumed: the watcher continues after the last recorded block`,
      next: say`check that the watcher keeps running with "${{ command: 'chain status' }}"`,
    };
  },
});

export const operations = [showStatusOperation, resumeChain, acknowledgeAlarms] as const;

const hasRecords = answerOf(
  'network-has-records',
  { any: 'bool' },
  'select exists (select from projects where network = $1) or exists (select from chain_cursors where network = $1) as any',
  (network: Network) => [network],
  ([row]) => row?.any === true,
);

/** Like `selectNetwork`, but also finds a network that was removed from the settings, if it's in the ledger. */
async function selectRecordedNetwork(db: Sql, configured: readonly Network[], name: string | undefined) {
  const isRemoved = name !== undefined && isNetwork(name) && !configured.includes(name);
  return isRemoved && (await hasRecords(db, name)) ? name : selectNetwork(configured, name);
}
