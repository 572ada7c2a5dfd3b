import type { Fit } from '../../../core/domain/mismatch/rank-causes.ts';
import type { Cause } from '../../../core/domain/mismatch.ts';
import type { Network } from '../../../core/domain/network.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { findOpenAlarms } from '../../../core/store/chain/alarms.ts';
import { type ChainCursor, findCursor, findHalt } from '../../../core/store/chain/cursor.ts';
import { readSetAside } from '../../../core/store/chain/set-aside.ts';
import { findChainStatus } from '../../../core/store/chain/status.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import type { Resolution, TransferRecord } from '../subjects/transfer-export.ts';
import type { Omission } from './explanation.ts';
import {
  type ExplainedAttempt,
  type ExplainedDelivery,
  type ExplainedEvent,
  type ExplainedSetAside,
  findAttempts,
  findDeliveries,
} from './statements.ts';

/**
 * An incoming transfer. `causes` are the reasons why it may match no invoice, best first. `fit` is how the transfer fits the invoice in
 * question. It's `null` if the transfer hardly fits, or if no invoice is in question. The operators' resolutions are oldest first.
 */
export type DescribedTransfer = {
  transfer: TransferRecord;
  causes: readonly Cause[];
  fit: Fit | null;
  resolutions: readonly Resolution[];
};

/** An event and its deliveries; `null` if those were omitted. */
export type DescribedEvent = { event: ExplainedEvent; deliveries: readonly DescribedDelivery[] | null };
export type DescribedDelivery = { delivery: ExplainedDelivery; attempts: readonly ExplainedAttempt[] };

/** No one would read longer lists. */
export const [MAX_SHOWN, MAX_EVENTS] = [20, 60];
const MAX_DELIVERIES = 60;
/** The limit for each delivery. A schedule has 12 attempts, and up to 240 while the endpoint fails. */
const MAX_ATTEMPTS = 60;

export const omit = (what: string, shown: number, total: number): Omission => {
  return { what, shown: Math.min(shown, total), total };
};

/** Reads the newest deliveries of events. */
export async function readDeliveries(
  db: Sql,
  events: readonly ExplainedEvent[],
): Promise<{ events: DescribedEvent[]; deliveries: Omit<Omission, 'what'> }> {
  const ids = events.map(({ id }) => id);
  const deliveries = await findDeliveries(db, ids, MAX_DELIVERIES);
  const total = deliveries[0]?.total ?? 0;
  const attempts = await findAttempts(db, deliveries, MAX_ATTEMPTS);
  const described = events.map((event) => {
    const own = deliveries.filter(({ eventId }) => eventId === event.id);
    if (own.length === 0 && total > deliveries.length) return { event, deliveries: null };
    const isOf = (delivery: ExplainedDelivery) => (attempt: ExplainedAttempt) =>
      attempt.eventId === event.id && attempt.endpointId === delivery.endpointId;
    return {
      event,
      deliveries: own.map((delivery) => ({ delivery, attempts: attempts.filter(isOf(delivery)) })),
    };
  });
  return { events: described, deliveries: { shown: deliveries.length, total } };
}

/** How far the ledger has followed a network, and what keeps it from continuing. */
export type LedgerPosition = { network: Network; cursor: ChainCursor | null; trouble: string | null };

/** A running chain has a block every 3 s; the rest is an allowance for slow nodes and the watcher. */
const LAG_MS = 120_000;

export async function readLedgerPosition(db: Sql, network: Network, now: UnixMs): Promise<LedgerPosition> {
  const cursor = await findCursor(db, network);
  const halt = await findHalt(db, network);
  const blind = (await findChainStatus(db, network))?.status.blind ?? null;
  return { network, cursor, trouble: describeTrouble() };

  function describeTrouble(): string | null {
    if (halt !== null) return `the ${network} watcher has been halted since ${toIso(halt.at)}: ${halt.reason}`;
    if (cursor === null) return `the watcher has not read a block of ${network} yet`;
    const { number, time } = cursor.head;
    if (now - time <= LAG_MS) return null;
    const seen = `${network} was examined only up to block ${number} (${toIso(time)}), so later transfers are not known yet`;
    return blind === null ? seen : `${seen}: ${blind}`;
  }
}

/** Returns text such as `recorded up to block 1030 of …, examined up to block 1048 of …`. */
export function describePosition({ network, cursor }: LedgerPosition): string {
  if (cursor === null) return `the service has not read a block of ${network} yet`;
  const { solid, head } = cursor;
  return `${network}: recorded up to block ${solid.number} (${toIso(solid.time)}), examined up to block ${head.number} (${toIso(head.time)})`;
}

/** The numbers are `null` if the network has never been examined. */
export function ledgerOf({ network, cursor }: LedgerPosition) {
  return { network, recordedBlock: cursor?.solid.number ?? null, examinedBlock: cursor?.head.number ?? null };
}

const ROW_ALARMS: readonly string[] = ['row-changed', 'row-unsealed', 'rows-missing'];

/** Whether an open alarm says that one of these rows (UUIDs) was changed directly in the database. The subject of such an alarm ends in its id. */
export async function isTampered(db: Sql, networks: Iterable<Network>, ids: readonly string[]): Promise<boolean> {
  for (const network of new Set(networks)) {
    const alarms = await findOpenAlarms(db, network);
    if (alarms.some(({ kind, subject }) => ROW_ALARMS.includes(kind) && ids.some((id) => subject.endsWith(id))))
      return true;
  }
  return false;
}

/** `transfer` is `null` if the entry is about an invoice's status, or was changed directly in the database. */
export function readEntry(row: ExplainedSetAside) {
  const entry = row.isSound ? readSetAside(row) : null;
  const [transfer] = entry?.kind === 'transfer' ? entry.block.transfers : [];
  return {
    network: row.network,
    reason: row.isSound ? row.reason : 'its entry was changed directly in the database',
    transfer:
      entry?.kind === 'transfer' && transfer !== undefined ? { ...transfer, blockNumber: entry.block.number } : null,
  };
}

export type SetAsideFacts = ReturnType<typeof readEntry>;
