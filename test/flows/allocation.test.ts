import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { codeWords, wordRange } from '../../src/core/domain/policy.ts';
import { runSql } from '../contract/sql.ts';
import { addAddress, setPolicy } from '../support/policies.ts';
import {
  type Answer,
  call,
  createInvoice,
  createPatiently,
  createTestProject,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

/** A range of 100 micro-USDT above a round amount contains nine code words. */
const NINE_WORDS = { maxSurchargeMicro: 100n };

const create = (project: TestProject, amount: string, idempotencyKey: string = randomUUID()) =>
  createPatiently(service, { apiKey: project.apiKey, idempotencyKey, body: { amount } });

async function createMany(project: TestProject, amount: string, count: number): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < count; i++) answers.push(await create(project, amount));
  return answers;
}

/** Returns the address and amount of an invoice. */
async function placeOf(project: TestProject, { status, body }: Answer): Promise<{ address: string; payable: string }> {
  expect(status, JSON.stringify(body)).toBe(201);
  const read = await call(`${service.url}/v1/invoices/${body.invoiceId}?expand=payment`, {
    headers: { 'x-api-key': project.apiKey },
  });
  return { address: read.body.payment.address, payable: read.body.payment.payableAmount };
}

const addressesOf = async (project: TestProject, answers: Answer[]) =>
  (await Promise.all(answers.map((answer) => placeOf(project, answer)))).map(({ address }) => address);

const hints = (project: TestProject) =>
  runSql(
    service,
    `select h.policy, h.position from allocation_hints h join projects p on p.id = h.project_id
     where p.id = $1 and h.epoch = p.allocation_epoch`,
    [project.id],
  );

describe('policy tail', () => {
  test('the first address is filled to its last code word before the second is begun', async () => {
    const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 3 });
    const [first, second] = project.addresses;
    const addresses = await addressesOf(project, await createMany(project, '3', 19));
    expect(addresses.slice(0, 9)).toEqual(Array(9).fill(first));
    expect(addresses.slice(9, 18)).toEqual(Array(9).fill(second));
    expect(addresses[18]).toBe(project.addresses[2]);
  });

  test('an address that is full for one amount is still the first for another', async () => {
    const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 2 });
    await createMany(project, '3', 10);
    expect(await addressesOf(project, [await create(project, '4')])).toEqual([project.addresses[0]]);
  });

  test('amounts whose ranges overlap share their code words, each of which is given out once', async () => {
    const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 1 });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => create(project, ['3', '3.00005', '3.000020'][index % 3] ?? '3')),
    );
    const created = answers.filter(({ status }) => status === 201);
    const payables = (await Promise.all(created.map((answer) => placeOf(project, answer)))).map(
      ({ payable }) => payable,
    );
    const words = codeWords(wordRange(microUsdt(3_000_000n), 150n));
    expect(payables.toSorted()).toEqual(words.map((word) => `3.${String(word).slice(1)}`));
  });

  test('a retired address takes no new invoice, and takes them again when it is put back to use', async () => {
    const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 2 });
    const [first, second] = project.addresses;
    const setRetired = (isRetired: boolean) =>
      runSql(service, 'update addresses set retired_at = case when $2 then now() end where address = $1', [
        first,
        isRetired,
      ]);
    await setRetired(true);
    expect(await addressesOf(project, await createMany(project, '3', 9))).toEqual(Array(9).fill(second));
    expect((await create(project, '3')).body.code).toBe('AMOUNT_UNAVAILABLE');
    await setRetired(false);
    expect(await addressesOf(project, [await create(project, '3')])).toEqual([first]);
  });
});

describe('hints', () => {
  const retire = (address: string | undefined, isRetired: boolean) =>
    runSql(service, 'update addresses set retired_at = case when $2 then now() end where address = $1', [
      address,
      isRetired,
    ]);

  test('say up to where addresses are full, and are forgotten when one of these comes back into use', async () => {
    const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 3 });
    await retire(project.addresses[0], true);
    await createMany(project, '3', 18);
    expect((await create(project, '3')).body.code).toBe('AMOUNT_UNAVAILABLE');
    expect(await hints(project)).toEqual([{ policy: 'tail', position: 3 }]);
    await retire(project.addresses[0], false);
    expect(await hints(project)).toEqual([]);
    expect(await addressesOf(project, await createMany(project, '3', 9))).toEqual(Array(9).fill(project.addresses[0]));
    expect((await create(project, '3')).body.code).toBe('AMOUNT_UNAVAILABLE');
  });

  test('that are written while an address comes back into use never hide it', async () => {
    for (let i = 0; i < 10; i++) {
      const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 2 });
      const [first] = project.addresses;
      await retire(first, true);
      await createMany(project, '3', 9);
      const [, ...answers] = await Promise.all([
        retire(first, false),
        ...Array.from({ length: 4 }, () => create(project, '3')),
      ]);
      const created = answers.filter(({ status }) => status === 201).length;
      const more = await createMany(project, '3', 9 - created);
      expect(more.map(({ status }) => status)).toEqual(Array(9 - created).fill(201));
    }
  });

  test('a wide range is filled to its last word, wherever that is', async () => {
    const project = await createTestProject(service.db, { maxSurchargeMicro: 25_000n, addressCount: 1 });
    const words = codeWords(wordRange(microUsdt(3_000_000n), 25_000n));
    const free = new Set([words[5], words[1400], words.at(-1)]);
    await runSql(
      service,
      `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
         checkout_token, created_at, expires_at)
       select gen_random_uuid(), a.project_id, a.network, a.id, 'k' || word, 'e' || word, 3000000, word,
         substr(md5(a.id::text || word), 1, 22), now(), now()
       from addresses a cross join unnest($2::int8[]) word where a.project_id = $1`,
      [project.id, words.filter((word) => !free.has(word))],
    );
    const answers = await Promise.all(Array.from({ length: 5 }, () => create(project, '3')));
    const created = answers.filter(({ status }) => status === 201);
    const payables = (await Promise.all(created.map((answer) => placeOf(project, answer)))).map(
      ({ payable }) => payable,
    );
    expect(payables.toSorted()).toEqual([...free].map((word) => formatAmount(word ?? microUsdt(0n))));
  });
});

