import type { FastifyInstance } from 'fastify';
import { createTransactionReader, type TransactionReaderDeps } from '../chain/verify/transaction-reader.ts';
import { registerLive } from '../checkout/live/live-routes.ts';
import { registerAsk } from '../checkout/lookup/ask.ts';
import { createLookupLimits, registerLookup } from '../checkout/lookup/lookup.ts';
import { createLookupBudget } from '../checkout/lookup/lookup-budget.ts';
import { registerLogos } from '../checkout/page/logos.ts';
import { limitPages } from '../checkout/page/page-limits.ts';
import { registerCheckout } from '../checkout/page/register.ts';
import { serveRobots } from '../checkout/page/robots.ts';
import { registerReceipts } from '../checkout/receipt/receipt-routes.ts';
import { createReceiptSigner } from '../checkout/receipt/receipt-signer.ts';
import { accountToAddress } from '../tron/address.ts';
import type { Context } from './context.ts';

/** Registers the pages that payers open. */
export async function registerPages(app: FastifyInstance, context: Context): Promise<void> {
  const { requestDb: db, keyRing, log, metrics, now, random, pools, publicUrl } = context;
  const usdt = Object.fromEntries(pools.map(({ network, usdt }) => [network, accountToAddress(usdt)]));
  const lookUp = { readTransaction: createReaders(context), limits: createLookupLimits(now) };
  const signer = createReceiptSigner({ db, keyRing, log, now, random });
  await signer.prepare();
  const deps = { db, now, site: { publicUrl, usdt, proofOf: context.addressGuard.proofOf } };
  limitPages(app, deps);
  serveRobots(app);
  registerCheckout(app, deps);
  registerLive(app, { ...deps, log, metrics });
  registerLogos(app, { db });
  registerLookup(app, { ...deps, ...lookUp });
  registerAsk(app, { ...deps, ...lookUp });
  registerReceipts(app, { ...deps, signer });
}

/** Payers' questions about transactions, by network, go to nodes within a budget of their own. */
function createReaders({ config, pools, requestDb: db, now, log }: Context) {
  const budget = createLookupBudget(now, config.lookupsPerMinute);
  const readers = pools.map(({ network, pool, usdt }) => {
    const spend: TransactionReaderDeps['spend'] = ({ askedFor, client }) => budget.take(network, askedFor, client);
    return [network, createTransactionReader({ db, network, pool, usdt, now, log, spend })] as const;
  });
  return Object.fromEntries(readers);
}
