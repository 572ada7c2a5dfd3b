import { expect, test } from 'vitest';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { describeMissingKeys } from '../../src/faces/operator/encryption-keys.ts';
import { findMasterKeys, rotateMasterKey } from '../../src/faces/operator/subjects/master-keys.ts';
import { startSession } from '../../src/faces/operator/subjects/sign-in.ts';
import { ANN, from, joinByPassword, openDesk, PASSWORD } from './desk.ts';

const textOf = ({ bytes }: { bytes: Buffer }) => bytes.toString('base64');

test('a rotation of the master key seals what codes come of anew, and status counts it under its key', async () => {
  const desk = await openDesk();
  const [older, newer] = [createMasterKey(), createMasterKey()];
  const before = { ...desk, deps: { ...desk.deps, keyRing: createKeyRing([older]) } };
  const { code } = await joinByPassword(before, 'ann');
  const both = createKeyRing([newer, older]);
  const statusOf = async (keyRing: typeof both) => (await findMasterKeys({ ...desk.deps, keyRing })).view.keys;
  expect(await statusOf(both)).toMatchObject([
    { keyId: newer.id, signing: 0 },
    { keyId: older.id, signing: 1, ended: 0, canBeDropped: false },
  ]);
  const rotate = (...masterKeys: string[]) => {
    const config = { masterKeys, databaseUrl: 'postgres://elsewhere', dataDir: '/nowhere' };
    return rotateMasterKey({ db: desk.db, now: desk.deps.now, config, note: () => undefined }, ANN);
  };
  // A missing key decrypts nothing: the affected people are reported, and nothing changes.
  expect(await rotate(textOf(newer))).toMatchObject({ resealed: 0, lostPeople: ['ann'] });
  const rotated = await rotate(textOf(newer), textOf(older));
  expect(rotated).toMatchObject({ resealed: 1, droppable: [older.id] });
  expect(rotated).not.toHaveProperty('lostPeople');
  expect(await statusOf(both)).toMatchObject([{ signing: 1 }, { signing: 0, canBeDropped: true }]);
  const deps = { ...desk.deps, keyRing: createKeyRing([newer]) };
  const signIn = { login: 'ann', password: PASSWORD, code: code() };
  expect(await startSession(deps, from(), signIn)).toMatchObject({ kind: 'started' });
});

test('without the key of what codes come of nobody signs in by a code, and what to do is said', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  const lacking = createKeyRing([createMasterKey()]);
  const signIn = { login: 'ann', password: PASSWORD, code: code() };
  expect(await startSession({ ...desk.deps, keyRing: lacking }, from(), signIn)).toEqual({ kind: 'refused' });
  const missing = await describeMissingKeys({ ...desk.deps, keyRing: lacking });
  expect(String(missing)).toMatch(/some users' sign-in codes need secrets .* with "user reset/);
  expect((await findMasterKeys({ ...desk.deps, keyRing: lacking })).view.keys).toMatchObject([
    { use: 'seals' },
    { use: 'missing', signing: 1 },
  ]);
});