describe('policy exact', () => {
  const exactProject = async (addressCount: number) => {
    const project = await createTestProject(service.db, { addressCount: 0 });
    await setPolicy(service, project, 'exact');
    for (let i = 0; i < addressCount; i++) await addAddress(service, project, 'exact');
    return project;
  };

  test('the payable amount is the requested one, and each further invoice of it takes the next address', async () => {
    const project = await exactProject(3);
    const places = await Promise.all((await createMany(project, '25.5', 3)).map((answer) => placeOf(project, answer)));
    expect(places.map(({ payable }) => payable)).toEqual(Array(3).fill('25.500000'));
    const inOrder = await runSql(service, 'select address from addresses where project_id = $1 order by position', [
      project.id,
    ]);
    expect(places.map(({ address }) => address)).toEqual(inOrder.map(({ address }) => address));
    expect((await placeOf(project, await create(project, '25.500001'))).address).toBe(places[0]?.address);
  });

  test('every eighth address that an amount fills, those up to it are remembered as full', async () => {
    const project = await exactProject(9);
    await createMany(project, '8', 7);
    expect(await hints(project)).toEqual([]);
    await createMany(project, '8', 1);
    expect(await hints(project)).toEqual([{ policy: 'exact', position: 8 }]);
    expect((await create(project, '8')).status).toBe(201);
  });

  test('when all have the amount it answers AMOUNT_UNAVAILABLE, until the moment an address is added', async () => {
    const project = await exactProject(2);
    await createMany(project, '7', 2);
    const key = randomUUID();
    const body = { amount: '7', externalId: randomUUID() };
    const refused = await createInvoice(service, { apiKey: project.apiKey, idempotencyKey: key, body });
    expect(refused.status).toBe(409);
    expect(refused.body.detail).toMatch(
      /on each of the project's active addresses \(2\).*"exact".*quittance address add/,
    );
    await addAddress(service, project, 'exact');
    const created = await createInvoice(service, { apiKey: project.apiKey, idempotencyKey: key, body });
    expect(created.status).toBe(201);
    const replayed = await createInvoice(service, { apiKey: project.apiKey, idempotencyKey: key, body });
    expect(replayed.body.invoiceId).toBe(created.body.invoiceId);
  });

  test('200 requests for one amount at once take 200 addresses, and not one more', async () => {
    const project = await exactProject(200);
    const answers = await Promise.all(Array.from({ length: 220 }, () => create(project, '12')));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(200);
    for (const refused of answers.filter(({ status }) => status !== 201)) {
      expect(refused.body.code).toBe('AMOUNT_UNAVAILABLE');
    }
    const [{ used } = {}] = await runSql(
      service,
      'select count(distinct address_id)::int as used from invoices where project_id = $1',
      [project.id],
    );
    expect(used).toBe(200);
  });
});

describe('a project that changes its policy', () => {
  test('uses addresses of the new policy from the next invoice on, although its key is remembered, and never mixes', async () => {
    const project = await createTestProject(service.db, { ...NINE_WORDS, addressCount: 1 });
    expect((await create(project, '3')).status).toBe(201);
    await setPolicy(service, project, 'exact');
    const none = await create(project, '3');
    expect(none.body.detail).toMatch(/no active address for its policy "exact"/);
    await addAddress(service, project, 'exact');
    const exact = await placeOf(project, await create(project, '3'));
    expect(exact.payable).toBe('3.000000');
    expect(exact.address).not.toBe(project.addresses[0]);
    await setPolicy(service, project, 'tail');
    expect((await placeOf(project, await create(project, '3'))).address).toBe(project.addresses[0]);
  });

  test('an address keeps its policy for life', async () => {
    const project = await createTestProject(service.db);
    await expect(
      runSql(service, "update addresses set policy = 'exact' where project_id = $1", [project.id]),
    ).rejects.toThrow(/never changed/);
    await expect(runSql(service, 'delete from addresses where project_id = $1', [project.id])).rejects.toThrow(
      /never deleted/,
    );
  });
});
