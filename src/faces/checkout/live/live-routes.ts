import type { OutgoingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../../../core/domain/ids.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { inSlices, type Slices } from '../../../core/runtime/concurrency.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import { startLoop } from '../../../core/runtime/loop.ts';
import type { Metrics } from '../../../core/runtime/metrics.ts';
import type { Database } from '../../../core/store/db/database.ts';
import {
  ALL_PAGES,
  INVOICES_CHANNEL,
  readChainHeads,
  readCheckoutInvoices,
} from '../../../core/store/ledger/checkout.ts';
import type { ChainHead } from '../../../core/store/ledger/payments.ts';
import { createLiveStreams, type LiveStream, STREAM_HEADERS } from '../../web/live-streams.ts';
import { type Problem, retryLater } from '../../web/problem.ts';
import { hijackForStream } from '../../web/shed-load.ts';
import { composeMessage, type LiveMessage, versionOf } from '../page/page.ts';
import {
  isBlind,
  type LinkedInvoice,
  type LinkPage,
  type Page,
  type Site,
  stateOf,
  suspensionOf,
} from '../page/page-state.ts';
import { DATA_HEADERS, UNKNOWN_LINK } from '../page/register.ts';
import { chooseLanguage } from '../words/languages.ts';
import { wordsOf } from '../words/words.ts';

type LiveDeps = LivePagesDeps & { metrics: Pick<Metrics, 'requestSeconds'>; site: Site; beatMs?: number };

const schema = { hide: true };

/**
 * `GET /c/:token/live` streams a page's changes as server-sent events of the type `page`, each of which is a `LiveMessage`. `GET
 * /c/:token/parts` returns the same to clients that poll. `v`, or the header `Last-Event-ID`, is the version that the reader sees. Status
 * 204 means that nothing is new, or that nothing will ever change again.
 */
export function registerLive(app: FastifyInstance, deps: LiveDeps): void {
  const pages = createLivePages(deps);
  const streams = createLiveStreams(deps);
  app.addHook('preClose', async () => {
    streams.stop();
    await pages.stop();
  });
  app.get('/c/:token/parts', { schema }, async (request, reply) => {
    reply.headers(DATA_HEADERS);
    const asked = readAsked(request, deps.site);
    const invoice = asked && (await pages.read(asked.token));
    if (asked === null || invoice === null) return reply.code(404).send(UNKNOWN_LINK);
    const page = pageOf(asked.reader, invoice, deps.now());
    if (versionOf(page) !== asked.version) return composeMessage(null, page);
    // The script sets its countdown by this time, as it does by the messages' `now`. Some proxies, such as nginx, replace the header Date.
    return sendNothing(request, reply.code(204).header('X-Now', page.now));
  });
  app.get('/c/:token/live', { schema }, async (request, reply) => {
    const startedMs = performance.now();
    reply.headers(DATA_HEADERS);
    const asked = readAsked(request, deps.site);
    if (asked === null) return reply.code(404).send(UNKNOWN_LINK);
    if (!pages.hasRoom(asked.token)) throw tooManyOpen();
    const page = await pages.open(asked.token, asked.reader);
    if (page === null) return reply.code(404).send(UNKNOWN_LINK);
    reply.headers(STREAM_HEADERS);
    // A pipelined request doesn't have its own connection yet, so nothing would show that the client has disconnected.
    if (reply.raw.socket === null) {
      page.close();
      throw tooManyOpen();
    }
    const isOver = isPaid(page) && versionOf(page.look()) === asked.version;
    if (isOver || request.method === 'HEAD' || reply.raw.destroyed) {
      page.close();
      return sendNothing(request, reply.code(isOver ? 204 : 200));
    }
    hijackForStream(request, reply);
    reply.raw.once('close', page.close);
    follow(page, asked.version, streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders));
    // For responses that aren't hijacked, the server's hook does the same.
    const labels = { method: request.method, route: '/c/:token/live', status: '200' };
    deps.metrics.requestSeconds.observe(labels, (performance.now() - startedMs) / 1000);
    return reply;
  });
}

type Asked = { token: string; version: string; reader: Reader };

