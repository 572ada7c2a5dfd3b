import { randomBytes } from 'node:crypto';
import { type AccountXpub, deriveAddresses } from '@quittance/tron/account-xpub';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { deriveNextAddresses } from '../../src/core/payments/derive-addresses.ts';
import { listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { countAddresses, findAddresses, insertAddress, listAddresses } from '../../src/core/store/ledger/addresses.ts';
import { findProject, insertProject } from '../../src/core/store/ledger/projects.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import type { Candidate } from '../../src/faces/operator/input/read-candidates.ts';
import { NO_MANIFEST } from '../../src/faces/operator/operation.ts';
import { recordedActor } from '../../src/faces/operator/record-actions.ts';
import { activateAddresses, addAddresses, retireAddresses } from '../../src/faces/operator/subjects/addresses.ts';
import { updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { databaseOfFile } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

const { database, db } = await databaseOfFile(6);

const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd' as AccountXpub;
const ANN = commandActor('ann');
const NOW = unixMs(1_790_000_000_000);

const operating = { db, actor: recordedActor(ANN), now: () => NOW, random: randomBytes };

const uuid = () => uuidV7(Date.now(), randomBytes(10));

async function newProject(): Promise<string> {
  const id = uuid();
  await insertProject(db, {
    id,
    name: 'Shop',
    network: 'nile',
    maxSurchargeMicro: 10_000n,
    invoiceLifetimeMs: 1_800_000,
  });
  return id;
}

function newCandidates(count: number): Candidate[] {
  return Array.from({ length: count }, () => {
    const account = randomBytes(20).toString('hex') as AccountHex;
    return { account, address: accountToAddress(account) };
  });
}

const prj = (id: string) => encodeId('prj', id);
const add = (id: string, candidates: readonly Candidate[], policy?: 'tail' | 'exact') => {
  const entries = candidates.map(({ address }, index) => ({ text: address, place: `argument ${index + 1}` }));
  const deps = { ...operating, config: { sandbox: false, networks: {} }, addressGuard: NO_MANIFEST };
  return addAddresses.run(deps, ANN, { projectId: prj(id), policy, entries, isFresh: false, isChecked: false });
};

test('many additions at the same time get positions of their own, each in its order', async () => {
  const projectId = await newProject();
  const lists = Array.from({ length: 6 }, () => newCandidates(40));
  await Promise.all(lists.map((list) => add(projectId, list)));
  const listed = await listAddresses(db, projectId);
  expect(listed.map(({ position }) => position)).toEqual(Array.from({ length: 240 }, (_, index) => index + 1));
  for (const list of lists) {
    const start = listed.findIndex(({ address }) => address === list[0]?.address);
    expect(listed.slice(start, start + 40).map(({ address }) => address)).toEqual(list.map(({ address }) => address));
  }
});

test('of two projects that add the same addresses at once, one gets all of them and the other none', async () => {
  for (let round = 0; round < 10; round++) {
    const [first, second] = [await newProject(), await newProject()];
    const list = newCandidates(50);
    const outcomes = await Promise.allSettled([add(first, list), add(second, [...list].reverse())]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const [refused] = outcomes.filter((each) => each.status === 'rejected');
    expect(refused?.reason).toMatchObject({ code: 'CONFLICT' });
    const counts = await Promise.all([first, second].map(async (id) => (await listAddresses(db, id)).length));
    expect(counts.sort((a, b) => a - b)).toEqual([0, 50]);
  }
});

test('an addition that meets one taken address adds nothing and records nothing', async () => {
  const [first, second] = [await newProject(), await newProject()];
  const [taken, ...others] = newCandidates(3);
  if (taken === undefined) throw new Error('no candidate');
  await add(first, [taken]);
  const message = expect.stringContaining(`belongs to another project (${prj(first)})`);
  const problems = [{ subject: taken.address, message }];
  await expect(add(second, [taken, ...others])).rejects.toMatchObject({ code: 'CONFLICT', problems });
  expect(await listAddresses(db, second)).toEqual([]);
  expect(await listOperatorActions(db, others[0]?.address ?? '')).toEqual([]);
});

test('10,000 addresses are added in one transaction', async () => {
  const projectId = await newProject();
  const list = newCandidates(10_000);
  expect(await add(projectId, list)).toMatchObject({ kind: 'added', view: { added: { length: 10_000 } } });
  expect((await countAddresses(db, projectId)).active).toMatchObject({ tail: 10_000, exact: 0 });
  const found = await findAddresses(
    db,
    'nile',
    list.slice(0, 7).map(({ account }) => account),
  );
  expect(found.map(({ address }) => address).sort()).toEqual(
    list
      .slice(0, 7)
      .map(({ address }) => address)
      .sort(),
  );
});

test('an address takes the policy of its project, or the one that is given, and keeps it for life', async () => {
  const projectId = await newProject();
  const [[a], [b], [c]] = [newCandidates(1), newCandidates(1), newCandidates(1)];
  if (a === undefined || b === undefined || c === undefined) throw new Error('no candidate');
  await add(projectId, [a]);
  await add(projectId, [b], 'exact');
  await updateProject.run(operating, ANN, { projectId: prj(projectId), policy: 'exact' });
  await insertAddress(db, { ...c, id: uuid(), projectId });
  expect((await listAddresses(db, projectId)).map(({ policy }) => policy)).toEqual(['tail', 'exact', 'exact']);
  const change = withClient(database.owner, (client) =>
    client.query("update addresses set policy = 'exact' where address = $1", [a.address]),
  );
  await expect(change).rejects.toThrow('policy of addresses');
});

test('an address is taken out of use and into use again, each change on record once', async () => {
  const projectId = await newProject();
  const list = newCandidates(2);
  await add(projectId, list);
  const wanted = { projectId: prj(projectId), addresses: list, note: 'old wallet' };
  const { view: retired } = await retireAddresses.run(operating, ANN, wanted);
  expect(retired).toMatchObject({ unchanged: [], activeAddresses: { tail: 0, exact: 0 } });
  expect((await countAddresses(db, projectId)).retired).toBe(2);
  const { view: again } = await retireAddresses.run(operating, ANN, { ...wanted, note: null });
  expect(again).toMatchObject({ changed: [], unchanged: expect.arrayContaining(retired.changed) });
  await activateAddresses.run(operating, ANN, { ...wanted, addresses: list.slice(0, 1), note: null });
  expect((await listAddresses(db, projectId)).map(({ retiredAt }) => retiredAt)).toEqual([null, NOW]);
  const actions = await listOperatorActions(db, list[0]?.address ?? '');
  expect(actions).toEqual([
    {
      projectId,
      action: 'address.added',
      subject: list[0]?.address,
      detail: { policy: 'tail' },
      ...recordedActor(ANN),
      actedAt: NOW,
    },
    expect.objectContaining({ action: 'address.retired', detail: { note: 'old wallet' } }),
    expect.objectContaining({ action: 'address.activated', detail: {} }),
  ]);
});

test('where one address is not of the project, none is retired', async () => {
  const [projectId, other] = [await newProject(), await newProject()];
  const [mine, theirs, nobodys] = [newCandidates(1), newCandidates(1), newCandidates(1)];
  await add(projectId, mine);
  await add(other, theirs);
  const addresses = [...mine, ...theirs, ...nobodys];
  const problems = [...theirs, ...nobodys].map(({ address }) => expect.objectContaining({ subject: address }));
  const retiring = retireAddresses.run(operating, ANN, { projectId: prj(projectId), addresses, note: null });
  await expect(retiring).rejects.toMatchObject({ code: 'NOT_FOUND', problems });
  expect((await countAddresses(db, projectId)).retired).toBe(0);
});

test('a changed project is on record with what was before; a change to the same is no change', async () => {
  const projectId = await newProject();
  const wanted = {
    policy: 'exact',
    maxSurchargeMicro: 20_000n,
    name: 'Shop',
    projectId: prj(projectId),
  } as const;
  const { changed } = await updateProject.run(operating, ANN, wanted);
  expect(changed).toEqual({
    policy: { from: 'tail', to: 'exact' },
    maxSurcharge: { from: '0.010000', to: '0.020000' },
  });
  expect((await updateProject.run(operating, ANN, wanted)).changed).toEqual({});
  expect(await findProject(db, projectId)).toMatchObject({ policy: 'exact', maxSurchargeMicro: 20_000n });
});

test('derivation goes on where it ended, passes over what is there, and calls at the same time share no index', async () => {
  const projectId = await newProject();
  const [pasted] = deriveAddresses(XPUB, 1, 1);
  if (pasted === undefined) throw new Error('nothing derived');
  await add(projectId, [pasted]);
  const derive = (count: number, id = projectId) =>
    deriveNextAddresses(operating, { projectId: id, xpub: XPUB, count, policy: null });
  const first = await derive(3);
  expect(first).toMatchObject({ kind: 'derived', skipped: [{ index: 1, address: pasted.address }] });
  if (first.kind === 'derived') expect(first.added.map(({ index }) => index)).toEqual([0, 2, 3]);
  await Promise.all([derive(4), derive(4), derive(4)]);
  const indexes = (await listAddresses(db, projectId)).flatMap(({ derivationIndex: index }) =>
    index === null ? [] : [index],
  );
  expect(indexes).toEqual([0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  const [last] = deriveAddresses(XPUB, 15, 1);
  expect(await listOperatorActions(db, last?.address ?? '')).toMatchObject([
    { action: 'address.derived', detail: { index: 15, policy: 'tail' } },
  ]);
  expect(await derive(1, await newProject())).toEqual({ kind: 'key-of-another-project' });
});
