import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { archiveProject, unarchiveProject } from '../../src/faces/operator/subjects/projects.ts';
import {
  createTestProject,
  eventually,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { ask, created, expectProblem, get, indistinct } from './ask.ts';
import { addKey } from './keys.ts';

let service: TestService;
let shop: TestProject;
let other: TestProject;
beforeAll(async () => {
  service = await startTestService();
  [shop, other] = [await createTestProject(service.db), await createTestProject(service.db)];
  // Alternates between projects, so that their rows are interleaved.
  for (const project of [shop, other, shop, other]) await fill(project);
});
afterAll(() => service.stop());

/** Creates an invoice, and an unmatched transfer. */
async function fill(project: TestProject): Promise<void> {
  await created(service, { project });
  const known = (await get(service, '/v1/transfers', project)).body.data.length;
  const to = project.addresses[0] ?? '';
  await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro: 1_000_000n });
  service.devnet.mineUntilSolid();
  await eventually(
    async () => (await get(service, '/v1/transfers', project)).body.data.length,
    (count) => count > known,
  );
}

const idOf = (row: Json): string => row.transferId ?? row.invoiceId;

describe.each(['/v1/invoices', '/v1/transfers'])('the list %s', (path) => {
  const list = (apiKey: string | null, query = '') =>
    ask(`${service.url}${path}${query}`, { headers: { 'x-api-key': apiKey } });

  test('refuses every key that is none with one answer, whatever it is asked for', async () => {
    const revoked = await addKey(service.db, shop.id);
    await revokeApiKey(service.db, revoked.keyId, unixMs(service.clock.now()));
    const expired = await addKey(service.db, shop.id, { expiresAtMs: service.clock.now() - 1 });
    const wrongSecret = formatApiKey('devnet', shop.keyId, randomBytes(32));
    const first = await list(null);
    expectProblem(first, 401, 'UNAUTHENTICATED');
    for (const apiKey of ['x', shop.apiKey.slice(0, -1), wrongSecret, revoked.apiKey, expired.apiKey]) {
      for (const query of ['', '?limit=0']) {
        expect(indistinct(await list(apiKey, query)), apiKey).toEqual(indistinct(first));
      }
      service.clock.advance(10_000);
    }
  });

  test('refuses a key that it has answered from its end on', async () => {
    const revoked = await addKey(service.db, shop.id);
    const expiring = await addKey(service.db, shop.id, { expiresAtMs: service.clock.now() + 60_000 });
    for (const { apiKey } of [revoked, expiring]) expect((await list(apiKey)).status).toBe(200);
    await revokeApiKey(service.db, revoked.keyId, unixMs(service.clock.now()));
    service.clock.advance(60_000);
    for (const { apiKey } of [revoked, expiring]) {
      for (const query of ['?limit=0', '']) expectProblem(await list(apiKey, query), 401, 'UNAUTHENTICATED');
    }
  });

  test('shows no row of another project, not even behind its cursor', async () => {
    const [own, theirs] = [(await list(shop.apiKey)).body.data, (await list(other.apiKey)).body.data];
    expect([own.length, theirs.length]).toEqual([2, 2]);
    expect(own.map(idOf).filter((id: string) => theirs.map(idOf).includes(id))).toEqual([]);
    for (const after of theirs.map(idOf)) {
      const { status, body } = await list(shop.apiKey, `?limit=1&after=${after}`);
      const behind = own.filter((row: Json) => idOf(row) > after);
      expect({ status, body }).toEqual({ status: 200, body: { data: behind.slice(0, 1), next: null } });
    }
  });

  test('is read as before where the project is archived', async () => {
    const before = (await list(other.apiKey)).body;
    const deps = { db: service.db, now: () => unixMs(service.clock.now()) };
    await archiveProject.run(deps, commandActor('test'), other);
    expect((await list(other.apiKey)).body).toEqual(before);
    await unarchiveProject.run(deps, commandActor('test'), other);
  });
});