function readAsked(request: FastifyRequest, site: Site): Asked | null {
  const { token } = request.params as { token: string };
  if (!isCheckoutToken(token)) return null;
  const { v } = request.query as { v?: unknown };
  const version = String(request.headers['last-event-id'] ?? v ?? '');
  const { language, isAsked } = chooseLanguage(request);
  return { token, version, reader: { words: wordsOf(language), isLanguageAsked: isAsked, site } };
}

function follow(page: LivePage, version: string, stream: LiveStream): void {
  page.start(version, (message) => {
    stream.send('page', message.version, JSON.stringify(message));
    if (isPaid(page)) stream.end();
  });
}

function isPaid(page: LivePage): boolean {
  return stateOf(page.look()) === 'paid';
}

/** HEAD gets an empty stream, because Fastify would send a Content-Length for any other response. */
function sendNothing({ method }: FastifyRequest, reply: FastifyReply): FastifyReply {
  return method === 'HEAD' ? reply.send(Readable.from([])) : reply.send();
}

/** The page polls until a stream is free. */
const FULL_RETRY_S = 60;

function tooManyOpen(): Problem {
  const detail = 'Too many payment pages are open, either with this link or in total. Poll /parts instead.';
  return retryLater('UNAVAILABLE', detail, FULL_RETRY_S);
}

export type LivePagesDeps = {
  db: Database;
  now(): UnixMs;
  log: Logger;
  metrics: Pick<Metrics, 'livePageQueries' | 'openPages'>;
  /** How often the newest blocks are read while a page is open. */
  lookMs?: number;
  /** How often every open page is read again, even if there was no notification. */
  sweepMs?: number;
};

type LookedAt = LinkPage & { now: UnixMs };

/** An open page. Its content never goes back in time. */
export type LivePage = ReturnType<typeof toLivePage>;

export type LivePages = ReturnType<typeof createLivePages>;

/** Each page needs about 20 KB and a socket. */
const MAX_PAGES = 10_000;
/** A payer may have a few pages open: on a phone, on a computer, in tabs. Any further pages for the same link poll. */
const MAX_PAGES_PER_LINK = 20;
/**
 * It takes from 20 µs (progress) to 2 ms (with a QR code) to compose a message. A slice never blocks the process's other work for longer
 * than this.
 */
const SLICE_MS = 10;

/**
 * Sends changes to open pages. However many pages are open, it uses one listening connection and few queries. Pages stay open while the
 * database is down; they turn blind when their newest known block gets too old.
 */
