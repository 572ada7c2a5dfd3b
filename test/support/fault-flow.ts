import { MULTISEND } from '../../src/devnet/evm/keys.ts';
import type { FAULT_KINDS, Fault } from '../../src/devnet/faults/faults.ts';
import { unlistedStatement } from '../../src/store/db/statement.ts';
import { accountToAddress } from '../../src/tron/address.ts';
import { metricOf } from './chain-view.ts';
import { call, createInvoice, eventually, type Json, payableOf, readInvoice, type TestService } from './service.ts';

export type FaultKind = (typeof FAULT_KINDS)[number];

/** What one node does while a test runs: several faults at once, as a node has them. */
export type Bent = readonly [node: number, kinds: readonly FaultKind[]];

/** An order that is paid directly, one that is paid by a contract, and one that nobody pays and that lies are about. */
export type Orders = { direct: string; internal: string; unpaid: string };

export async function createOrders(running: TestService): Promise<Orders> {
  const create = async () => (await createInvoice(running)).body.invoiceId as string;
  return { direct: await create(), internal: await create(), unpaid: await create() };
}

/** Pays the two orders that are paid, each once; the payments wait for the next block. */
export async function payOrders(running: TestService, { direct, internal }: Orders): Promise<void> {
  const contract = running.devnet.usdtContract;
  const [first, second] = [await payableOf(running, direct), await payableOf(running, internal)];
  await running.payer.transfer({ contract, to: first.address, amountMicro: first.amountMicro });
  await running.payer.multisend({
    multisendContract: accountToAddress(MULTISEND),
    token: contract,
    transfers: [{ to: second.address, amountMicro: second.amountMicro }],
  });
}

/** Bends nodes; what is forged pays the order that nobody pays. */
export async function bend(running: TestService, { unpaid }: Orders, bent: readonly Bent[]): Promise<void> {
  const { address, amountMicro } = await payableOf(running, unpaid);
  const faultOf = (kind: FaultKind): Fault =>
    kind.startsWith('forged-') ? { kind, to: address, amountMicro } : { kind };
  for (const [index, kinds] of bent) running.nodes[index]?.setFault(...kinds.map(faultOf));
}

export function heal(running: TestService): void {
  for (const { setFault } of running.nodes) setFault();
}

/** What `GET /readyz` says of the network. */
export async function readyz(running: TestService): Promise<Json> {
  return (await call(`${running.metricsUrl}/readyz`)).body.networks.devnet;
}

/** Waits until the watcher has examined the devnet's newest block. */
export async function untilHeadIsExamined(running: TestService): Promise<void> {
  await eventually(
    () => readyz(running),
    ({ headBlock }) => headBlock === running.devnet.head().number,
  );
}

/** Rounds of the watcher that failed so far, whatever the reason. */
export function failedRounds(running: TestService): Promise<number> {
  return metricOf(running, 'quittance_watcher_failures_total');
}

/** Waits until the watcher failed at least twice more: it tried, and tried again. */
export async function untilItFails(running: TestService): Promise<void> {
  const before = await failedRounds(running);
  await eventually(
    () => failedRounds(running),
    (count) => count >= before + 2,
  );
}

/** What tells that faults were felt. */
async function signsOf(running: TestService, orders: Orders, bent: readonly Bent[]) {
  return {
    failures: await failedRounds(running),
    requests: await Promise.all(
      bent.map(([index]) => metricOf(running, 'quittance_node_requests_total', running.nodes[index]?.url ?? '')),
    ),
    alarms: (await alarmsOf(running, 'nodes-disagree')).length,
    status: (await statusesOf(running, [orders.direct]))[0],
  };
}

/**
 * Waits until the faults had their chance since `before`: something is paid in spite of them, an alarm or failures tell of them, or the
 * bent nodes answered often. Nodes that failed are asked ever more seldom, so `before` is from before the faults.
 */
async function untilFelt(
  running: TestService,
  orders: Orders,
  bent: readonly Bent[],
  before: Awaited<ReturnType<typeof signsOf>>,
): Promise<void> {
  await eventually(
    () => signsOf(running, orders, bent),
    ({ failures, requests, alarms, status }) =>
      status === 'PAID' ||
      failures >= before.failures + 2 ||
      alarms > 0 ||
      requests.every((count, index) => count >= (before.requests[index] ?? 0) + 6),
  );
}

