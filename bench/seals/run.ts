import { encodeId } from '../../src/core/domain/ids.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { startScript, startService } from '../child.ts';
import { onServer } from '../databases.ts';
import { createShop } from '../ingest/shop.ts';
import { type Target as Loaded, type Sample, stretch } from '../rounds.ts';
import { emptyInvoices } from '../seed.ts';
import { judgeSeals, type SealFigures, showSeals } from './report.ts';

type Plan = { rounds: number; seconds: number; warmUpSeconds: number; connections: number };
const FULL: Plan = { rounds: 12, seconds: 5, warmUpSeconds: 3, connections: 64 };
const QUICK: Plan = { rounds: 3, seconds: 2, warmUpSeconds: 2, connections: 64 };
const PATHS = 2000;

/** Measures creations and reads with and without row seals, in turn. */
export async function runSeals(context: BenchContext): Promise<BenchResult> {
  const { postgres, flags, onStart, onProgress } = context;
  const plan = flags.quick ? QUICK : FULL;
  const [load] = await startScript('./load.ts', {});
  onStart(load);
  const shops = {
    require: await createShop(postgres, 'seals_on', null),
    off: await createShop(postgres, 'seals_off', null),
  };
  // Two processes with the same work differ by a few percent for as long as they live, so each period of load has its own process.
  const measure = async (mode: 'require' | 'off') => {
    const { connection, apiKey } = shops[mode];
    const server = await startService(context.command, connection, { env: { QUITTANCE_ROW_MACS: mode } });
    onStart(server);
    const run = async (work: 'create' | 'read', seconds: number): Promise<Omit<Sample, 'round'>> => {
      if (work === 'create') await onServer(connection, (client) => emptyInvoices(client));
      const { rows } = await onServer(connection, (client) =>
        client.query<{ id: string }>(`select id from invoices limit ${PATHS}`),
      );
      const paths = rows.map(({ id }) => `/v1/invoices/${encodeId('inv', id)}`);
      const target: Loaded = { side: 'api', tables: 'fresh', server, connection, paths };
      return stretch({ target, work, connections: plan.connections, seconds, load, apiKey });
    };
    await run('create', plan.warmUpSeconds);
    const created = await run('create', plan.seconds);
    await run('read', plan.warmUpSeconds);
    const read = await run('read', plan.seconds);
    await server.stop();
    return { create: created, read };
  };
  const figures: SealFigures = { require: [], off: [] };
  for (let round = 1; round <= plan.rounds; round++) {
    // Every other round runs in reverse order.
    for (const mode of round % 2 === 1 ? (['require', 'off'] as const) : (['off', 'require'] as const)) {
      figures[mode].push(await measure(mode));
    }
    onProgress(`round ${round} of ${plan.rounds}`);
  }
  return { markdown: showSeals(figures), targets: judgeSeals(figures), record: { plan, ...figures } };
}
