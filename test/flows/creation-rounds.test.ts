import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { microUsdt } from '../../src/core/domain/money.ts';
import type { Policy } from '../../src/core/domain/policy.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { type Created, createInvoice, createOrder, type OrderDeps } from '../../src/core/payments/create-invoice.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { runSql } from '../contract/sql.ts';
import { addAddress, setPolicy } from '../support/policies.ts';
import { createTestProject, startTestService, type TestProject, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

type Asked = Parameters<Database['run']>;

/** Wraps the service's database, so that a test can decide the result of each statement; `null` runs it. */
function watchedDatabase(meet: (...asked: Asked) => Promise<[] | null> | null): { db: Database; asked: Asked[] } {
  const asked: Asked[] = [];
  const run = async (...one: Asked) => {
    asked.push(one);
    return (await meet(...one)) ?? service.db.run(...one);
  };
  return { db: { ...service.db, run } as Database, asked };
}

const RULE = { network: 'devnet', invoiceLifetimeMs: 1_800_000 } as const;

/** Creates an invoice of 3 USDT like a request whose key has just been validated. */
function create(db: Database, project: TestProject, policy: Policy, maxSurchargeMicro = 100n): Promise<Created> {
  return createInvoice({ db, ...CHANCE }, inputOf(project, policy, maxSurchargeMicro));
}

const CHANCE = {
  now: () => unixMs(Date.now()),
  random: (n: number) => randomBytes(n),
  randomBelow: (n: number) => randomInt(n),
};

const inputOf = (project: TestProject, policy: Policy, maxSurchargeMicro: bigint) => ({
  ...{ keyId: project.keyId, projectId: project.id, policy, maxSurchargeMicro, ...RULE },
  ...{ idempotencyKey: randomUUID(), externalId: randomUUID(), requestedMicro: microUsdt(3_000_000n) },
});

/** Creates a project with one address, in which 3 USDT has nine code words, or only the exact amount. */
async function projectOf(policy: Policy): Promise<TestProject> {
  const project = await createTestProject(service.db, { maxSurchargeMicro: 100n, addressCount: 0 });
  await setPolicy(service, project, policy);
  await addAddress(service, project, policy);
  return project;
}

const isInsert = ([{ name }]: Asked) => name.startsWith('invoice-insert');

/** A database on which other requests took the amounts this many times before they could be inserted. */
function losing(times: number) {
  let left = times;
  return watchedDatabase((...one) => (isInsert(one) && left-- > 0 ? Promise.resolve([]) : null));
}

describe.each<Policy>(['tail', 'exact'])('of policy %s', (policy) => {
  test('a creation whose amounts others took six times tries a seventh time, and has one then', async () => {
    const project = await projectOf(policy);
    const { db, asked } = losing(6);
    expect(await create(db, project, policy)).toMatchObject({ kind: 'created', invoice: { status: 'PENDING' } });
    expect(asked.filter(isInsert)).toHaveLength(7);
  });

  test('a creation that always comes too late ends after 50 rounds, with the refusal of one for which nothing is free', async () => {
    const project = await projectOf(policy);
    const { db, asked } = losing(Number.POSITIVE_INFINITY);
    expect(await create(db, project, policy)).toEqual({
      ...{ kind: 'amount-unavailable', policy, maxSurchargeMicro: 100n, addressesInUse: 1, frozenAddresses: 0 },
    });
    expect(asked.filter(isInsert)).toHaveLength(51);
  });

  test('a creation for which nothing is free is refused in its first round', async () => {
    const project = await projectOf(policy);
    const amounts = policy === 'tail' ? 9 : 1;
    for (let i = 0; i < amounts; i++) await create(service.db, project, policy);
    // Later requests know what the first refusal found out.
    await create(service.db, project, policy);
    const { db, asked } = watchedDatabase(() => null);
    expect(await create(db, project, policy)).toEqual({
      ...{ kind: 'amount-unavailable', policy, maxSurchargeMicro: 100n, addressesInUse: 1, frozenAddresses: 0 },
    });
    expect(asked.filter(([{ name }]) => name === 'api-key-authenticate')).toHaveLength(1);
  });

  test('a creation whose key is revoked after it was found valid creates nothing', async () => {
    const project = await projectOf(policy);
    await revokeApiKey(service.db, project.keyId, unixMs(Date.now()));
    expect(await create(service.db, project, policy)).toEqual({ kind: 'key-not-valid' });
    expect(await runSql(service, 'select id from invoices where project_id = $1', [project.id])).toEqual([]);
  });
});

test('the more rounds a creation of policy exact lost, the more addresses it looks at: four times as many, up to 256', async () => {
  const project = await projectOf('exact');
  const { db, asked } = losing(6);
  await create(db, project, 'exact');
  const limits = asked.filter(([{ name }]) => name === 'allocation-free-exact').map(([, parameters]) => parameters[4]);
  expect(limits).toEqual([16, 64, 256, 256, 256, 256]);
});

test('a project whose policy changes in the middle of a creation has the invoice under the new one', async () => {
  const project = await projectOf('tail');
  await addAddress(service, project, 'exact');
  await setPolicy(service, project, 'exact');
  let isFirst = true;
  const { db, asked } = watchedDatabase(({ name }) => {
    // The key was read earlier, when the policy was still exact.
    if (name !== 'invoice-select-reserved' || !isFirst) return null;
    isFirst = false;
    return setPolicy(service, project, 'tail').then(() => null);
  });
  expect(await create(db, project, 'tail')).toMatchObject({ kind: 'created' });
  expect(asked.length).toBeLessThan(14);
});

test('an invoice never asks for more than a surcharge limit that was lowered after its key was read', async () => {
  const project = await createTestProject(service.db, { maxSurchargeMicro: 100n });
  for (let i = 0; i < 5; i++) await create(service.db, project, 'tail', 1_000_000n);
  const count = 'select count(*) filter (where payable_micro < 3000100) as within from invoices where project_id = $1';
  expect(await runSql(service, count, [project.id])).toEqual([{ within: '5' }]);
});

test('an order that finds no amount below a limit that was just lowered asks for addresses for the new limit', async () => {
  const project = await projectOf('tail');
  for (let i = 0; i < 9; i++) expect((await create(service.db, project, 'tail')).kind).toBe('created');
  const pools: unknown[] = [];
  const relieve = async (pool: unknown) => {
    pools.push(pool);
    return null;
  };
  const deps = {
    ...{ db: service.db, ...CHANCE },
    gate: { enter: async () => ({ kind: 'entered', leave: () => undefined }) },
    watched: { whyNot: async () => null },
    relief: { noteCreated: () => undefined, relieve },
  } as unknown as OrderDeps;
  const created = await createOrder(deps, inputOf(project, 'tail', 10_000n));
  expect(created).toMatchObject({ kind: 'amount-unavailable', policy: 'tail', maxSurchargeMicro: 100n });
  expect(pools).toMatchObject([{ projectId: project.id, policy: 'tail', maxSurchargeMicro: 100n }]);
});
