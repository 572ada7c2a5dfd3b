import fc from 'fast-check';
import { expect, test } from 'vitest';
import { disabledReason, withoutName } from './disable-reason.ts';

test('a reason is told without the name of who gave it, and what the service itself says as it is', () => {
  expect(withoutName(disabledReason('', 'anna'))).toBe('by hand');
  expect(withoutName(disabledReason('moves house', 'anna'))).toBe('moves house (by hand)');
  expect(withoutName('it answered 410')).toBe('it answered 410');
});

test('whatever the reason and the name are, nothing of the name is told', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }), (reason, name) => {
      const told = withoutName(disabledReason(reason, `«${name}»`));
      expect(told).toMatch(/by hand\)?$/);
      expect(told).not.toContain(`«${name}»`);
    }),
  );
});
