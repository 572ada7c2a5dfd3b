import { expect, test } from 'vitest';
import { checkoutPage } from '../../../../test/support/checkout-page.ts';
import { networkFeeOf } from './page.ts';
import type { PageState } from './page-state.ts';

const HOUR = 3_600_000;

const feeAt = (energyPrice: unknown, state: PageState = 'waiting') =>
  networkFeeOf(checkoutPage(state, { invoice: { energyPrice } }));

const { now } = checkoutPage('waiting');

test('the fee is that of 64,000 and of 130,000 units of energy at the price of the chain, rounded up to a tenth', () => {
  expect(feeAt({ sun: 100, at: now })).toEqual({ sun: 100, usual: '6.4', first: '13' });
  expect(feeAt({ sun: 210, at: now })).toEqual({ sun: 210, usual: '13.5', first: '27.3' });
  expect(feeAt({ sun: 420, at: now - 2 * HOUR })).toEqual({ sun: 420, usual: '26.9', first: '54.6' });
});

test('a price that is old, or from the future, says nothing', () => {
  expect(feeAt({ sun: 100, at: now - 3 * HOUR - 1 })).toBe(null);
  expect(feeAt({ sun: 100, at: now + 3 * HOUR + 1 })).toBe(null);
});

test('while the network is not seen there is none', () => {
  expect(feeAt({ sun: 100, at: now }, 'blind')).toBe(null);
});

test.each([
  undefined,
  null,
  7,
  'x',
  [],
  {},
  { sun: 100 },
  { at: now },
  { sun: '100', at: now },
  { sun: 100, at: String(now) },
  { sun: 0, at: now },
  { sun: -100, at: now },
  { sun: 1.5, at: now },
  { sun: 1001, at: now },
  { sun: 1e300, at: now },
  { sun: '<b>', at: now },
])('%j, put there by whoever can write to the database, is no price', (energyPrice) => {
  expect(feeAt(energyPrice)).toBe(null);
});
