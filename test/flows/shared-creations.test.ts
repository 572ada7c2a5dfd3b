import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { microUsdt } from '../../src/core/domain/money.ts';
import type { Policy } from '../../src/core/domain/policy.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import {
  type Created,
  type CreateInput,
  createInvoice,
  createSharing,
} from '../../src/core/payments/create-invoice.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { addAddress, setPolicy } from '../support/policies.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { createTestProject, type TestProject } from '../support/service.ts';

let database: TestDatabase;
/** One for each API process. */
let db: Database;
let otherDb: Database;
let project: TestProject;
beforeAll(async () => {
  database = await createTestDatabase();
  [db, otherDb] = [openTestDatabase(database, 10), openTestDatabase(database, 10)];
});
beforeEach(async () => {
  project = await createTestProject(db);
});
afterAll(async () => {
  await Promise.all([db.close(), otherDb.close()]);
  await database.drop();
});

type Run = Database['run'];
type Answer = Promise<Created | { kind: 'failed'; error: unknown }>;

/** Creates invoices like one process; `meet` decides the result of each statement. */
function startCreating(on: Database, meet: (name: string, run: () => ReturnType<Run>) => ReturnType<Run>) {
  const names: string[] = [];
  const run: Run = (statement, parameters) => {
    names.push(statement.name);
    return meet(statement.name, () => on.run(statement, parameters) as never) as never;
  };
  const watched = { ...on, run };
  const randomBelow = (n: number) => randomInt(n);
  const now = () => unixMs(Date.now());
  const sharing = createSharing({ db: watched, now, randomBelow });
  const deps = { db: watched, now, random: (n: number) => randomBytes(n), randomBelow, sharing };
  const create = (changes: Partial<CreateInput> = {}): Answer =>
    createInvoice(deps, { ...newInput(), ...changes }).catch((error: unknown) => ({ kind: 'failed', error }));
  return { create, names };
}

const process = (on = db) => startCreating(on, (_, run) => run());

function newInput(): CreateInput {
  return {
    ...{ keyId: project.keyId, projectId: project.id, policy: 'tail', maxSurchargeMicro: 10_000n },
    ...{ network: 'devnet', invoiceLifetimeMs: 1_800_000 },
    ...{ idempotencyKey: randomUUID(), externalId: randomUUID(), requestedMicro: microUsdt(25_000_000n) },
  };
}

const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));
const kindsOf = async (answers: Answer[]) => {
  const counts: Record<string, number> = {};
  for (const { kind } of await Promise.all(answers)) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
};

async function countInvoices(): Promise<number> {
  return withOwner(async (owner) => {
    const { rows } = await owner.query('select count(*)::int as n from invoices where project_id = $1', [project.id]);
    return rows[0].n;
  });
}

async function withOwner<Result>(work: (owner: pg.Client) => Promise<Result>): Promise<Result> {
  const owner = new pg.Client({ connectionString: database.ownerString });
  await owner.connect();
  return work(owner).finally(() => owner.end());
}

test('up to two creations have statements of their own, and of 200 at once no more than twelve statements create all', async () => {
  const few = process();
  expect(await kindsOf(times(2, () => few.create()))).toEqual({ created: 2 });
  // The first requests of a process look for the project's first address.
  expect(few.names.toSorted()).toEqual(['allocation-first-places', 'invoice-insert'].flatMap((name) => [name, name]));
  const many = process();
  const answers = times(200, (i) => many.create({ requestedMicro: microUsdt(BigInt(i + 1) * 1_000_000n) }));
  expect(await kindsOf(answers)).toEqual({ created: 200 });
  expect(many.names.length).toBeLessThanOrEqual(12);
});

