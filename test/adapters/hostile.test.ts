import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exchange } from '../../src/faces/adapters/create-adapted-order.ts';
import { hostileText } from '../fuzz/hostile-text.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { addTestAdapter, SECRET, type ShopAdapter, send, signAsShop } from './fixture.ts';

let service: TestService;
let epusdt: ShopAdapter;
let epay: ShopAdapter;
beforeAll(async () => {
  service = await startTestService();
  epusdt = await addTestAdapter(service, 'epusdt');
  epay = await addTestAdapter(service, 'epay');
});
afterAll(() => service.stop());

/** Values that the adapter accepts, and values that it refuses. */
const VALUES: Record<string, { taken: string[]; refused: string[] }> = {
  order_id: { taken: ['A-1', ...Array.from({ length: 300 }, (_, n) => `B-${n}`)], refused: [''] },
  amount: { taken: ['1', '0.01', '100.50'], refused: ['1e3', '-1', '.5'] },
  notify_url: {
    taken: ['http://127.0.0.1:1/n', 'https://shop.example/n'],
    refused: ['http://[::ffff:10.0.0.1]/', 'data:,x'],
  },
  redirect_url: {
    taken: ['', 'https://shop.example/'],
    // Braces are encoded, so the last one gets longer than a URL may be.
    refused: ['javascript:0', `https://shop.example/?${'{'.repeat(1000)}`],
  },
  token: { taken: ['usdt'], refused: ['trx'] },
  currency: { taken: ['CNY', 'cny'], refused: ['usd'] },
};
/** Most fields have accepted values, so the adapter accepts many of the orders. */
const order = fc.record(
  Object.fromEntries(
    Object.entries(VALUES).map(([name, { taken, refused }]) => [
      name,
      fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom(...taken) },
        { weight: 3, arbitrary: fc.constantFrom(...refused) },
        { weight: 1, arbitrary: hostileText },
      ),
    ]),
  ),
  { requiredKeys: ['order_id', 'amount', 'notify_url'] },
) as fc.Arbitrary<Record<string, string>>;

test('whatever a shop signs is answered in its form: an order as it was said, or a reason', async () => {
  let made = 0;
  await fc.assert(
    fc.asyncProperty(order, async (fields) => {
      const body = JSON.stringify({ ...fields, signature: signAsShop(fields, SECRET) });
      const reply = await send(`${epusdt.url}/api/v1/order/create-transaction`, { body });
      // A value that isn't text can't be signed as text.
      const codes = [200, 401, 10002, 10004, 10006, 10009, 10016, 10041, 10044];
      expect(codes).toContain(reply.body.status_code);
      if (reply.body.status_code !== 200) return;
      made += 1;
      expect(reply.body.data.order_id).toBe(fields['order_id']);
      expect(reply.body.data.amount).toBe(Number(fields['amount']));
      expect(new URL(fields['notify_url'] ?? '').hostname).toMatch(/^(127\.0\.0\.1|shop\.example)$/);
    }),
    { numRuns: 300 },
  );
  expect(made).toBeGreaterThan(5);
});

test('whatever a browser brings is answered in words, and sends it nowhere but to our page', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.oneof(fc.constantFrom('pid', 'sign', 'money'), hostileText), hostileText),
      async (fields) => {
        const text = new URLSearchParams(fields).toString().slice(0, 4000);
        const reply = await send(`${epay.url}/submit.php?${text}`);
        expect([400, 404]).toContain(reply.status);
        expect(reply.location).toBeUndefined();
      },
    ),
    { numRuns: 150 },
  );
});

test('an amount in USDT is a whole cent, enough, and by less than a cent too much', () => {
  const rate = fc.bigInt({ min: 1n, max: 10n ** 12n });
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n }), rate, (amountMicro, rateMicro) => {
      const exchanged = exchange(amountMicro, rateMicro);
      if (exchanged === null) {
        const isSmall = amountMicro === 0n;
        expect(isSmall || amountMicro * 1_000_000n > (10n ** 14n - 10_000n) * rateMicro).toBe(true);
        return;
      }
      expect(exchanged % 10_000n).toBe(0n);
      expect(exchanged * rateMicro >= amountMicro * 1_000_000n).toBe(true);
      expect((exchanged - 10_000n) * rateMicro < amountMicro * 1_000_000n).toBe(true);
    }),
  );
  expect(exchange(100_500_000n, 7_200_000n)).toBe(13_960_000n);
  expect(exchange(72_000_000n, 7_200_000n)).toBe(10_000_000n);
  expect(exchange(1n, 10n ** 12n)).toBe(10_000n);
  expect(() => exchange(-1n, 1n)).toThrow(RangeError);
});
