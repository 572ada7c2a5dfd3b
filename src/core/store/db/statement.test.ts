import { expect, test } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import { count, group, hex, jsonRows, listColumns, maybe, micro, unlistedStatement } from './statement.ts';

const place = { number: count, txId: hex() } as const;

test('the columns of a shape are listed by the names of its fields, in groups by theirs too', () => {
  const shape = { id: 'uuid', head: group(place), paidBy: maybe(place) } as const;
  expect(listColumns(shape, 'i.', { head: 'h.', paidBy: { number: 'coalesce(t.number, 0)', txId: 't.tx' } })).toBe(
    "i.id, h.number as head_number, encode(h.tx_id, 'hex') as head_tx_id, coalesce(t.number, 0) as paid_by_number, t.tx as paid_by_tx_id",
  );
  expect(unlistedStatement('', shape, '').columns).toEqual({
    id: 'uuid',
    head_number: 'int8',
    head_tx_id: 'text',
    paid_by_number: 'int8?',
    paid_by_tx_id: 'text?',
  });
});

test('a group is read as an object, and one that may lack as null where its first column is', () => {
  const { read } = unlistedStatement('', { head: group(place), paidBy: maybe(place) }, '');
  const head = { head_number: 7n, head_tx_id: 'ab' };
  expect(read({ ...head, paid_by_number: null, paid_by_tx_id: null })).toEqual({
    head: { number: 7, txId: 'ab' },
    paidBy: null,
  });
  expect(read({ ...head, paid_by_number: 8n, paid_by_tx_id: 'cd' }).paidBy).toEqual({ number: 8, txId: 'cd' });
});

test('rows that are bound as JSON keep every digit, and hold nothing but the fields of their shape', () => {
  const shape = { ...place, from: 'text', amountMicro: micro(), at: 'timestamptz', note: 'text?' } as const;
  const { columns, table, bind } = jsonRows(shape);
  expect(columns).toBe('"number", "tx_id", "from", "amount_micro", "at", "note"');
  expect(table('$2')).toBe(
    'jsonb_to_recordset($2::text::jsonb) as t("number" int8, "tx_id" bytea, "from" text, "amount_micro" numeric, "at" timestamptz, "note" text)',
  );
  const amountMicro = 2n ** 80n;
  const row = { number: 7, txId: 'ab', from: 'T', amountMicro, at: unixMs(0), note: null, more: 1 };
  expect(JSON.parse(bind([row]))).toEqual([
    {
      number: 7,
      tx_id: '\\xab',
      from: 'T',
      amount_micro: `${amountMicro}`,
      at: '1970-01-01T00:00:00.000Z',
      note: null,
    },
  ]);
});
