import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { coveredValues, sealColumn, sealedTable, splitSeal } from '../../src/core/store/db/seal.ts';
import { createSealer } from '../../src/core/store/db/seals.ts';
import { databaseOfFile } from '../support/postgres.ts';

const KEPT = sealedTable('kept', {
  ...{ id: 'uuid', note: 'text', other: 'text?', tags: 'text[]?', detail: 'json?', paid: 'bool' },
  ...{ tries: 'int4', position: 'int8', amount: 'numeric', bytes: 'bytea?', at: 'timestamptz' },
});
const SQL = `select ${sealColumn(KEPT, 'k.')} as seal from (select $1::uuid as id, $2::text as note, $3::text as other, $4::text[] as tags,
  $5::jsonb as detail, $6::bool as paid, $7::int4 as tries, $8::int8 as position, $9::numeric as amount, $10::bytea as bytes,
  $11::timestamptz as at, $12::bytea as mac) k`;
const ROW = {
  ...{ id: '01a20a81-082c-719a-99a4-510585ba69f2', note: 'plain', other: null as string | null },
  ...{ tags: null as string[] | null, detail: null as unknown, paid: false, tries: -1, position: 2n ** 62n },
  ...{ amount: 10n ** 30n, bytes: null as Buffer | null, at: new Date('2026-11-28T10:00:00.001Z') },
};

const { database } = await databaseOfFile();
// The service's user may run the SQL.
const client = new pg.Client(database.connection);
await client.connect();
afterAll(() => client.end());

async function sealTextOf(row: typeof ROW, mac: Buffer | null): Promise<string> {
  const { id, note, other, tags, detail, paid, tries, position, amount, bytes, at } = row;
  const json = detail === null ? null : JSON.stringify(detail);
  const { rows } = await client.query<{ seal: string }>(SQL, [
    ...[id, note, other, tags, json, paid, tries, String(position), String(amount), bytes, at, mac],
  ]);
  return rows[0]?.seal ?? '';
}

const HOSTILE = [
  '',
  '-',
  '\x1e',
  '\x1f',
  '\x1e1',
  '\x1e2',
  '\x1f\x1e',
  '\x1e\x1f\x1e\x1f',
  '"],["',
  '\\',
  'é 漢 😀',
  'a\x1fb',
];

test.each([
  ...HOSTILE.map((text) => ({ note: text, other: text })),
  ...HOSTILE.map((text) => ({ note: text, other: null })),
  ...HOSTILE.map((text) => ({ tags: [text, 'x'], detail: { [text]: [text, null, 1] }, bytes: Buffer.from(text) })),
  { tags: [], detail: null },
])('what PostgreSQL says of a row opens with the seal that we made of it: %j', async (odd) => {
  const row = { ...ROW, ...odd };
  const sealer = createSealer(createKeyRing([createMasterKey()]), 'ledger');
  const text = await sealTextOf(row, sealer.seal(KEPT, row));
  expect(splitSeal(text)).toHaveLength(Object.keys(KEPT.fields).length + 1);
  expect(sealer.open(KEPT, text).problem).toBeNull();
  // The second time it's cached.
  expect(sealer.open(KEPT, text).problem).toBeNull();
  expect(coveredValues(KEPT, sealer.open(KEPT, text)).slice(1, 3)).toEqual([row.note, row.other]);
});

test('no two rows have one text, however their values are cut', async () => {
  const pieces = ['', '\x1e', '\x1f', '\x1e1', '\x1e2', '1', '2'];
  const notes = pieces.flatMap((one) => pieces.map((two) => one + two));
  const rows = new Set<string>();
  const texts = new Set<string>();
  for (const note of new Set(notes)) {
    for (const other of [null, ...pieces]) {
      rows.add(JSON.stringify([note, other]));
      texts.add(await sealTextOf({ ...ROW, note, other }, null));
    }
  }
  expect(texts.size).toBe(rows.size);
});
