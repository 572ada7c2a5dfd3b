import { afterEach, beforeEach, expect, test } from 'vitest';
import { get } from '../contract/ask.ts';
import { eventually, type Json, startTestService, type TestService } from '../support/service.ts';

/** How far two processes' clocks may differ, each by less than the clock alarm allows. */
const APART_MS = 50_000;

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.stop());

/** Returns what a consumer reads if it stores the last id and continues there later, once there are this many. */
async function readOn(after: string | null, count: number): Promise<string[]> {
  const query = after === null ? '' : `?after=${after}`;
  const { body } = await eventually(
    () => get(service, `/v1/transfers${query}`),
    ({ body: page }) => page.data.length >= count,
  );
  return body.data.map(({ transferId }: Json) => transferId);
}

async function send(): Promise<void> {
  const to = service.project.addresses[0] ?? '';
  await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro: 1_000_000n });
  service.devnet.mineUntilSolid();
}

test('who keeps the last transfer and asks from there misses none, though a process with a clock that is behind goes on', async () => {
  await send();
  const [first = ''] = await readOn(null, 1);
  await service.stopService();
  service.clock.advance(-APART_MS);
  await service.restart();
  await send();
  const [second = '', ...more] = await readOn(first, 1);
  expect(more).toEqual([]);
  await send();
  expect(await readOn(second, 1)).toHaveLength(1);
  expect(await readOn(null, 3)).toEqual([first, second, expect.any(String)]);
});
