import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Logger } from '../../runtime/log.ts';
import { startLoop } from '../../runtime/loop.ts';
import type { Database } from '../../store/db/database.ts';
import { ALL_PAGES, INVOICES_CHANNEL } from '../../store/ledger/checkout.ts';
import type { ChainHead } from '../../store/ledger/paying-transfer.ts';
import { isBlind } from '../page/page-state.ts';
import type { LiveReads } from './live-reads.ts';
import type { LiveRegistry, OpenLink } from './live-registry.ts';

export type LiveUpdatesOptions = {
  db: Pick<Database, 'listen'>;
  now(): UnixMs;
  log: Logger;
  lookMs?: number;
  sweepMs?: number;
  registry: LiveRegistry;
  reads: LiveReads;
  /** The pages of this link may show something else now. */
  onChange(link: OpenLink): void;
};

export type LiveUpdates = {
  /** Reads the invoice of a link that was opened; `false` where there is none. */
  readFirst(link: OpenLink): Promise<boolean>;
  stop(): Promise<void>;
};

/** Blocks come every 3 s. */
const LOOK_MS = 1500;
/** A change that was not heard is seen after this time at most. For 5,000 links the sweep costs half a query a second. */
const SWEEP_MS = 20_000;
/** The longest pause while the database is away; no longer, because payers wait. */
const MAX_PAUSE_MS = 5000;
/** The most links of a sweep in one query, so that a change that is heard meanwhile waits for one query only. */
const MAX_TOGETHER = 500;

/**
 * Keeps the known state of open links true. PostgreSQL says which invoices change, and only those with open pages are read. A new block
 * changes the pages of CONFIRMING invoices, and may have moved their transfers, so these invoices are read. Time alone turns pages blind.
 * Without an open page nothing is asked.
 */
export function startLiveUpdates(options: LiveUpdatesOptions): LiveUpdates {
  const { db, now, log, registry, reads, onChange, lookMs = LOOK_MS, sweepMs = SWEEP_MS } = options;
  /** Links that must be read again, until that has succeeded. */
  const stale = new Set<OpenLink>();
  let timesHeard = 0;
  let sweptAt = performance.now();
  const read = async (link: OpenLink): Promise<boolean> => {
    const invoice = await reads.readInvoice(link.token);
    if (invoice === null) return false;
    registry.learn(link, invoice);
    link.isBlind = 'id' in invoice && isBlind(invoice, now());
    onChange(link);
    return true;
  };
  const markAll = () => {
    sweptAt = performance.now();
    for (const link of registry.links()) stale.add(link);
  };
  db.listen(INVOICES_CHANNEL, (invoiceId) => {
    timesHeard += 1;
    // The connection is new: everything that was said before it is lost.
    if (invoiceId === null || invoiceId === ALL_PAGES) return markAll();
    const link = registry.findByInvoice(invoiceId);
    // The loop tries again, and tells the operator if that fails too.
    if (link !== undefined) read(link).catch(() => stale.add(link));
  });
  const readStale = async () => {
    const links = [...stale].slice(0, MAX_TOGETHER);
    for (const link of links) stale.delete(link);
    try {
      await Promise.all(links.filter(({ pages }) => pages.size > 0).map(read));
    } catch (error) {
      for (const link of links) stale.add(link);
      throw error;
    }
  };
  const loop = startLoop({
    name: 'the update of open pages',
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      if (registry.pageCount() > 0) {
        for (const link of applyHeads(registry, await reads.readHeads())) stale.add(link);
      }
      if (performance.now() - sweptAt >= sweepMs) markAll();
      while (stale.size > 0 && !isStopping()) await readStale();
      return lookMs;
    },
  });
  // Not in the loop, which may be waiting for a database that hangs.
  const timer = setInterval(() => noticeTime(registry, now(), onChange), lookMs);
  return {
    readFirst: async (link) => {
      const before = timesHeard;
      const isKnown = await read(link);
      // A change heard before the invoice was known by its id may have been of this invoice.
      if (isKnown && timesHeard !== before) read(link).catch(() => stale.add(link));
      return isKnown;
    },
    stop: () => {
      clearInterval(timer);
      return loop.stop();
    },
  };
}

/** Returns the links whose invoices must be read, because the block of their transfer may be another now. */
function applyHeads(registry: LiveRegistry, heads: ReadonlyMap<Network, ChainHead>): OpenLink[] {
  const toRead: OpenLink[] = [];
  for (const link of registry.links()) {
    const { invoice } = link;
    if (invoice === null || !('id' in invoice)) continue;
    const head = heads.get(invoice.network);
    if (head === undefined || isSame(head, invoice.head)) continue;
    if (invoice.status === 'CONFIRMING') toRead.push(link);
    else link.invoice = { ...invoice, head };
  }
  return toRead;
}

function isSame(one: ChainHead, other: ChainHead | null): boolean {
  return one.number === other?.number && one.time === other.time;
}

/** Finds the links whose pages turn blind, or see again. */
function noticeTime(registry: LiveRegistry, now: UnixMs, onChange: (link: OpenLink) => void): void {
  for (const link of registry.links()) {
    const { invoice } = link;
    if (invoice === null || !('id' in invoice)) continue;
    if (isBlind(invoice, now) === link.isBlind) continue;
    link.isBlind = !link.isBlind;
    onChange(link);
  }
}
