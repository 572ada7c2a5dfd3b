import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Devnet, startDevnet } from '@quittance/devnet';
import { inject } from 'vitest';
import { readMigrations } from '../../src/core/store/db/migrate.ts';
import { eventually } from '../support/service.ts';
import { type Failpoint, nameOf } from './failpoint.ts';
import { killPostgres } from './kill-postgres.ts';
import { type Life, startLife } from './life.ts';
import { MASTER_KEY } from './shop.ts';

/** A first start that ends at a failpoint or after this many milliseconds, optionally with its PostgreSQL. */
export type FirstStart = { failpoint: Failpoint | null; diesMs: number; killsPostgres: boolean };

/** The result of each first start, by name, and violations found by the second start. */
export type FirstStartFigures = { deaths: string[]; missed: string[]; violations: string[] };

/** Kills the very first start on a data directory and starts it again. The second start must work as if nothing had happened. */
export async function killFirstStarts(starts: readonly FirstStart[]): Promise<FirstStartFigures> {
  const figures: FirstStartFigures = { deaths: [], missed: [], violations: [] };
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  try {
    devnet.mineUntilSolid();
    for (const start of starts) await startTwice(devnet, start, figures);
    return figures;
  } finally {
    await devnet.stop();
  }
}

async function startTwice(devnet: Devnet, start: FirstStart, figures: FirstStartFigures): Promise<void> {
  const { failpoint, diesMs, killsPostgres } = start;
  const folder = await mkdtemp(join(inject('runDirectory'), 'first-'));
  await chmod(folder, 0o1777);
  const dataDir = join(folder, 'data');
  const env = {
    QUITTANCE_PORT: '0',
    QUITTANCE_DEVNET_NODES: devnet.url,
    QUITTANCE_DEVNET_USDT: devnet.usdtContract,
    QUITTANCE_MASTER_KEY: MASTER_KEY,
    // The test writes unsealed rows.
    QUITTANCE_ROW_MACS: 'warn',
  };
  const name = failpoint === null ? `after ${diesMs} ms` : nameOf(failpoint);
  let second: Life | null = null;
  try {
    const first = await startLife({ dataDir, folder, env, failpoint, formerSocket: null });
    const death = await first.dieWithin(diesMs, { killsPostgres });
    if (failpoint !== null && death !== 'failpoint') figures.missed.push(name);
    else figures.deaths.push(name);
    const formerSocket = first.database?.connection.host ?? null;
    second = await startLife({ dataDir, folder, env, failpoint: null, formerSocket });
    const problem = await findProblem(second);
    if (problem !== null) figures.violations.push(`${name}: ${problem}`);
  } finally {
    await second?.dieWithin(0);
    await killPostgres(dataDir);
    await rm(folder, { recursive: true, force: true });
  }
}

/** The lease of a dead watcher, and some slack. */
const CURSOR_LIMIT_MS = 15_000;

async function findProblem({ service, database }: Life): Promise<string | null> {
  if (database === null || (await service.ready) === 'ended') return `it does not start: ${service.output()}`;
  const { rows } = await eventually(
    () =>
      database.client.query(`
        select (select count(*)::int from schema_migrations) as migrations, (select count(*)::int from chain_cursors) as cursors,
          (select count(*)::int from producer_sets) as producers, (select count(*)::int from receipt_keys) as keys`),
    ({ rows: [row] }) => row.cursors > 0,
    CURSOR_LIMIT_MS,
  );
  const expected = { migrations: (await readMigrations()).length, cursors: 1, producers: 1, keys: 1 };
  const seen = JSON.stringify(rows[0]);
  return seen === JSON.stringify(expected) ? null : `it holds ${seen}, and not ${JSON.stringify(expected)}`;
}
