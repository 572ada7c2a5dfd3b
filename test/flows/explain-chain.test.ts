import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { describeForPayer } from '../../src/faces/checkout/lookup/answer.ts';
import { newDirectory, runCli } from '../cli/run-cli.ts';
import { untilHeadIsExamined } from '../support/fault-flow.ts';
import { ask, newInvoice, pay } from '../support/lookup-flow.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { trustProxy: ['127.0.0.1'] } });
});
afterEach(() => service.nodes[0]?.setFault());
afterAll(() => service.stop());

async function explain(txId: string, nodes = true) {
  const { devnet, connectionString } = service;
  const configured = { QUITTANCE_DEVNET_NODES: devnet.url, QUITTANCE_DEVNET_USDT: devnet.usdtContract };
  const env = { DATABASE_URL: connectionString, QUITTANCE_DATA_DIR: newDirectory(), ...(nodes ? configured : {}) };
  const { code, json, stderr } = await runCli(['explain', txId, '--json'], { env });
  expect([code, stderr]).toEqual([3, expect.any(String)]);
  return { verdict: json.verdict as string, chain: json.subject.chain, next: json.next as string[] };
}

test.each<[Scenario | 'trx', object, string]>([
  ['reverted', { code: 'failed', why: 'reverted' }, 'This transaction failed on the network: it paid nothing.'],
  ['out-of-energy', { code: 'failed', why: 'out_of_energy' }, 'too little energy or TRX for the network fee'],
  [
    'fake-token',
    { code: 'other_token' },
    'This transaction moved a different token, not USDT, whatever the token is called',
  ],
  ['wrong-address', { code: 'other_address' }, 'to a different address: T'],
  ['zero-value', { code: 'no_usdt_transfer', moved: 'nothing' }, 'This transaction moved no USDT.'],
  ['trx', { code: 'no_usdt_transfer', moved: 'trx', toAddress: true }, '25.000137 TRX to the right address'],
])('%s is explained in the words of the payer’s page, and in its code', async (scenario, figures, words) => {
  const invoice = await newInvoice(service);
  const txId =
    scenario === 'trx'
      ? await service.payer.sendTrx({ to: invoice.address, amountSun: 25_000_137n })
      : await pay(service, invoice, scenario);
  service.devnet.mine();
  await untilHeadIsExamined(service);
  const { verdict, chain, next } = await explain(txId);
  expect(verdict).toContain(words);
  expect(chain).toEqual([{ network: 'devnet', answer: expect.objectContaining(figures), says: expect.any(String) }]);
  const { body } = await ask(invoice, txId);
  // The payer also reads whether it was this invoice’s payment.
  expect(body).toMatchObject(chain[0].answer);
  expect(verdict).toContain(describeForPayer(body));
  expect(next).toBe(undefined);
});

test('one that no node knows is told as the payer’s page tells it, with what to look at', async () => {
  const { verdict, chain, next } = await explain('a1'.repeat(32));
  expect(chain).toMatchObject([{ network: 'devnet', answer: { code: 'not_found' } }]);
  expect(verdict).toContain('The TRON network does not know this transaction yet.');
  expect(next[0]).toContain('tronscan.org');
});

test('one that came to an address of ours, in a block that is not irreversible, is told to be waited for', async () => {
  const invoice = await newInvoice(service);
  const txId = await pay(service, invoice, 'short');
  service.devnet.mine();
  await untilHeadIsExamined(service);
  const { verdict, chain, next } = await explain(txId);
  expect(chain).toMatchObject([{ answer: { code: 'to_your_address', to: invoice.address } }]);
  expect(verdict).toMatch(/USDT arrived at your address T\w+\. The block is not recorded yet: the ledger is at/);
  expect(next).toEqual([expect.stringContaining('wait until the block is recorded')]);
});

test('without a node that answers, and without one that is configured, it says so', async () => {
  service.nodes[0]?.setFault({ kind: 'unavailable-503' });
  const down = await explain('a2'.repeat(32));
  expect(down.chain).toMatchObject([{ answer: { code: 'unavailable' } }]);
  expect(down.verdict).toContain(`None of its nodes responded: ${service.devnet.url} is `);
  const none = await explain('a3'.repeat(32), false);
  expect(none.chain).toEqual([]);
  expect(none.verdict).toContain('No node is configured for this command, so Quittance did not query the chain');
});
