import { expect, test } from 'vitest';
import { createWakeup } from './dispatcher.ts';

const FOR_EVER_MS = 2 ** 31 - 1;

test('a wake ends the wait that is going on', async () => {
  const { wait, wake } = createWakeup();
  const waiting = wait(FOR_EVER_MS);
  wake();
  await waiting;
});

test('a wake between two waits ends the next one, and only that', async () => {
  const { wait, wake } = createWakeup();
  wake();
  wake();
  await wait(FOR_EVER_MS);
  const order: string[] = [];
  const second = wait(FOR_EVER_MS).then(() => order.push('second wait'));
  await new Promise(setImmediate);
  order.push('woken');
  wake();
  await second;
  expect(order).toEqual(['woken', 'second wait']);
});

test('a wait without a wake ends by itself', async () => {
  await createWakeup().wait(1);
});
