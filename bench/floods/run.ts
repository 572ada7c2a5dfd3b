import { setTimeout as delay } from 'node:timers/promises';
import { startDevnet } from '@quittance/devnet';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, type Child, freePort, startScript, startService } from '../child.ts';
import { onServer } from '../databases.ts';
import { createShop } from '../ingest/shop.ts';
import { cpuMs, residentBytes } from '../proc.ts';
import type { AttackJob, AttackResult } from './attack.ts';
import type { HonestJob, HonestResult } from './honest.ts';
import { judgeFloods, type Measured, showFloods } from './report.ts';

type Flood = { name: string; attack: Omit<AttackJob, 'url' | 'from' | 'seconds'> | null };

/**
 * Measures the same honest clients alone, and during each flood: 13,000 connections from one address, junk keys, requests for the largest
 * free document, and wrong passwords from 1,000 networks.
 */
const FLOODS: Flood[] = [
  { name: 'quiet', attack: null },
  { name: '13,000 half-open sockets', attack: { kind: 'half-open', connections: 13_000, perSecond: 0 } },
  { name: '8,450 junk keys/s', attack: { kind: 'junk', connections: 1500, perSecond: 8450 } },
  { name: '/openapi.json', attack: { kind: 'openapi', connections: 100, perSecond: 100_000 } },
  { name: 'sign-ins from 1,000 networks', attack: { kind: 'sign-in', connections: 1000, perSecond: 2000 } },
];
const [ATTACKER, CLIENT] = ['127.0.0.9', '127.0.0.2'];
const PER_SECOND = 30;
/** How long a flood builds up before the honest clients' requests count. */
const SETTLE_S = 5;
const BLOCK_MS = 3000;

/** Measures what one machine can take away from the clients of a process with all roles. */
export async function runFloods(context: BenchContext): Promise<BenchResult> {
  const [seconds, rounds] = context.flags.quick ? [10, 1] : [20, 3];
  const devnet = await startDevnet({ dataDir: null, blockMs: BLOCK_MS, producers: 5 });
  context.onStart(devnet);
  const shop = await createShop(context.postgres, 'floods', null);
  const consolePort = await freePort();
  const env = {
    QUITTANCE_ROLES: 'api,watcher,webhooks,console',
    QUITTANCE_CONSOLE_PORT: String(consolePort),
    QUITTANCE_DEVNET_NODES: devnet.url,
    QUITTANCE_DEVNET_USDT: devnet.usdtContract,
  };
  const service = await startService(context.command, shop.connection, { env });
  context.onStart(service);
  const [attacker] = await startScript('./floods/attack.ts', {});
  context.onStart(attacker);
  const [client] = await startScript('./floods/honest.ts', {});
  context.onStart(client);
  const { url } = service;
  const honest: HonestJob = { url, from: CLIENT, perSecond: PER_SECOND, seconds, apiKey: shop.apiKey };
  // The first requests are slower, because nothing is compiled yet.
  await hear<HonestResult>(client, { ...honest, seconds: SETTLE_S });
  const measured: Measured[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, attack } of FLOODS) {
      context.onProgress(`${name}, round ${round} of ${rounds}`);
      const before = await look(service.pid, shop.connection);
      const length = SETTLE_S + seconds + 2;
      const target =
        attack?.kind === 'sign-in' ? { url: `http://localhost:${consolePort}`, from: null } : { url, from: ATTACKER };
      const flooding = attack && hear<AttackResult>(attacker, { ...attack, ...target, seconds: length });
      await delay(SETTLE_S * 1000);
      const reported = await hear<HonestResult>(client, honest);
      const { residentBytes: resident } = await look(service.pid, shop.connection);
      const flood = await flooding;
      if (flood === null) await delay(2000);
      const after = await look(service.pid, shop.connection);
      const passed = (after.atMs - before.atMs) / 1000;
      measured.push({
        ...{ name, honest: reported, flood, seconds: passed, residentBytes: resident },
        transactions: after.transactions - before.transactions,
        cpuShare: (after.cpuMs - before.cpuMs) / (10 * passed),
      });
      // Waits until the buckets fill up and half-open connections are closed.
      await delay(SETTLE_S * 1000);
    }
  }
  const targets = judgeFloods(measured);
  return { markdown: showFloods(measured), targets, record: { seconds, rounds, measured } };
}

async function look(pid: number, connection: PostgresConnection) {
  // A connection reports its statistics after it has been idle for a second.
  await delay(1500);
  const [row] = await onServer(connection, async (client) => {
    const { rows } = await client.query<{ transactions: string }>(
      'select xact_commit + xact_rollback as transactions from pg_stat_database where datname = current_database()',
    );
    return rows;
  });
  const [cpu, resident] = await Promise.all([cpuMs(pid), residentBytes(pid)]);
  return { atMs: performance.now(), transactions: Number(row?.transactions), cpuMs: cpu, residentBytes: resident };
}

async function hear<Result>(child: Child, job: object): Promise<Result> {
  const answer = await ask<Result | { error: string }>(child, job);
  if (typeof answer === 'object' && answer !== null && 'error' in answer) throw new Error(answer.error);
  return answer as Result;
}
