import { alarmRow } from '../../domain/alarm-kinds.ts';
import type { Network } from '../../domain/network.ts';
import { nodeOrigin } from '../../domain/node.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { parseUrl } from '../../domain/url.ts';
import { type Alarm, findOpenAlarms } from '../../store/chain/alarms.ts';
import { findCursor, findHalt, type Halt } from '../../store/chain/cursor.ts';
import { isLeaseHeld, watcherLease } from '../../store/chain/leases.ts';
import { type ChainStatus, findChainStatus, STATUS_SILENT_MS } from '../../store/chain/status.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import type { Cause, ChainStatusView } from './views.ts';

/** When the watcher last wrote, and whether one runs: who stops gives the lease back at once, who is killed leaves it for seconds and writes no more. */
/** `ageMs`: since it last wrote its position. `isRunning`: it holds the network and writes, if it has anything to write yet. */
export type WatcherState = { ageMs: number | null; isRunning: boolean };

/** Where the service stands with a network, how its nodes are, and what an operator must know. */
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
  const status = found?.status ?? null;
  const view = {
    network,
    behind: { blocks: status && blocksBehind(status), why: whyBehind({ status, ageMs, isLed, halt, alarms }) },
    recorded: cursor && { ...cursor.solid, time: toIso(cursor.solid.time) },
    examined: cursor && { ...cursor.head, time: toIso(cursor.head.time) },
    halt: halt && { at: toIso(halt.at), reason: halt.reason },
    updatedAt: found && toIso(found.updatedAt),
    // The path of a node's URL may be a provider's secret.
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

export type Standing = {
  status: ChainStatus | null;
  /** The age of the status; `null`: no watcher ever wrote one. */
  ageMs: number | null;
  /** Whether a process holds the lease. */
  isLed: boolean;
  halt: Halt | null;
  alarms: readonly Pick<Alarm, 'kind' | 'detail'>[];
};

/** The irreversible blocks that are not recorded, as far as the watcher knew. */
function blocksBehind({ nodeSolidNumber, processedNumber }: ChainStatus): number {
  return Math.max(0, nodeSolidNumber - processedNumber);
}

/** Why a network is behind, or why nothing is known of it; empty if all is well. Look at the first cause first. */
export function whyBehind(standing: Standing): Cause[] {
  const { status, halt, ageMs, isLed, alarms } = standing;
  const held: Cause[] = [];
  if (halt !== null)
    held.push({ code: 'halted', text: `the watcher is halted since ${toIso(halt.at)}: ${halt.reason}` });
  // The status of a watcher that is gone, or hangs, says nothing about the present.
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
    return { code: 'watcher-silent', text: 'a watcher runs, and has found nothing to follow yet: see its log' };
  }
  return { code: 'no-watcher', text: 'no watcher runs: start a process with the role watcher' };
}

function silent(ageMs: number): Cause {
  const seconds = Math.round(ageMs / 1000);
  return {
    code: 'watcher-silent',
    text: `the watcher holds the network and has written nothing for ${seconds} s: it hangs, or waits for its nodes or the database`,
  };
}

function waiting({ openBlock, nodeSolidNumber, ownSolidNumber, catchUp }: ChainStatus, behind: number): Cause[] {
  if (behind === 0) return [];
  if (typeof openBlock === 'number') {
    const text = `block ${openBlock} waits until enough operators agree on its transfers`;
    return [{ code: 'agreement', text }];
  }
  if (catchUp !== null || ownSolidNumber >= nodeSolidNumber) return [];
  const text = `the nodes call block ${nodeSolidNumber} irreversible, and the headers that we know prove it up to block ${ownSolidNumber}`;
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

/** Says in words if a number is not known yet. */
export function describeCatchUp({ blocksPerSecond, secondsLeft }: NonNullable<ChainStatus['catchUp']>): string {
  if (!blocksPerSecond || !secondsLeft) return 'how fast is not known yet';
  return `${blocksPerSecond.toFixed(1)} blocks a second, about ${Math.ceil(secondsLeft)} s left`;
}
