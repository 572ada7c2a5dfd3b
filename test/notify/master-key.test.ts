import { expect, test } from 'vitest';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { describeMissingKeys } from '../../src/faces/operator/encryption-keys.ts';
import { findMasterKeys, rotateMasterKey } from '../../src/faces/operator/subjects/master-keys.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createWorld, eventually, startReceiver } from './fixture.ts';

const ANNA = commandActor('anna');
const textOf = ({ bytes }: { bytes: Buffer }) => bytes.toString('base64');

test('a rotation of the master key encrypts channels anew, and the former key is needed no more', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  const { channelId } = await world.addChannel('ntfy', { url: `${url}/topic`, token: 'tk_secret' });
  const { db, now } = world;
  const [older, newer] = [TEST_KEY_RING.current(), createMasterKey()];
  const statusOf = async (...keys: (typeof older)[]) =>
    (await findMasterKeys({ db, now, keyRing: createKeyRing(keys) })).view.keys;
  const rotate = (...keys: (typeof older)[]) => {
    const config = { masterKeys: keys.map(textOf), databaseUrl: 'postgres://elsewhere', dataDir: '/nowhere' };
    return rotateMasterKey({ db, now, config, note: () => undefined }, ANNA);
  };
  expect(await statusOf(newer, older)).toMatchObject([{ signing: 0 }, { signing: 1, canBeDropped: false }]);
  // Without the earlier key everything stays as it is, and the channel is reported.
  expect(await rotate(newer)).toMatchObject({ resealed: 0, lostChannels: [channelId] });
  expect(String(await describeMissingKeys({ db, now, keyRing: createKeyRing([newer]) }))).toMatch(
    /the targets of some notification channels are encrypted with .* "notify remove/,
  );
  const rotated = await rotate(newer, older);
  expect(rotated).toMatchObject({ resealed: 1, droppable: [older.id] });
  expect(rotated).not.toHaveProperty('lostChannels');
  expect(await statusOf(newer, older)).toMatchObject([{ signing: 1 }, { signing: 0, canBeDropped: true }]);
  world.start({ keyRing: createKeyRing([newer]) });
  await world.raise('blind', '');
  await eventually(() => expect(received).toHaveLength(1));
  expect(received[0]).toMatchObject({ headers: { authorization: 'Bearer tk_secret' }, json: { topic: 'topic' } });
  expect(await describeMissingKeys({ db, now, keyRing: createKeyRing([newer]) })).toBeNull();
});

test('a process that has the former key alone sends again when it has both', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  await world.addChannel('slack', { url });
  const newer = createMasterKey();
  const config = {
    ...{ masterKeys: [newer, TEST_KEY_RING.current()].map(textOf), databaseUrl: 'postgres://', dataDir: '/nowhere' },
  };
  await rotateMasterKey({ ...world, config, note: () => undefined }, ANNA);
  const stale = world.start();
  await world.raise('blind', '');
  await eventually(() => expect(stale.lines.join('')).toContain('which this process does not have'));
  await stale.stop();
  expect(received).toEqual([]);
  world.advance(60_000);
  world.start({ keyRing: createKeyRing([newer, TEST_KEY_RING.current()]) });
  await eventually(() => expect(received).toHaveLength(1));
});
