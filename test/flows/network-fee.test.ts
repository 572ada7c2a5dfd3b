import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findChainStatus } from '../../src/core/store/chain/status.ts';
import { createInvoice, eventually, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

test('the watcher reads the price of energy from the nodes, and payers read what a transfer costs', async () => {
  const { body } = await createInvoice(service);
  const readPage = async () => (await request(body.checkoutUrl)).body.text();
  const page = await eventually(
    async () => {
      service.devnet.mine();
      return readPage();
    },
    (text) => text.includes('data-energy-sun'),
  );
  expect(page).toContain('about <bdi dir="ltr">6.4</bdi> TRX, or <bdi dir="ltr">13</bdi> TRX if this address holds no');
  const status = await findChainStatus(service.db, 'devnet');
  expect(status?.status.energyPrice).toMatchObject({ sun: 100 });
  // A silent or blind watcher says nothing about the present.
  service.clock.advance(3 * 3_600_000 + 1000);
  expect(await readPage()).not.toContain('data-energy-sun');
});
