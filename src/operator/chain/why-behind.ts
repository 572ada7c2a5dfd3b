import { alarmRow } from '../../domain/alarm-kinds.ts';
import { nodeOrigin } from '../../domain/node.ts';
import { toIso } from '../../domain/time.ts';
import { parseUrl } from '../../domain/url.ts';
import type { Alarm } from '../../store/chain/alarms.ts';
import type { Halt } from '../../store/chain/cursor.ts';
import { type ChainStatus, STATUS_SILENT_MS } from '../../store/chain/status.ts';
import type { Cause } from './views.ts';

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
export function blocksBehind({ nodeSolidNumber, processedNumber }: ChainStatus): number {
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
