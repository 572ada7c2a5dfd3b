import { concatBytes } from '@noble/hashes/utils.js';
import { writeBytes, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { expect, test } from 'vitest';
import { ENERGY_PRICE } from './questions.ts';

const { http, grpc } = ENERGY_PRICE;
const json = (...list: unknown[]) => http.read({ chainParameter: list });

function bytes(...parameters: [string, bigint][]): number | null {
  const sink = grpc?.newSink();
  const message = parameters.map(([key, value]) =>
    writeElement(1, concatBytes(writeBytes(1, Buffer.from(key)), writeInt64(2, value))),
  );
  sink?.push(concatBytes(...message));
  return sink?.end() ?? null;
}

test('the price of energy is read among the parameters of the chain, from JSON and from a message', () => {
  const others = [{ key: 'getMaintenanceTimeInterval', value: 21_600_000 }, { key: 'getAllowDelegateResource' }];
  expect(json(...others, { key: 'getEnergyFee', value: 100 })).toBe(100);
  expect(bytes(['getMaintenanceTimeInterval', 21_600_000n], ['getEnergyFee', 100n])).toBe(100);
});

test.each([0, -1, 1.5, 1001, 1e300, Number.NaN, '100', null, {}])('%j is no price', (value) => {
  expect(json({ key: 'getEnergyFee', value })).toBe(null);
});

test('what is no list of parameters says nothing', () => {
  for (const answer of [null, 7, 'x', [], {}, { chainParameter: null }, { chainParameter: [null, 7, 'x'] }]) {
    expect(http.read(answer)).toBe(null);
  }
  expect(bytes()).toBe(null);
  expect(bytes(['getEnergyFee', 0n])).toBe(null);
  expect(bytes(['getEnergyFee', 2n ** 62n])).toBe(null);
  expect(bytes(['getEnergyFee', -1n])).toBe(null);
});