test.each<Policy>(['tail', 'exact'])(
  'creations of one amount and policy %s do not stand in the way of each other',
  async (policy) => {
    await setPolicy(database, project, policy);
    if (policy === 'exact') for (const _ of times(40, String)) await addAddress(database, project, policy);
    const { create, names } = process();
    // If the first four all choose the same address, three continue alone.
    await create({ policy });
    names.length = 0;
    const first = create({ policy });
    const gathered = times(35, () => create({ policy }));
    expect(await kindsOf([first, ...gathered])).toEqual({ created: 36 });
    expect(names.filter((name) => name.endsWith('-many')).length).toBeLessThanOrEqual(2);
    expect(await countInvoices()).toBe(37);
  },
);

test('what a creation meets by itself is not met by those that share its statement', async () => {
  const { create } = process();
  const answers = times(40, (i) => create(i === 20 ? { externalId: 'x'.repeat(201) } : {}));
  expect(await kindsOf(answers)).toEqual({ created: 39, failed: 1 });
  expect(await answers[20]).toMatchObject({ error: { code: '23514' } });
  expect(await countInvoices()).toBe(39);
});

test('a creation whose key somebody holds keeps the others for a second, and itself until it is let go', async () => {
  const { create } = process();
  const [idempotencyKey] = [randomUUID()];
  await withOwner(async (holder) => {
    await holder.query('begin');
    await holder.query(
      `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
         checkout_token, created_at, expires_at)
       select gen_random_uuid(), a.project_id, a.network, a.id, $2, 'held', 1, 1, substr(md5(a.id::text), 1, 22), now(), now()
       from addresses a where a.project_id = $1`,
      [project.id, idempotencyKey],
    );
    const answers = times(40, (i) => create(i === 20 ? { idempotencyKey } : {}));
    expect(await kindsOf(answers.filter((_, i) => i !== 20))).toEqual({ created: 39 });
    await holder.query('rollback');
    expect((await answers[20])?.kind).toBe('created');
  });
});

test('after a commit of which nobody heard each is told so, and each repeat has its invoice', async () => {
  // Each has a different amount, because two requests of one amount that draw the same code word at the same time leave one to a later
  // statement.
  const inputs = times(40, (i) => ({ ...newInput(), requestedMicro: microUsdt(BigInt(i + 1) * 1_000_000n) }));
  const cut = startCreating(db, async (name, run) => {
    const rows = await run();
    if (!name.endsWith('-many')) return rows;
    throw new AppError('DATABASE_UNAVAILABLE', 'the connection was lost', { retryable: true });
  });
  const answers = await Promise.all(inputs.map((input) => cut.create(input)));
  const failed = answers.filter((answer) => answer.kind === 'failed');
  expect(failed).toHaveLength(38);
  for (const { error } of failed) expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  expect(await kindsOf(inputs.map((input) => process().create(input)))).toEqual({ replayed: 40 });
  expect(await countInvoices()).toBe(40);
});

test('two processes that create the same orders at once never wait for each other, and create each once', async () => {
  const failures: unknown[] = [];
  const [one, two] = [db, otherDb].map((on) =>
    startCreating(on, (_, run) =>
      run().catch((error: unknown) => {
        failures.push(error);
        throw error;
      }),
    ),
  );
  // Each shares one statement among all but two, whose rows arrive in different orders.
  for (const round of times(10, (index) => index)) {
    const inputs = times(34, newInput);
    const crossed = inputs.map((input, i) => ({ ...input, externalId: inputs[(i + 7) % 34]?.externalId ?? '' }));
    const answers = [...inputs, ...crossed].flatMap((input) => [one?.create(input), two?.create(input)]);
    const { created = 0, ...repeated } = await kindsOf(answers as Answer[]);
    expect(created + (repeated['replayed'] ?? 0) + (repeated['conflict'] ?? 0), `in round ${round}`).toBe(136);
  }
  expect(failures).toEqual([]);
  const kept = await withOwner((owner) =>
    owner.query('select idempotency_key, external_id from invoices where project_id = $1', [project.id]),
  );
  expect(kept.rows.length).toBeLessThanOrEqual(340);
});
