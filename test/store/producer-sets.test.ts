import type { AccountHex } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import {
  confirmProducers,
  findBaseline,
  findProducerSets,
  insertProducerSet,
  type ProducerSet,
} from '../../src/core/store/chain/producer-sets.ts';
import { databaseOfTest } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

test('sets of producers are read back as they were written, newest first, and are never changed or deleted', async () => {
  const { database, db } = await databaseOfTest();
  const setOf = (digit: string, reason: ProducerSet['reason']): ProducerSet => ({
    chainTime: unixMs(1_800_000_000_000),
    reason,
    producers: [{ account: digit.repeat(40) as AccountHex, signer: 'f'.repeat(40) as AccountHex }],
    nodes: ['http://one', 'http://two'],
  });
  await insertProducerSet(db, 'devnet', setOf('1', 'first'));
  await insertProducerSet(db, 'devnet', setOf('2', 'vote'));
  await insertProducerSet(db, 'nile', setOf('3', 'first'));
  expect(await findProducerSets(db, 'devnet', 10)).toMatchObject([setOf('2', 'vote'), setOf('1', 'first')]);
  expect(await findProducerSets(db, 'devnet', 1)).toMatchObject([setOf('2', 'vote')]);
  for (const text of ["update producer_sets set reason = 'key'", 'delete from producer_sets']) {
    await expect(withClient(database.owner, (client) => client.query(text))).rejects.toThrow(
      /never (?:changed|deleted)/,
    );
  }
  expect(await findProducerSets(db, 'devnet', 10)).toHaveLength(2);
});

test('a set is in force from the moment it is stored, and the one before until it was last confirmed', async () => {
  const { db } = await databaseOfTest();
  const startMs = 1_800_000_000_000;
  const at = (minutes: number) => unixMs(startMs + minutes * 60_000);
  const setAt = (minutes: number, reason: ProducerSet['reason']): ProducerSet => ({
    chainTime: at(minutes),
    reason,
    producers: [{ account: '1'.repeat(40) as AccountHex, signer: 'f'.repeat(40) as AccountHex }],
    nodes: ['http://one'],
  });
  await insertProducerSet(db, 'devnet', setAt(0, 'first'));
  expect((await findBaseline(db, 'devnet', at(1)))?.confirmedAt).toBe(at(0));
  await confirmProducers(db, 'devnet', at(10));
  await insertProducerSet(db, 'devnet', setAt(20, 'vote'));
  expect((await findBaseline(db, 'devnet', at(15)))?.confirmedAt).toBe(at(10));
  expect((await findBaseline(db, 'devnet', at(30)))?.confirmedAt).toBe(at(20));
});
