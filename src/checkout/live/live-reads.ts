import type { Network } from '../../domain/network.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Database } from '../../store/db/database.ts';
import { readChainHeads, readCheckoutInvoices } from '../../store/ledger/checkout.ts';
import type { ChainHead } from '../../store/ledger/paying-transfer.ts';
import { type LinkedInvoice, suspensionOf } from '../page/page-state.ts';

export type LiveReads = {
  /** The invoice behind a link, as it is now or later, or that payment is suspended; `null` where there is none. */
  readInvoice(checkoutToken: string): Promise<LinkedInvoice | null>;
  readHeads(): Promise<Map<Network, ChainHead>>;
};

/** The most links that `readCheckoutInvoices` takes. */
const MAX_TOGETHER = 500;

type PendingRead = { resolve(invoice: LinkedInvoice | null): void; reject(error: unknown): void };

/**
 * Makes all reads of live pages, one query at a time. So no answer is older than one that came before it, and the database gets one query
 * at a time, however many pages ask. Questions from one turn of the process, or asked while a query is under way, go into the next query,
 * up to 500 links in each. The number of requests in the server and of open pages bounds how many wait.
 */
export function createLiveReads({
  db,
  metrics,
}: {
  db: Database;
  metrics: Pick<Metrics, 'livePageQueries'>;
}): LiveReads {
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
        // The batch is taken no sooner, so that questions asked while another query was under way go along.
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
    readInvoice: (token) =>
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

/** One invoice that can't be relied on fails the whole query. Then each half is read by itself, down to the links that fail alone. */
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
