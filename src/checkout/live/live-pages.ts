import type { UnixMs } from '../../domain/time.ts';
import { inSlices, type Slices } from '../../runtime/in-slices.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Database } from '../../store/db/database.ts';
import { composeMessage, type LiveMessage, versionOf } from '../page/live-message.ts';
import type { LinkedInvoice, LinkPage } from '../page/page-state.ts';
import { createLiveReads } from './live-reads.ts';
import { createLiveRegistry, type OpenPage, type Reader } from './live-registry.ts';
import { startLiveUpdates } from './live-updates.ts';

export type LivePagesDeps = {
  db: Database;
  now(): UnixMs;
  log: Logger;
  metrics: Pick<Metrics, 'livePageQueries' | 'openPages'>;
  /** How often the newest blocks are looked at while a page is open. */
  lookMs?: number;
  /** How often every open page is read again, even if no change was heard. */
  sweepMs?: number;
};

type LookedAt = LinkPage & { now: UnixMs };

/** An open page. Its content never goes back in time. */
export type LivePage = {
  /** The page as the reader should see it now. */
  look(): LookedAt;
  /** From now on each change is sent, beginning with the present if the reader shows another version. */
  start(version: string, send: (message: LiveMessage) => void): void;
  close(): void;
};

export type LivePages = {
  /** Whether one more page of a link may be opened. */
  hasRoom(checkoutToken: string): boolean;
  /** `null` for a link that leads nowhere. The page must be closed. */
  open(checkoutToken: string, reader: Reader): Promise<LivePage | null>;
  /** The invoice behind a link, read together with others; `null` where there is none. */
  read(checkoutToken: string): Promise<LinkedInvoice | null>;
  stop(): Promise<void>;
};

/** Each takes some 20 KB and a socket. */
const MAX_PAGES = 10_000;
/** A payer has a few: a phone, a computer, tabs. Further pages of one link poll. */
const MAX_PAGES_PER_LINK = 20;
/** A message takes from 20 µs, for the progress, to 2 ms with a QR code. Other work waits no longer than this for the process. */
const SLICE_MS = 10;

/**
 * Tells open pages what changes, with one listening connection and few queries however many pages there are. While the database is away,
 * pages stay open; they go blind as the newest block that they know of grows old.
 */
export function createLivePages(deps: LivePagesDeps): LivePages {
  const { now, log, metrics } = deps;
  const registry = createLiveRegistry();
  const reads = createLiveReads(deps);
  const toNotify = inSlices<OpenPage>(SLICE_MS, (page) => {
    try {
      notify(page, now());
    } catch (error) {
      // The others must be told all the same; this one is tried again with the next change.
      log.error({ err: error, invoiceId: page.link.invoiceId }, 'a live page could not be told what changed');
    }
  });
  const updates = startLiveUpdates({
    ...deps,
    registry,
    reads,
    onChange: (link) => {
      for (const page of link.pages) toNotify.add(page);
    },
  });
  const close = (page: OpenPage) => {
    toNotify.remove(page);
    registry.remove(page);
    metrics.openPages.set(registry.pageCount());
  };
  return {
    hasRoom: (token) => registry.pageCount() < MAX_PAGES && registry.pagesOf(token) < MAX_PAGES_PER_LINK,
    open: async (token, reader) => {
      const page = registry.add(token, reader);
      metrics.openPages.set(registry.pageCount());
      try {
        if (await updates.readFirst(page.link)) return toLivePage(page, { now, toNotify, close });
      } catch (error) {
        close(page);
        throw error;
      }
      close(page);
      return null;
    },
    read: reads.readInvoice,
    stop: updates.stop,
  };
}

function toLivePage(
  page: OpenPage,
  { now, toNotify, close }: { now(): UnixMs; toNotify: Slices<OpenPage>; close(page: OpenPage): void },
): LivePage {
  return {
    look: () => lookAt(page, now()),
    start: (version, send) => {
      page.send = send;
      const present = lookAt(page, now());
      // The content that the reader shows is known only if it is the present one.
      if (versionOf(present) === version) show(page, present, version);
      else toNotify.add(page);
    },
    close: () => close(page),
  };
}

function lookAt({ link: { token, invoice }, reader }: OpenPage, now: UnixMs): LookedAt {
  if (invoice === null) throw new Error(`the invoice of ${token.slice(0, 4)}… was not read`);
  return pageOf(reader, invoice, now);
}

/** The page of a link as a reader sees it now. */
export function pageOf(reader: Reader, invoice: LinkedInvoice, now: UnixMs): LookedAt {
  // The same, but the compiler tells the two kinds of a page apart.
  return 'id' in invoice ? { ...reader, invoice, now } : { ...reader, invoice, now };
}

function notify(page: OpenPage, now: UnixMs): void {
  if (page.send === null) return;
  const present = lookAt(page, now);
  const version = versionOf(present);
  if (version === page.version) return;
  const message = composeMessage(page.sent, present);
  show(page, present, version);
  page.send(message);
}

function show(page: OpenPage, present: LinkPage, version: string): void {
  page.sent = present;
  page.version = version;
}
