import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codeWords, wordRange } from '../code-word.ts';
import { type MicroUsdt, microUsdt, parseAmount } from '../money.ts';
import { type LikelyMistake, likelyMistake } from './likely-mistake.ts';

function micro(text: string): MicroUsdt {
  const parsed = parseAmount(text);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.amountMicro;
}

test.each<[requested: string, payable: string, arrived: string, LikelyMistake | null]>([
  ['25', '25.000137', '25', { kind: 'requested_amount' }],
  ['25', '25.000137', '24.000137', { kind: 'fee' }],
  ['25', '25.000137', '24', { kind: 'fee' }],
  ['25', '25.000137', '26.000137', { kind: 'fee' }],
  ['25', '25.000137', '23.500137', { kind: 'fee' }],
  ['200', '200.004131', '198.004089', { kind: 'fee' }],
  ['25.37', '25.370149', '25.3', { kind: 'truncated', decimals: 1 }],
  ['25.37', '25.370149', '25.37014', { kind: 'truncated', decimals: 5 }],
  ['25.37', '25.370149', '25', { kind: 'rounded', decimals: 0 }],
  ['25.37', '25.370149', '25.4', { kind: 'rounded', decimals: 1 }],
  ['25.37', '25.370149', '25.37015', { kind: 'rounded', decimals: 5 }],
  ['25.37', '25.370149', '26', { kind: 'rounded', decimals: 0 }],
  ['25', '25.000137', '25.000173', { kind: 'swapped_digits' }],
  ['25', '25.000137', '52.000137', { kind: 'swapped_digits' }],
  ['25', '25.000137', '25.000147', { kind: 'one_digit' }],
  ['25', '25.000137', '35.000137', { kind: 'one_digit' }],
  ['25', '25.000137', '5.000137', { kind: 'one_digit' }],
  ['25', '25.000137', '12.345678', null],
  ['25', '25.000137', '25.000137', null],
  ['25', '25', '24.5', { kind: 'fee' }],
  ...['0.5', '0.8', '1', '1.2', '1.5', '1.6', '2', '2.5', '3', '3.5', '5'].map((fee) => {
    const arrivedMicro = micro('77.770149') - micro(fee);
    const arrived = `${arrivedMicro / 1_000_000n}.${String(arrivedMicro % 1_000_000n).padStart(6, '0')}`;
    return ['77.77', '77.770149', arrived, { kind: 'fee' }] as [string, string, string, LikelyMistake];
  }),
  // A fee that is seldom taken is less likely than the one digit in which the amounts differ.
  ['77.77', '77.770149', '77.570149', { kind: 'one_digit' }],
  ['77.77', '77.770149', '73.770149', { kind: 'one_digit' }],
  // One per cent, of the payable and of the requested amount; deducted, and never added.
  ['200', '200.004131', '198', { kind: 'fee' }],
  ['200', '200.004131', '202.004173', null],
  ['25', '25.100137', '21.500137', { kind: 'swapped_digits' }],
  ['200', '200.004131', '198.004090', { kind: 'fee' }],
  ['200', '200.004131', '198.004091', null],
  ['25.37', '25.370149', '25.370100', { kind: 'rounded', decimals: 4 }],
  ['25.37', '25.370159', '25.370100', { kind: 'truncated', decimals: 4 }],
  ['25.37', '25.370149', '25.371', { kind: 'rounded', decimals: 3 }],
  ['25.37', '25.370550', '25.371', { kind: 'rounded', decimals: 3 }],
  ['25.37', '25.370500', '25.371', { kind: 'rounded', decimals: 3 }],
  ['25.37', '25.370499', '25.371', { kind: 'rounded', decimals: 3 }],
  ['24.6', '24.600137', '25', { kind: 'rounded', decimals: 0 }],
  // Two digits wrong that are no neighbours, three, and neighbours that are not the other's.
  ['25', '25.123456', '25.423156', null],
  ['25', '25.123456', '25.231456', null],
  ['25', '25.123456', '25.213457', null],
  ['25', '25.123456', '25.134456', null],
  ['25', '25.123456', '25.223456', { kind: 'one_digit' }],
  ['25', '25.123456', '125.123456', { kind: 'one_digit' }],
])('asked %s, payable %s, arrived %s', (requested, payable, arrived, expected) => {
  const amounts = { requestedMicro: micro(requested), payableMicro: micro(payable), arrivedMicro: micro(arrived) };
  expect(likelyMistake(amounts)).toEqual(expected);
});

test.each([2, 3, 4])('an amount that was cut off after %i decimals, as exchanges do, is always known', (decimals) => {
  const unit = 10n ** BigInt(6 - decimals);
  const unknown: bigint[] = [];
  for (const requestedMicro of [5_000_000n, 25_000_000n, 49_990_000n, 1_234_560_000n].map(microUsdt)) {
    for (const payableMicro of codeWords(wordRange(requestedMicro, 10_000n))) {
      const arrived = payableMicro - (payableMicro % unit);
      if (arrived === payableMicro) continue;
      const mistake = { requestedMicro, payableMicro, arrivedMicro: microUsdt(arrived) };
      if (!/^(requested_amount|rounded|truncated)$/.test(likelyMistake(mistake)?.kind ?? ''))
        unknown.push(payableMicro);
    }
  }
  expect(unknown).toEqual([]);
});

test('any amounts are borne, and an exact one is no mistake', () => {
  const amount = fc.bigInt({ min: 1n, max: 2n ** 255n }).map(microUsdt);
  // No invoice asks for less than was requested.
  const tail = fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 2n ** 255n }));
  const arrived = fc.bigInt({ min: 1n, max: 2n ** 256n }).map(microUsdt);
  fc.assert(
    fc.property(amount, tail, arrived, (requestedMicro, tailMicro, otherMicro) => {
      const payableMicro = microUsdt(requestedMicro + tailMicro);
      for (const arrivedMicro of [otherMicro, requestedMicro]) {
        likelyMistake({ requestedMicro, payableMicro, arrivedMicro });
      }
      expect(likelyMistake({ requestedMicro, payableMicro, arrivedMicro: payableMicro })).toBeNull();
    }),
  );
});
