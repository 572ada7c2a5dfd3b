import { MULTISEND } from '@quittance/devnet/evm/keys';
import { accountToAddress } from '@quittance/tron/address';
import type { AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { decodeId } from '../../src/core/domain/ids.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { askNode } from './devnet.ts';
import { createInvoice, eventually, payableOf, readInvoice, type TestService, untilStatus } from './service.ts';

/** An invoice and how to pay it. */
export type Order = { id: string; address: string; amountMicro: bigint };

export async function newOrder(service: TestService): Promise<Order> {
  const { status, body } = await createInvoice(service);
  if (status !== 201) throw new Error(`the order was not created: ${JSON.stringify(body)}`);
  return { id: body.invoiceId, ...(await payableOf(service, body.invoiceId)) };
}

/** Sends an order's amount by calling the contract directly; the transfer waits for a block. Returns the transaction id. */
export function payDirectly(service: TestService, { address, amountMicro }: Omit<Order, 'id'>): Promise<string> {
  return service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
}

/** Sends the orders' amounts through another contract in one transaction. */
export function payByContract(service: TestService, ...orders: readonly Order[]): Promise<string> {
  return service.payer.multisend({
    multisendContract: accountToAddress(MULTISEND),
    token: service.devnet.usdtContract,
    transfers: orders.map(({ address, amountMicro }) => ({ to: address, amountMicro })),
  });
}

/** Creates an order and pays it directly, in a new block at the head. */
export async function orderPaidAtHead(service: TestService): Promise<Order & { txId: string; blockNumber: number }> {
  const order = await newOrder(service);
  const txId = await payDirectly(service, order);
  const [block] = service.devnet.mine();
  await untilStatus(service, order.id, 'CONFIRMING');
  return { ...order, txId, blockNumber: block?.number ?? 0 };
}

export async function statusOf(service: TestService, { id }: Pick<Order, 'id'>): Promise<string> {
  return (await readInvoice(service, id)).body.status;
}

export async function untilPaid(service: TestService, ...orders: readonly Pick<Order, 'id'>[]): Promise<void> {
  for (const { id } of orders) await untilStatus(service, id, 'PAID');
}

/** Reads all metrics at once. The returned function adds up the samples whose labels contain all of these texts. */
export async function scrape(service: TestService): Promise<(name: string, ...labels: string[]) => number> {
  const lines = (await (await fetch(`${service.metricsUrl}/metrics`)).text()).split('\n');
  return (name, ...labels) =>
    lines
      .filter((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

export async function metricOf(service: TestService, name: string, ...labels: string[]): Promise<number> {
  return (await scrape(service))(name, ...labels);
}

/** Counts the service's requests to a node. */
export function requestsTo(service: TestService, url: string): Promise<number> {
  return metricOf(service, 'quittance_node_requests_total', `"${url}"`, 'outcome="ok"');
}

/** Waits until the watcher has finished with the current chain: the metric is set at the end of a round. */
export async function untilExamined(service: TestService): Promise<void> {
  const { number } = service.devnet.head();
  await eventually(
    () => metricOf(service, 'quittance_chain_head_block'),
    (head) => head === number,
  );
}

/** Waits until everything that is irreversible now is recorded. */
export async function untilRecorded(service: TestService): Promise<void> {
  const { number, id } = service.devnet.solid();
  const isThere = (seen: Awaited<ReturnType<typeof findCursor>>) =>
    seen !== null && (seen.solid.number > number || seen.solid.id === id);
  await eventually(() => findCursor(service.db, 'devnet'), isThere);
}

/**
 * Returns the kinds of the open alarms, except blindness: a test's chain stands still between its blocks, and on a slow machine the newest
 * one gets old.
 */
export async function alarmKinds({ db }: TestService): Promise<AlarmKind[]> {
  const kinds = new Set((await findOpenAlarms(db, 'devnet')).map(({ kind }) => kind));
  return [...kinds].filter((kind) => kind !== 'blind');
}

/** Waits for an open alarm and returns its text. */
export async function untilAlarm({ db }: TestService, kind: AlarmKind): Promise<string> {
  const alarms = await eventually(
    () => findOpenAlarms(db, 'devnet'),
    (all) => all.some((alarm) => alarm.kind === kind),
  );
  return alarms.find((alarm) => alarm.kind === kind)?.detail ?? '';
}

const evidence = unlistedStatement(
  '',
  {
    kind: 'text',
    verified: 'text',
    producer: 'text',
    nodes: 'text[]',
    blockId: 'text',
    blockNumber: 'int8',
  },
  `select kind, verified, encode(producer, 'hex') as producer, nodes, encode(block_id, 'hex') as block_id, block_number
    from transfers where tx_id = decode($1, 'hex') order by log_index`,
);

/** Returns the recorded evidence of each incoming transfer of a transaction. */
export async function evidenceOf({ db }: TestService, txId: string) {
  return db.run(evidence, [txId]);
}

type Header = { number: number; producer: string; id: string };

/** Returns headers of the current chain, both ends included. */
export async function headersOf({ nodes }: TestService, from: number, to: number): Promise<Header[]> {
  const headers: Header[] = [];
  for (let number = from; number <= to; number += 1) {
    const { blockID, block_header } = await askNode<{
      blockID: string;
      block_header: { raw_data: { number: number; witness_address: string } };
    }>(nodes[0]?.url ?? '', '/wallet/getblock', { id_or_num: String(number) });
    headers.push({ number, id: blockID, producer: block_header.raw_data.witness_address.slice(2) });
  }
  return headers;
}

const eventTypes = unlistedStatement(
  '',
  { type: 'text' },
  'select e.type from events e where e.invoice_id = $1 order by e.sequence',
);

/** Returns an order's events in sequence. */
export async function readInvoiceEvents({ db }: TestService, { id }: Pick<Order, 'id'>): Promise<string[]> {
  const decoded = decodeId('inv', id);
  if (decoded === null) throw new Error(`${id} is no invoice`);
  return (await db.run(eventTypes, [decoded])).map(({ type }) => type);
}
