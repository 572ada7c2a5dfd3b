import { afterEach, describe, expect, test } from 'vitest';
import { FAULT_KINDS, type Fault } from '../../src/devnet/faults.ts';
import { MULTISEND } from '../../src/devnet/keys.ts';
import { accountToAddress } from '../../src/tron/address.ts';
import {
  createInvoice,
  eventually,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

type Kind = (typeof FAULT_KINDS)[number];

/** An order that is paid directly, one that is paid by a contract, and one that nobody pays and that lies are about. */
async function orders(running: TestService) {
  const [direct, internal, unpaid] = await Promise.all(
    [0, 1, 2].map(async () => (await createInvoice(running)).body.invoiceId as string),
  );
  return { direct: direct ?? '', internal: internal ?? '', unpaid: unpaid ?? '' };
}

type Orders = Awaited<ReturnType<typeof orders>>;

async function pay(running: TestService, { direct, internal }: Orders) {
  const contract = running.devnet.usdtContract;
  const [first, second] = [await payableOf(running, direct), await payableOf(running, internal)];
  await running.payer.transfer({ contract, to: first.address, amountMicro: first.amountMicro });
  await running.payer.multisend({
    multisendContract: accountToAddress(MULTISEND),
    token: contract,
    transfers: [{ to: second.address, amountMicro: second.amountMicro }],
  });
}

/** The fault, about the unpaid order where it can be about one. */
async function faultOf(running: TestService, kind: Kind, { unpaid }: Orders): Promise<Fault> {
  const { address, amountMicro } = await payableOf(running, unpaid);
  return kind.startsWith('forged-') ? { kind, to: address, amountMicro } : { kind };
}

/** Requests that the service sent to a node, so that a test can wait until a bent node was asked. */
async function requestsTo(running: TestService, url: string): Promise<number> {
  const text = await (await fetch(`${running.metricsUrl}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith('quittance_node_requests_total{') && line.includes(`"${url}"`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Both orders are paid once, the third never moved, and the ledger has exactly the two transfers. */
async function expectTruth(running: TestService, { direct, internal, unpaid }: Orders) {
  await untilStatus(running, direct, 'PAID');
  await untilStatus(running, internal, 'PAID');
  expect((await readInvoice(running, unpaid)).body).toMatchObject({
    status: 'PENDING',
    payment: { transaction: null },
  });
  const events = {
    name: '',
    columns: { type: 'text', count: 'int8' },
    text: 'select type, count(*) from events group by type',
  } as const;
  const counts = new Map((await running.db.run(events, [])).map(({ type, count }) => [type, count]));
  expect(counts.get('invoice.paid')).toBe(2n);
  expect([...counts.keys()].filter((type) => type.startsWith('transfer.'))).toEqual([]);
  const ledger = { name: '', columns: { count: 'int8' }, text: 'select count(*) from transfers' } as const;
  expect(await running.db.run(ledger, [])).toEqual([{ count: 2n }]);
}

async function livesThrough(running: TestService, bent: readonly (readonly [node: number, kinds: readonly Kind[]])[]) {
  const made = await orders(running);
  // The watcher stands at the head before a node goes bad.
  await eventually(
    async () =>
      (await (await fetch(`${running.url}/readyz`)).json()) as { networks: { devnet: { headBlock?: number } } },
    ({ networks }) => networks.devnet.headBlock === running.devnet.head().number,
  );
  for (const [index, kinds] of bent) {
    running.nodes[index]?.setFault(...(await Promise.all(kinds.map((kind) => faultOf(running, kind, made)))));
  }
  await pay(running, made);
  running.devnet.mineUntilSolid();
  const asked = running.nodes[bent[0]?.[0] ?? 0]?.url ?? '';
  const before = await requestsTo(running, asked);
  await eventually(
    async () => ({
      requests: await requestsTo(running, asked),
      paid: (await readInvoice(running, made.direct)).body.status,
    }),
    ({ requests, paid }) => requests >= before + 4 || paid === 'PAID',
  );
  for (const { setFault } of running.nodes) setFault();
  await expectTruth(running, made);
}

const SINGLE = FAULT_KINDS.filter((kind) => !['suspended-403', 'slow-drip', 'hang'].includes(kind));

describe('one node is all there is: nothing false is believed of what is proven, nothing is lost', () => {
  // What stands in logs alone is believed from a single node, and docs/chain-truth.md says so.
  const believed: Kind[] = ['forged-log', 'hidden-log'];
  test.each(SINGLE.filter((kind) => !believed.includes(kind)))('%s', async (kind) => {
    service = await startTestService();
    await livesThrough(service, [[0, [kind]]]);
  });
});

describe('two operators must agree: one of them lies or fails, and all is paid when it ends', () => {
  test.each(SINGLE.flatMap((kind) => [0, 1].map((node) => [kind, node] as const)))(
    '%s on node %i',
    async (kind, node) => {
      service = await startTestService({ nodeCount: 2 });
      await livesThrough(service, [[node, [kind]]]);
    },
  );
});

describe('three operators, two of which must agree: the preferred one lies or fails', () => {
  test.each(FAULT_KINDS)('%s delays nothing for long', async (kind) => {
    service = await startTestService({ nodeCount: 3 });
    const made = await orders(service);
    service.nodes[0]?.setFault(await faultOf(service, kind, made));
    await pay(service, made);
    service.devnet.mineUntilSolid();
    // The fault does not end.
    await expectTruth(service, made);
  });
});

describe('two different faults at once', () => {
  const pairs = SINGLE.map((kind, index) => [kind, SINGLE[(index * 7 + 11) % SINGLE.length] ?? kind] as const);
  test.each(pairs.filter(([one, other]) => one !== other))(
    '%s on one of three nodes and %s on another',
    async (one, other) => {
      service = await startTestService({ nodeCount: 3 });
      await livesThrough(service, [
        [0, [one]],
        [1, [other]],
      ]);
    },
  );
  test.each(pairs.filter(([one, other]) => one !== other))('%s and %s on one of two nodes', async (one, other) => {
    service = await startTestService({ nodeCount: 2 });
    await livesThrough(service, [[0, [one, other]]]);
  });
});
