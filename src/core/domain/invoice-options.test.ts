import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatOptions, type Holder, judgeRepeat, OPTION_NAMES, readOptions } from './invoice-options.ts';
import { microUsdt } from './money.ts';

const said = fc.record(
  {
    description: fc.constantFrom('Tea', 'Tee'),
    expiresInSeconds: fc.constantFrom(300, 900),
    returnUrl: fc.constantFrom('https://shop.example/1', 'https://shop.example/2'),
    metadata: fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2')),
    price: fc.record(
      {
        ...{ amount: fc.constantFrom('19.990000', '20.000000'), currency: fc.constantFrom('EUR', 'USD') },
        ...{ rate: fc.constantFrom('0.92', '0.93'), rateAt: fc.constant(null), rateSource: fc.constant('fixed') },
      },
      { requiredKeys: ['amount', 'currency'] },
    ),
  },
  { requiredKeys: [] },
);

const asked = fc.record({
  options: said.map(formatOptions),
  requestedMicro: fc.constantFrom(1n, 25_000_000n, 25_000_001n).map(microUsdt),
  externalId: fc.constantFrom('order-1', 'order-2', 'Order-1'),
});

/** The invoices of a project as `unique (project, key)` and `unique (project, external id)` leave them: two hold one at most. */
function holdersOf(asked: { externalId: string }, byKey: Omit<Holder, 'hasKey'> | null, byExternalId: bigint | null) {
  const withKey = byKey === null ? [] : [{ ...byKey, hasKey: true }];
  const isHeld = byExternalId !== null && byKey?.externalId !== asked.externalId;
  const withId = isHeld
    ? [{ requestedMicro: microUsdt(byExternalId), externalId: asked.externalId, options: null, hasKey: false }]
    : [];
  return { withKey, withId };
}

test('a key is asked for the same again, or it is a conflict that names each field that differs', () => {
  fc.assert(
    fc.property(asked, asked, fc.option(fc.constant(7n)), fc.boolean(), (request, held, other, isReversed) => {
      const { withKey, withId } = holdersOf(request, held, other);
      const holders = isReversed ? [...withId, ...withKey] : [...withKey, ...withId];
      const [ours, theirs] = [readOptions(request.options), readOptions(held.options)];
      const differs = {
        ...{ returnUrl: ours.returnUrl !== theirs.returnUrl, description: ours.description !== theirs.description },
        expiresInSeconds: ours.expiresInSeconds !== theirs.expiresInSeconds,
        metadata: ['a', 'b'].some((key) => ours.metadata?.[key] !== theirs.metadata?.[key]),
        price: ours.price?.amount !== theirs.price?.amount || ours.price?.currency !== theirs.price?.currency,
        // What a price is worth changes with the rate.
        amount:
          held.requestedMicro !== request.requestedMicro && (ours.price === undefined || theirs.price === undefined),
        externalId: held.externalId !== request.externalId,
      };
      const fields = (['amount', 'externalId', ...OPTION_NAMES] as const).filter((field) => differs[field]);
      const [invoice] = withKey;
      expect(judgeRepeat(holders, request)).toEqual(
        fields.length === 0
          ? { kind: 'replayed', invoice }
          : { kind: 'conflict', rule: 'idempotencyKey', fields, existing: invoice },
      );
    }),
  );
});

test('an external id that was used under another key is a conflict, even where everything else is the same', () => {
  fc.assert(
    fc.property(asked, fc.constantFrom(1n, 25_000_000n), (said, heldMicro) => {
      const request = { ...said, options: null };
      const { withId } = holdersOf(request, null, heldMicro);
      const fields = heldMicro === request.requestedMicro ? [] : ['amount'];
      expect(judgeRepeat(withId, request)).toEqual({
        kind: 'conflict',
        rule: 'externalId',
        fields,
        existing: withId[0],
      });
    }),
  );
});

test('where nothing holds the key or the external id, there is nothing to repeat', () => {
  expect(judgeRepeat([], { requestedMicro: microUsdt(1n), externalId: 'order-1', options: null })).toBeNull();
});
