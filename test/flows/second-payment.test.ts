import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, newInvoice, pay, untilRecorded } from '../support/lookup-flow.ts';
import { call, startTestService, type TestService, untilStatus } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { trustProxy: ['127.0.0.1'] } });
});
afterAll(() => service.stop());

test('of two exact payments in one block the first is shown, first and last, and its payer is told of the second', async () => {
  // Transaction ids are random, so sorting by them would give a wrong result in half of these cases.
  const shown = [];
  for (let i = 0; i < 5; i++) {
    const invoice = await newInvoice(service);
    const [first, second] = [await pay(service, invoice, 'exact'), await pay(service, invoice, 'exact')];
    shown.push({ invoice, first, second });
  }
  service.devnet.mine();
  for (const { invoice, first, second } of shown) {
    await untilStatus(service, invoice.id, 'CONFIRMING');
    expect((await call(`${invoice.checkoutUrl}/status`)).body.transaction.txId).toBe(first);
    expect((await ask(invoice, first)).body).toMatchObject({ code: 'confirming', earlierTransaction: null });
    expect((await ask(invoice, second)).body).toMatchObject({ code: 'confirming', earlierTransaction: first });
  }
  service.devnet.mineUntilSolid();
  await untilRecorded(service);
  for (const { invoice, first, second } of shown) {
    await untilStatus(service, invoice.id, 'PAID');
    expect((await call(`${invoice.checkoutUrl}/status`)).body.transaction.txId).toBe(first);
    const page = await (await fetch(invoice.checkoutUrl)).text();
    const short = `${second.slice(0, 4)}…${second.slice(-4)}`;
    expect(page.replaceAll(/<[^>]+>/g, '')).toContain(
      `A second payment of the same amount arrived: ${short}. Contact Test shop to get it back.`,
    );
    expect(page).toContain(`data-copy="${second}" data-from="second"`);
  }
});

test('the service stops at once, also while a connection is open that has asked for nothing', async () => {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  // This request proves that the service has seen the previous one.
  await call(`${service.url}/healthz`);
  const closed = once(socket, 'close');
  // If it had waited until the connection timed out, it would have sent an answer.
  await service.stopService();
  await closed;
  expect(socket.bytesRead).toBe(0);
  await service.restart();
});
