import { expect, test } from 'vitest';
import { CREATED_AT } from '../../../../test/support/mismatch-suspect.ts';
import type { MismatchFacts, Sender } from './finding.ts';
import { senderCauses, unknown } from './sender-causes.ts';

function causesOf(amountMicro: bigint, known: Partial<Sender> = {}) {
  const facts: MismatchFacts = {
    transfer: { amountMicro, from: 'TSender', to: 'THere', at: CREATED_AT },
    policy: 'tail',
    invoices: [],
    siblings: [],
    sender: { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null, ...known },
  };
  return senderCauses(facts);
}

test('an unknown sender of an amount worth something explains nothing', () => {
  expect(causesOf(100_000n)).toEqual([]);
});

test.each([
  [1n, 0.5 / 100],
  [42n, 0.5 / 100],
  [100n, 0.5 / 100],
  [101n, 0.4 / 10_000],
  [900n, 0.5 / 100],
  [9_999n, 0.4 / 10_000],
  [10_000n, 0.5 / 100],
  [10_001n, 0.1 / 100_000],
  [20_000n, 0.5 / 100],
  [99_999n, 0.1 / 100_000],
])('%i micro-USDT is dust', (amountMicro, chance) => {
  const [dust, ...more] = causesOf(amountMicro);
  expect(more).toEqual([]);
  expect(dust).toMatchObject({ code: 'DUST', invoices: [], evidence: {} });
  expect(dust?.weight).toBeCloseTo(0.3 * chance, 15);
  expect(dust?.explanation).toMatch(/^0\.0[0-9]{5} arrived: such small amounts are sent as advertising, or to plant/);
  expect(dust?.atMost).toBe(amountMicro < 10_000n ? undefined : 'medium');
  expect('atMost' in (dust ?? {})).toBe(amountMicro >= 10_000n);
});

test.each([
  [9_999n, 1e-2, false],
  [10_000n, 1e-4, false],
  [999_999n, 1e-4, false],
  [1_000_000n, 1e-5, true],
])('of a look-alike sender the likelier, the less it sent: %i', (amountMicro, chance, isUnsure) => {
  const found = causesOf(amountMicro, { resembles: 'TSenxxxxnder' }).find(({ code }) => code === 'LOOK_ALIKE_SENDER');
  expect(found).toMatchObject({ invoices: [], evidence: { sender: 'TSender', resembles: 'TSenxxxxnder' } });
  expect(found?.weight).toBeCloseTo(0.02 * 1e9 * chance, 6);
  expect(found?.explanation).toMatch(
    /^[0-9.]+ arrived from TSender, which begins and ends like TSenxxxxnder but is a different address; scammers create such addresses so that people copy the wrong address$/,
  );
  expect('atMost' in (found ?? {})).toBe(isUnsure);
  expect(found?.atMost).toBe(isUnsure ? 'medium' : undefined);
});

test.each([
  [{ isOurs: true, hasDeposited: true, hasReceived: true }, 1e12, 'own-address', /, an address of this project$/],
  [
    { hasDeposited: true, hasReceived: true },
    1e3,
    'earlier-deposit',
    /, from which an earlier transfer was resolved as the merchant's own deposit$/,
  ],
  [
    { hasReceived: true },
    1e2,
    'received-before',
    /, to which this project has sent money before; the sender may be the merchant's own wallet, or a customer who received a refund$/,
  ],
] as const)('a sender with %j may be the merchant', (known, ratio, reason, says) => {
  for (const [amountMicro, chance] of [
    [777_000_000n, 0.5 / 1_000],
    [777_010_000n, 0.3 / 100_000],
    [777_000_001n, 0.2 / 1_000_000_000],
  ] as const) {
    const [found, ...more] = causesOf(amountMicro, known);
    expect(more).toEqual([]);
    expect(found).toMatchObject({ code: 'OWN_DEPOSIT', invoices: [], evidence: { sender: 'TSender', reason } });
    expect(found?.weight).toBeCloseTo(0.05 * ratio * chance, 12);
    expect(found?.explanation).toMatch(/^777\.0[0-9]+ arrived from TSender, /);
    expect(found?.explanation).toMatch(says);
    expect('atMost' in (found ?? {})).toBe(reason !== 'own-address');
    if (reason !== 'own-address') expect(found?.atMost).toBe('medium');
  }
});

test('what nothing explains is unknown, the likelier the rounder and the fewer invoices could be meant', () => {
  expect(unknown(777_000_000n, 0.5)).toEqual({
    code: 'UNKNOWN',
    weight: 0.52 * (0.5 / 1_000),
    invoices: [],
    evidence: {},
    explanation:
      '777.000000 arrived: no invoice from that time has an amount that a common mistake would turn into this amount',
    atMost: 'low',
  });
  expect(unknown(777_120_000n, 0).weight).toBeCloseTo(0.02 * (0.3 / 100_000), 18);
  expect(unknown(777_123_000n, 1).weight).toBeCloseTo(1.02 * (0.2 / 1_000_000_000), 20);
});