/** Pays under the faults, ends them when they had their chance, and expects that nothing false was believed and nothing is lost. */
export async function liveThrough(running: TestService, bent: readonly Bent[], limitMs?: number): Promise<void> {
  await untilHeadIsExamined(running);
  const orders = await createOrders(running);
  const before = await signsOf(running, orders, bent);
  await bend(running, orders, bent);
  await payOrders(running, orders);
  running.devnet.mineUntilSolid();
  await untilFelt(running, orders, bent, before);
  await expectNothingFalse(running, orders);
  heal(running);
  await expectTruth(running, orders, { evidence: running.nodes.length === 1 ? 'single-node' : 'agreed:2', limitMs });
}

/** The alarms of a kind so far, the closed ones included. */
export async function alarmsOf(
  running: Pick<TestService, 'db'>,
  kind: string,
): Promise<{ detail: string; isOpen: boolean }[]> {
  const alarms = unlistedStatement(
    '',
    { kind: 'text', detail: 'text', isOpen: 'bool' },
    'select kind, detail, resolved_at is null as is_open from alarms order by raised_at',
  );
  const rows = await running.db.run(alarms, []);
  return rows.filter((row) => row.kind === kind).map(({ detail, isOpen }) => ({ detail, isOpen }));
}

/** Waits until an alarm of the kind is open. */
export async function untilAlarm(running: TestService, kind: string): Promise<void> {
  await eventually(
    () => alarmsOf(running, kind),
    (alarms) => alarms.some(({ isOpen }) => isOpen),
  );
}

/** Waits until no alarm is open any more. */
export async function untilCalm(running: TestService): Promise<void> {
  const open = unlistedStatement(
    '',
    { kind: 'text', detail: 'text' },
    'select kind, detail from alarms where resolved_at is null',
  );
  await eventually(
    () => running.db.run(open, []),
    (alarms) => alarms.length === 0,
  );
}

/** Both orders become paid, once each; the third never moved; and the ledger has exactly the two transfers with what proves them. */
export async function expectTruth(
  running: TestService,
  { direct, internal, unpaid }: Orders,
  { evidence, limitMs }: { evidence: string; limitMs?: number | undefined },
): Promise<void> {
  await eventually(
    () => statusesOf(running, [direct, internal]),
    (statuses) => statuses.every((status) => status === 'PAID'),
    limitMs,
  );
  expectUntouched((await readInvoice(running, unpaid)).body);
  const events = unlistedStatement(
    '',
    { type: 'text', count: 'int8' },
    "select type, count(*) from events where type = 'invoice.paid' or type like 'transfer.%' group by type",
  );
  const reported = await running.db.run(events, []);
  if (reported.length !== 1 || reported[0]?.type !== 'invoice.paid' || reported[0].count !== 2n)
    throw wrong('events', reported);
  const ledger = unlistedStatement('', { verified: 'text' }, 'select verified from transfers order by verified');
  const verified = (await running.db.run(ledger, [])).map((row) => row.verified);
  if (verified.join() !== [evidence, 'proven'].sort().join()) throw wrong('ledger', verified);
}

/** The order that nobody pays has seen no transfer. */
export async function expectNothingFalse(running: TestService, { unpaid }: Orders): Promise<void> {
  expectUntouched((await readInvoice(running, unpaid)).body);
}

export function statusesOf(running: TestService, ids: readonly string[]): Promise<string[]> {
  return Promise.all(ids.map(async (id) => (await readInvoice(running, id)).body.status));
}

function expectUntouched(invoice: Json): void {
  if (invoice.status !== 'PENDING' || invoice.payment.transaction !== null)
    throw wrong('order that nobody paid', invoice);
}

function wrong(what: string, seen: unknown): Error {
  const json = JSON.stringify(seen, (_key, value) => (typeof value === 'bigint' ? `${value}` : value));
  return new Error(`the ${what} is not what happened: ${json}`);
}
