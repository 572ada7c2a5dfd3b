import { afterEach, expect, test, vi } from 'vitest';
import { createSignInLimits } from './password.ts';

afterEach(() => vi.useRealTimers());

const noLimit = () => ({ take: () => ({ kind: 'pass' }) as const, giveBack: () => undefined });

test('whoever waits behind a password that takes long has an answer after 10 s, and the next one its turn', async () => {
  vi.useFakeTimers();
  const turns: (() => void)[] = [];
  const derive = createSignInLimits(
    noLimit,
    () => new Promise((resolve) => turns.push(() => resolve(Buffer.alloc(32)))),
  ).derive(false);
  const tryOne = () => derive('password', Buffer.alloc(16), { logN: 15, r: 8, p: 3 });
  const first = tryOne();
  const late = expect(tryOne()).rejects.toMatchObject({ name: 'TooBusy', retryAfterSeconds: 5 });
  await vi.advanceTimersByTimeAsync(10_000);
  await late;
  const next = tryOne();
  turns.shift()?.();
  await first;
  await vi.advanceTimersByTimeAsync(0);
  expect(turns).toHaveLength(1);
  turns.shift()?.();
  await next;
});
