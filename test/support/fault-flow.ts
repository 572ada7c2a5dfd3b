import { MULTISEND } from '@quittance/devnet/evm/keys';
import type { FAULT_KINDS, Fault } from '@quittance/devnet/faults/faults';
import { accountToAddress } from '@quittance/tron/address';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { metricOf } from './chain-view.ts';
import { call, createInvoice, eventually, type Json, payableOf, readInvoice, type TestService } from './service.ts';

export type FaultKind = (typeof FAULT_KINDS)[number];

/** The faults of one node during a test: several at once, as in a real node. */
export type Bent = readonly [node: number, kinds: readonly FaultKind[]];

/** An order that is paid directly, one that is paid by a contract, and one that is never paid and whose payment is forged. */
export type Orders = { direct: string; internal: string; unpaid: string };

export async function createOrders(running: TestService): Promise<Orders> {
  const create = async () => (await createInvoice(running)).body.invoiceId as string;
  return { direct: await create(), internal: await create(), unpaid: await create() };
}

/** Pays both orders once each; the payments wait for the next block. */
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

/** Gives nodes their faults. Forged transfers pay the order that isn't paid. */
export async function bend(running: TestService, { unpaid }: Orders, bent: readonly Bent[]): Promise<void> {
  const { address, amountMicro } = await payableOf(running, unpaid);
  const faultOf = (kind: FaultKind): Fault =>
    kind.startsWith('forged-') ? { kind, to: address, amountMicro } : { kind };
  for (const [index, kinds] of bent) running.nodes[index]?.setFault(...kinds.map(faultOf));
}

export function heal(running: TestService): void {
  for (const { setFault } of running.nodes) setFault();
}

/** Returns the network's state from `GET /readyz`. */
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

/** Counts the watcher's failed rounds so far, whatever the reason. */
export function failedRounds(running: TestService): Promise<number> {
  return metricOf(running, 'quittance_watcher_failures_total');
}

/** Waits until the watcher has failed at least twice more, so it has retried. */
export async function untilItFails(running: TestService): Promise<void> {
  const before = await failedRounds(running);
  await eventually(
    () => failedRounds(running),
    (count) => count >= before + 2,
  );
}

/** Returns the signs that faults had an effect. */
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
 * Waits until the faults since `before` had their chance: a payment was recorded despite them, an alarm or failures report them, or the
 * faulty nodes answered often. Failing nodes are queried less and less, so `before` must be read before the faults begin.
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

/**
 * Pays while the faults are active and ends them after they had their chance. Expects that nothing false was believed and nothing was lost.
 */
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

/** Returns the alarms of a kind so far, including closed ones. */
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

/** Waits until no alarm is open. */
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

/**
 * Expects that both orders become paid once, that the third never changed, and that the ledger has exactly the two transfers with their
 * evidence.
 */
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

/** Expects that the unpaid order has no transfer. */
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
