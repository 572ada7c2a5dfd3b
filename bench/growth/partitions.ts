import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Client } from 'pg';
import { uuidV7 } from '../../src/domain/ids.ts';
import { pooledRandom } from '../../src/runtime/random.ts';
import type { PostgresConnection } from '../../src/store/embedded/connection.ts';
import { onServer } from '../databases.ts';
import type { Measured } from './history.ts';
import { addCost, type Cost, meter, NO_COST } from './meter.ts';
import { createDatabase } from './shop.ts';
import { compare, inTurn } from './spread.ts';

export type PartitionsPlan = { invoices: number; rounds: number; creates: number };

const PARTITIONS = 16;
const PROJECTS = 64;
const TURNS = 8;
const SIDES = ['whole', 'split'] as const;

/**
 * What an insert costs in a table of invoices against one that is partitioned by hash of the project, both with the keys of
 * deploy/distributed/by-project.sql, without foreign keys and triggers. Projects have equally many invoices, and each insert is of another one.
 */
export async function measurePartitions(
  server: PostgresConnection,
  plan: PartitionsPlan,
  onProgress: (text: string) => void,
): Promise<Measured> {
  const { db, connection } = await createDatabase(server, 'growth_partitions');
  await db.close();
  const projects = Array.from({ length: PROJECTS }, newId);
  const addresses = Array.from({ length: PROJECTS }, newId);
  return onServer(connection, async (client) => {
    await client.query(await readFile(new URL('../../deploy/distributed/by-project.sql', import.meta.url), 'utf8'));
    await client.query('create table whole (like invoices including all)');
    await client.query('create table split (like invoices including all) partition by hash (project_id)');
    for (let part = 0; part < PARTITIONS; part++) {
      await client.query(
        `create table split_${part} partition of split for values with (modulus ${PARTITIONS}, remainder ${part})`,
      );
    }
    for (const side of SIDES) {
      onProgress(`filling ${plan.invoices} invoices, ${side}`);
      await client.query(FILL.replace('TABLE', side), [projects, addresses, plan.invoices]);
    }
    await client.query('vacuum analyze');
    await client.query('checkpoint');
    return measureInserts(client, projects, addresses, plan, onProgress);
  });
}

async function measureInserts(
  client: Client,
  projects: string[],
  addresses: string[],
  plan: PartitionsPlan,
  onProgress: (text: string) => void,
): Promise<Measured> {
  const name = 'insert an invoice, partitioned against not';
  const rounds: [number, number][] = [];
  const costs: [Cost, Cost] = [NO_COST, NO_COST];
  let next = 0;
  for (let round = 0; round <= plan.rounds; round++) {
    onProgress(round === 0 ? 'warming up' : `round ${round} of ${plan.rounds}`);
    const both = await inTurn(TURNS, async (at) => {
      const { result, cost } = await meter(client, async () => {
        const startedAt = performance.now();
        for (let count = 0; count < plan.creates; count++) {
          const of = next++ % PROJECTS;
          const price = 10_000_000_000 + next;
          const values = [
            newId(),
            projects[of],
            addresses[of],
            randomUUID(),
            randomUUID(),
            price,
            randomUUID().slice(-22),
          ];
          await client.query({ name: SIDES[at], text: INSERT.replace('TABLE', SIDES[at]), values });
        }
        return (performance.now() - startedAt) / plan.creates;
      });
      if (round > 0) costs[at] = addCost(costs[at], cost, plan.rounds * TURNS * plan.creates);
      return result;
    });
    if (round > 0) rounds.push(both);
  }
  return { comparisons: [compare(name, rounds)], costs: { [name]: costs } };
}

function newId(): string {
  return uuidV7(Date.now(), pooledRandom(10));
}

const COLUMNS =
  'id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, checkout_token, created_at, expires_at';
const INSERT = `insert into TABLE (${COLUMNS})
  values ($1, $2, 'devnet', $3, $4, $5, $6::int8, $6::int8, $7, now(), now() + interval '30 minutes') on conflict do nothing`;

const FILL = `
  insert into TABLE (${COLUMNS})
  select uuidv7(interval '-90 days' * (1 - n / $3::float8)), ($1::uuid[])[1 + n % ${PROJECTS}], 'devnet', ($2::uuid[])[1 + n % ${PROJECTS}],
    gen_random_uuid()::text, 'order-' || 1000000000000000 + n, 1000000 + n, 1000000 + n,
    translate(left(encode(uuid_send(gen_random_uuid()), 'base64'), 22), '+/0OIl', 'abcdef'), now(), now() + interval '30 minutes'
  from generate_series(1, $3::int8) n`;