export function createLivePages(deps: LivePagesDeps) {
  const { now, log, metrics } = deps;
  const registry = createLiveRegistry();
  const reads = createLiveReads(deps);
  const toNotify = inSlices<OpenPage>(SLICE_MS, (page) => {
    try {
      notify(page, now());
    } catch (error) {
      // If one page fails, the others must still be notified. The failed page is tried again at the next change.
      log.error({ err: error, invoiceId: page.link.invoiceId }, 'could not update a live page');
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
    /** Whether another page for this link may be opened. */
    hasRoom: (token: string) => registry.pageCount() < MAX_PAGES && registry.pagesOf(token) < MAX_PAGES_PER_LINK,
    /** Opens a page, which the caller must close. Returns `null` if the link is unknown. */
    open: async (token: string, reader: Reader): Promise<LivePage | null> => {
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
) {
  return {
    /** Returns the page as the reader should see it now. */
    look: () => lookAt(page, now()),
    /** Starts sending changes to the reader. If the reader sees another version, the current content is sent first. */
    start: (version: string, send: (message: LiveMessage) => void): void => {
      page.send = send;
      const present = lookAt(page, now());
      // The reader's content is known only if its version is the current one.
      if (versionOf(present) === version) show(page, present, version);
      else toNotify.add(page);
    },
    close: () => close(page),
  };
}

function lookAt({ link: { token, invoice }, reader }: OpenPage, now: UnixMs): LookedAt {
  if (invoice === null) throw new Error(`could not read the invoice of ${token.slice(0, 4)}…`);
  return pageOf(reader, invoice, now);
}

/** Returns a link's page as a reader sees it now. */
function pageOf(reader: Reader, invoice: LinkedInvoice, now: UnixMs): LookedAt {
  // Both branches do the same, but they let the compiler distinguish the two kinds of page.
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

type LiveUpdatesOptions = LivePagesDeps & {
  registry: LiveRegistry;
  reads: LiveReads;
  /** Called when this link's pages may have changed. */
  onChange(link: OpenLink): void;
};

/** The network makes a block every 3 s. */
const LOOK_MS = 1500;
/** The longest time until a missed change is noticed. For 5,000 links, the sweep costs half a query per second. */
const SWEEP_MS = 20_000;
/** The longest pause while the database is down, which is short because payers are waiting. */
const MAX_PAUSE_MS = 5000;
/** The maximum number of links in each query of a sweep so that a change that was notified waits for only one query. */
const MAX_TOGETHER = 500;

/**
 * Keeps the state of open links up to date. PostgreSQL sends notifications about changed invoices, and only those with open pages are read.
 * A new block changes the pages of CONFIRMING invoices and may have moved their transfers, so these invoices are read as well. A page can
 * also turn blind without any notification, just because time passes. If no page is open, nothing is read.
 */
function startLiveUpdates(options: LiveUpdatesOptions) {
  const { db, now, log, registry, reads, onChange, lookMs = LOOK_MS, sweepMs = SWEEP_MS } = options;
  /** Links that must be read again. A link remains here until a read succeeds. */
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
    // This is a new connection, so earlier notifications have been lost.
    if (invoiceId === null || invoiceId === ALL_PAGES) return markAll();
    const link = registry.findByInvoice(invoiceId);
    // The loop tries again, and logs a repeated failure.
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
  // This timer is separate from the loop, because the loop may be waiting for a hanging database.
  const timer = setInterval(() => noticeTime(registry, now(), onChange), lookMs);
  return {
    /** Reads the invoice for a newly opened link. Returns `false` if there's none. */
    readFirst: async (link: OpenLink): Promise<boolean> => {
      const before = timesHeard;
      const isKnown = await read(link);
      // If a change was notified before the invoice's id was known, it may have been about this invoice.
      if (isKnown && timesHeard !== before) read(link).catch(() => stale.add(link));
      return isKnown;
    },
    stop: () => {
      clearInterval(timer);
      return loop.stop();
    },
  };
}

/** Returns the links whose invoices must be read because their transfer may now be in another block. */
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

/** Finds links whose pages turn blind, or are no longer blind. */
function noticeTime(registry: LiveRegistry, now: UnixMs, onChange: (link: OpenLink) => void): void {
  for (const link of registry.links()) {
    const { invoice } = link;
    if (invoice === null || !('id' in invoice)) continue;
    if (isBlind(invoice, now) === link.isBlind) continue;
    link.isBlind = !link.isBlind;
    onChange(link);
  }
}

type Reader = Pick<Page, 'words' | 'isLanguageAsked' | 'site'>;

/** A link's page for one reader. `sent` is what was sent last. `send` is `null` until streaming starts. */
type OpenPage = {
  link: OpenLink;
  reader: Reader;
  sent: LinkPage | null;
  version: string;
  send: ((message: LiveMessage) => void) | null;
};

/** A link with open pages, and its invoice as it was last read, or `null` if it hasn't been read yet. */
type OpenLink = {
  token: string;
  invoice: LinkedInvoice | null;
  /** The id of the invoice, once it has been read. It's kept even while payment is suspended. */
  invoiceId: string | null;
  isBlind: boolean;
  pages: Set<OpenPage>;
};

type LiveRegistry = ReturnType<typeof createLiveRegistry>;

/** The open pages, by link and by invoice id. Links without an open page are dropped. */
function createLiveRegistry() {
  const byToken = new Map<string, OpenLink>();
  const byInvoice = new Map<string, OpenLink>();
  let pageCount = 0;
  return {
    pageCount: (): number => pageCount,
    pagesOf: (token: string): number => byToken.get(token)?.pages.size ?? 0,
    links: (): Iterable<OpenLink> => byToken.values(),
    findByInvoice: (id: string): OpenLink | undefined => byInvoice.get(id),
    add: (token: string, reader: Reader): OpenPage => {
      const link = byToken.get(token) ?? { token, invoice: null, invoiceId: null, isBlind: false, pages: new Set() };
      const page: OpenPage = { link, reader, sent: null, version: '', send: null };
      byToken.set(token, link);
      link.pages.add(page);
      pageCount += 1;
      return page;
    },
    remove: (page: OpenPage): void => {
      const { link } = page;
      if (!link.pages.delete(page)) return;
      pageCount -= 1;
      if (link.pages.size > 0) return;
      byToken.delete(link.token);
      if (link.invoiceId !== null) byInvoice.delete(link.invoiceId);
    },
    /** Stores a link's invoice, unless its last page has been closed in the meantime. */
    learn: (link: OpenLink, invoice: LinkedInvoice): void => {
      if (byToken.get(link.token) !== link) return;
      link.invoice = invoice;
      if (!('id' in invoice)) return;
      link.invoiceId = invoice.id;
      byInvoice.set(invoice.id, link);
    },
  };
}

type LiveReads = ReturnType<typeof createLiveReads>;

type PendingRead = { resolve(invoice: LinkedInvoice | null): void; reject(error: unknown): void };

/**
 * Runs all reads for live pages, one query at a time. This way, no read returns older data than an earlier one, and the load on the
 * database doesn't depend on the number of pages. Reads that are requested in the same turn of the event loop, or during a query, share the
 * next query, up to 500 links each. The queue is bounded by the limits on requests and open pages.
 */
export function createLiveReads({ db, metrics }: { db: Database; metrics: Pick<Metrics, 'livePageQueries'> }) {
  const due = new Map<string, PendingRead[]>();
  let isReading = false;
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Answer>(kind: 'invoices' | 'heads', query: () => Promise<Answer>): Promise<Answer> => {
    const answer = last.then(() => {
      metrics.livePageQueries.inc({ kind });
      return query();
    });
    last = answer.catch(() => undefined);
    return answer;
  };
  const readNext = async () => {
    let batch = new Map<string, PendingRead[]>();
    try {
      const invoices = await inTurn('invoices', async () => {
        // The batch is taken as late as possible so that it includes reads that were requested during the previous query.
        batch = takeFirst(due, MAX_TOGETHER);
        return readTogether(db, [...batch.keys()]);
      });
      const found = new Map(invoices.map((invoice) => [invoice.checkoutToken, invoice]));
      for (const [token, all] of batch) for (const { resolve } of all) resolve(found.get(token) ?? null);
    } catch (error) {
      for (const all of batch.values()) for (const { reject } of all) reject(error);
    }
  };
  const readAll = async () => {
    while (due.size > 0) await readNext();
    isReading = false;
  };
  return {
    /**
     * Returns the state of the invoice behind a link at the time of this call or later, or the reason why payment is suspended. Returns
     * `null` if there's no invoice.
     */
    readInvoice: (token: string): Promise<LinkedInvoice | null> =>
      new Promise((resolve, reject) => {
        const others = due.get(token);
        if (others === undefined) due.set(token, [{ resolve, reject }]);
        else others.push({ resolve, reject });
        if (isReading) return;
        isReading = true;
        setImmediate(readAll);
      }),
    readHeads: () => inTurn('heads', () => readChainHeads(db)),
  };
}

/**
 * A single unreliable invoice makes the whole query fail. In that case, each half of the links is read separately, until only the links
 * that fail are left.
 */
async function readTogether(db: Database, tokens: readonly string[]): Promise<LinkedInvoice[]> {
  try {
    return await readCheckoutInvoices(db, tokens);
  } catch (error) {
    const suspended = error instanceof Error ? suspensionOf(error) : null;
    const [checkoutToken] = tokens;
    if (suspended === null || checkoutToken === undefined) throw error;
    if (tokens.length === 1) return [{ checkoutToken, suspended }];
  }
  const half = Math.ceil(tokens.length / 2);
  return [...(await readTogether(db, tokens.slice(0, half))), ...(await readTogether(db, tokens.slice(half)))];
}

function takeFirst<Key, Value>(from: Map<Key, Value>, count: number): Map<Key, Value> {
  const taken = new Map([...from].slice(0, count));
  for (const key of taken.keys()) from.delete(key);
  return taken;
}
