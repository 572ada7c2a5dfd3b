import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyRing, createMasterKey } from '../../runtime/key-ring.ts';
import { sealedDeadline, sealedTable, sealText } from './seal.ts';
import { SEALED_INVOICE } from './sealed-tables.ts';
import { createHmacSha256, createSealer } from './seals.ts';

const [first, second] = [createMasterKey(), createMasterKey()];
const LEDGER = '01a20a81-082c-719a-99a4-510585ba69f2';
const INVOICE = {
  id: '1',
  projectId: '2',
  network: 'mainnet',
  addressId: '3',
  idempotencyKey: 'key',
  externalId: 'order',
  requestedMicro: 25_000_000n,
  payableMicro: 25_000_571n,
  checkoutToken: 'token',
  createdAt: 1_800_000_000_000,
  expiresAt: sealedDeadline('mainnet', 1_800_000_900_000),
  apiKeyId: null,
  options: null,
};

/** Returns the column that the database would return for a row. */
function columnOf(mac: string | null, row: Record<string, unknown>): string {
  const values = Object.keys(SEALED_INVOICE.fields).map((name) => (row[name] === null ? null : String(row[name])));
  return sealText(mac, values);
}

const seal = (ring = createKeyRing([first]), ledger = LEDGER) =>
  createSealer(ring, ledger).seal(SEALED_INVOICE, INVOICE).toString('hex');
const open = (column: string, ring = createKeyRing([first]), ledger = LEDGER) =>
  createSealer(ring, ledger).open(SEALED_INVOICE, column).problem;

test('what was sealed opens, and with any one value changed, emptied or moved to its neighbour it does not', () => {
  const mac = seal();
  expect(mac).toHaveLength(48);
  expect(open(columnOf(mac, INVOICE))).toBeNull();
  for (const name of Object.keys(INVOICE)) {
    expect(open(columnOf(mac, { ...INVOICE, [name]: `${INVOICE[name as 'id']}x` })), name).toBe('changed');
    if (INVOICE[name as 'id'] !== null) expect(open(columnOf(mac, { ...INVOICE, [name]: null })), name).toBe('changed');
  }
  const moved = { ...INVOICE, idempotencyKey: 'keyo', externalId: 'rder' };
  expect(open(columnOf(mac, moved))).toBe('changed');
  expect(open(columnOf(mac, { ...INVOICE, idempotencyKey: 'order', externalId: 'key' }))).toBe('changed');
});

test('with any one bit of the MAC changed, or without it, it does not open', () => {
  const mac = Buffer.from(seal(), 'hex');
  for (let bit = 64; bit < mac.length * 8; bit += 1) {
    const changed = Buffer.from(mac);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(open(columnOf(changed.toString('hex'), INVOICE)), `bit ${bit}`).toBe('changed');
  }
  expect(open(columnOf(null, INVOICE))).toBe('unsealed');
  expect(open(columnOf(mac.toString('hex').slice(0, 40), INVOICE))).toBe('changed');
});

test('a seal holds for its table and its ledger alone, and opens with every key of the ring', () => {
  const mac = seal();
  expect(open(columnOf(mac, INVOICE), createKeyRing([first]), 'another')).toBe('changed');
  expect(open(columnOf(mac, INVOICE), createKeyRing([second]))).toBe('unknown-key');
  expect(open(columnOf(mac, INVOICE), createKeyRing([second, first]))).toBeNull();
  const other = sealedTable('others', SEALED_INVOICE.fields);
  expect(createSealer(createKeyRing([first]), LEDGER).open(other, columnOf(mac, INVOICE)).problem).toBe('changed');
});

test('a key that comes to the ring later opens what was unknown before', () => {
  const keys = [second];
  const ring = { ...createKeyRing([second]), find: (id: string) => keys.find((key) => key.id === id) };
  const sealer = createSealer(ring, LEDGER);
  const column = columnOf(seal(), INVOICE);
  expect(sealer.open(SEALED_INVOICE, column).problem).toBe('unknown-key');
  keys.push(first);
  expect(sealer.open(SEALED_INVOICE, column).problem).toBeNull();
});

test('a field that came later changes no seal of before, and is sealed once it has a value', () => {
  const before = sealedTable('shops', { id: 'uuid', name: 'text' });
  const after = sealedTable('shops', { id: 'uuid', name: 'text', closedAt: 'timestamptz?' }, { later: ['closedAt'] });
  const sealer = createSealer(createKeyRing([first]), LEDGER);
  const old = sealer.seal(before, { id: '1', name: 'a' }).toString('hex');
  const opened = (mac: string, ...values: (string | null)[]) => sealer.open(after, sealText(mac, values)).problem;
  expect(opened(old, '1', 'a', null)).toBeNull();
  expect(opened(old, '1', 'a', '1800000000000')).toBe('changed');
  const closed = sealer.seal(after, { id: '1', name: 'a', closedAt: 1_800_000_000_000 }).toString('hex');
  expect(opened(closed, '1', 'a', '1800000000000')).toBeNull();
  expect(opened(closed, '1', 'a', null)).toBe('changed');
  expect(opened(closed, '1', 'a', '1800000000001')).toBe('changed');
});

test('the first two vectors of RFC 4231 come out', () => {
  expect(createHmacSha256(Buffer.alloc(20, 0x0b))('Hi There').toString('hex')).toBe(
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  );
  expect(createHmacSha256(Buffer.from('Jefe'))('what do ya want for nothing?').toString('hex')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
});

test('whatever the key and the texts, one after another, it is the HMAC of Node.js', () => {
  const long = fc
    .constantFrom('a', 'é', '€', '\u{1f4b8}', '\ud800')
    .chain((unit) => fc.integer({ min: 2000, max: 9000 }).map((count) => unit.repeat(count)));
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), long);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.array(text, { minLength: 1, maxLength: 4 }), (key, texts) => {
      const hmac = createHmacSha256(Buffer.from(key));
      for (const each of texts) expect(hmac(each)).toEqual(createHmac('sha256', key).update(each).digest());
    }),
  );
});

test('a key that would have to be hashed first is refused', () => {
  expect(() => createHmacSha256(Buffer.alloc(65))).toThrow('longer than 64 bytes');
});
