import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { type ChainHead, type CheckoutInvoice, readChainHeads, readCheckoutInvoices } from '../store/checkout.ts';
import type { Database } from '../store/database.ts';

export type LiveReads = {
  /** The invoice behind a link, as it is now or later; `null` where there is none. */
  readInvoice(checkoutToken: string): Promise<CheckoutInvoice | null>;
  readHeads(): Promise<Map<Network, ChainHead>>;
};

/** What `readCheckoutInvoices` takes. */
const MAX_TOGETHER = 500;

type Waiting = { resolve(invoice: CheckoutInvoice | null): void; reject(error: unknown): void };

/**
 * All that live pages read, one query at a time: so no answer is older than one that came before it, and however many pages ask, the
 * database is asked by one of them. What is asked in one turn of the process, or while a query is under way, goes into the next,
 * up to 500 links in each. As many wait as there are requests in the server and open pages, which bounds it.
 */
export function createLiveReads({
  db,
  metrics,
}: {
  db: Database;
  metrics: Pick<Metrics, 'livePageQueries'>;
}): LiveReads {
  const due = new Map<string, Waiting[]>();
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
    let batch = new Map<string, Waiting[]>();
    try {
      const invoices = await inTurn('invoices', async () => {
        // Taken no sooner than this: what was asked while another query was under way goes along.
        batch = takeFirst(due, MAX_TOGETHER);
        return readTogether(db, batch);
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

/** A damaged address fails what is read with it: then each link is read alone, and only those that have it fail. */
async function readTogether(db: Database, batch: Map<string, Waiting[]>): Promise<CheckoutInvoice[]> {
  const tokens = [...batch.keys()];
  try {
    return await readCheckoutInvoices(db, tokens);
  } catch (error) {
    if (!isDamaged(error)) throw error;
  }
  const found: CheckoutInvoice[] = [];
  for (const token of tokens) {
    try {
      found.push(...(await readCheckoutInvoices(db, [token])));
    } catch (error) {
      if (!isDamaged(error)) throw error;
      for (const { reject } of batch.get(token) ?? []) reject(error);
      batch.delete(token);
    }
  }
  return found;
}

export function isDamaged(error: unknown): boolean {
  return error instanceof AppError && error.code === 'ADDRESS_DAMAGED';
}

function takeFirst<Key, Value>(from: Map<Key, Value>, count: number): Map<Key, Value> {
  const taken = new Map([...from].slice(0, count));
  for (const key of taken.keys()) from.delete(key);
  return taken;
}
