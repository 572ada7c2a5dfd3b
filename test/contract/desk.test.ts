import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../src/developer/scenarios/scenarios.ts';
import { type CliOutput, runCli } from '../cli/run-cli.ts';
import {
  createTestProject,
  eventually,
  inboxOf,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
  untilTold,
} from '../support/service.ts';
import { created, get, order } from './ask.ts';
import { runSql } from './sql.ts';

/** Each would start a formula in some spreadsheet program, or end a cell too early. */
const HOSTILE = [
  '=HYPERLINK("http://evil.example","pay")',
  '+1+1',
  '-2+3',
  '@SUM(A1:A9)',
  "'=1+1",
  'a,"b";\n=c',
  ' =1+1',
  '＝1+1',
  '%00|calc',
];
const NOTE = '=cmd|\'/C calc\'!A0, "quoted"; =x';
/** Both shops have an order with this name. */
const SHARED = 'order-shared';

type Invoice = { invoiceId: string; externalId: string; address: string; amountMicro: bigint };

let service: TestService;
let theirs: TestProject;
const mine: Invoice[] = [];
let theirInvoice: Invoice;
const txIds: Record<string, string> = {};

const contracts = () => ({
  usdt: service.devnet.usdtContract,
  fakeUsdt: service.devnet.fakeUsdtContract,
  multisend: service.devnet.multisendContract,
});

async function newInvoice(project: TestProject, amount: string, externalId: string): Promise<Invoice> {
  const { invoiceId } = await created(service, { project, body: order({ amount, externalId }) });
  const { payment } = (await get(service, `/v1/invoices/${invoiceId}?expand=payment`, project)).body;
  return {
    ...{ invoiceId, externalId, address: payment.address },
    amountMicro: BigInt(payment.payableAmount.replace('.', '')),
  };
}

async function pay(invoice: Invoice, scenario: Scenario): Promise<readonly string[]> {
  return (await payScenario(service.payer, { scenario, contracts: contracts(), invoice })).txIds;
}

const my = (index: number): Invoice => mine[index] as Invoice;

beforeAll(async () => {
  service = await startTestService();
  theirs = await createTestProject(service.db);
  for (const [index, externalId] of [...HOSTILE, SHARED].entries()) {
    mine.push(await newInvoice(service.project, String(40 + 9 * index), externalId));
  }
  theirInvoice = await newInvoice(theirs, '25.00', SHARED);
  for (const invoice of mine.slice(0, 8)) await pay(invoice, 'exact');
  txIds['matched'] = (await pay(my(8), 'exact'))[0] ?? '';
  txIds['fee'] = (await pay(my(9), 'fee'))[0] ?? '';
  txIds['over'] = (await pay(my(9), 'over'))[0] ?? '';
  txIds['duplicate'] = (await pay(my(0), 'exact'))[0] ?? '';
  txIds['shared'] = await service.payer.multisend({
    multisendContract: contracts().multisend,
    token: contracts().usdt,
    transfers: [
      { to: my(9).address, amountMicro: 1_230_000n },
      { to: theirInvoice.address, amountMicro: theirInvoice.amountMicro },
    ],
  });
  service.devnet.mineUntilSolid();
  await untilStatus(service, my(8).invoiceId, 'PAID');
  await eventually(
    () => runSql(service, 'select id from transfers'),
    (rows) => rows.length === 14,
  );
  await untilTold(service);
  await untilDelivered();
});
afterAll(() => service.stop());

async function untilDelivered(): Promise<void> {
  await eventually(
    () => runSql(service, "select event_id from deliveries where status <> 'delivered'"),
    (rows) => rows.length === 0,
  );
}

function cli(...args: string[]): Promise<CliOutput> {
  return runCli(args, { env: { DATABASE_URL: service.connectionString } });
}

async function transferId(name: string): Promise<string> {
  const { json } = await cli('transfers', 'show', txIds[name] ?? '', '--json');
  expect(json.data).toHaveLength(1);
  return json.data[0].transferId;
}

/** Returns everything that a resolution must not change. */
async function facts(): Promise<Json> {
  return {
    invoices: await runSql(service, 'select * from invoices order by id'),
    transfers: await runSql(service, 'select * from transfers order by id'),
    events: await runSql(service, 'select * from events order by id'),
    deliveries: await runSql(service, 'select * from deliveries order by event_id, endpoint_id'),
    received: (await inboxOf(service)).length,
  };
}

describe('resolve', () => {
  test('notes resolution, note, who, when and the invoice; changes no invoice, tells the shop of each decision; the newest counts and all are kept', async () => {
    const [fee, over, duplicate] = await Promise.all([transferId('fee'), transferId('over'), transferId('duplicate')]);
    const before = await facts();
    const resolve = (id: string, as: string, ...more: string[]) =>
      cli('transfers', 'resolve', id, '--as', as, '--json', ...more);
    const startedMs = Date.now() - 1000;
    const given = [
      await resolve(fee, 'ignored', '--by', 'ada'),
      await resolve(fee, 'fulfilled-manually', '--by', 'bob', '--note', NOTE, '--invoice', my(9).invoiceId),
      await resolve(over, 'own-deposit', '--by', 'ada'),
      await resolve(duplicate, 'refunded', '--by', 'ada', '--invoice', my(0).externalId),
    ];
    expect(given.map(({ code, stdout }) => `${code} ${code === 0 ? '' : stdout}`)).toEqual(Array(4).fill('0 '));
    await untilDelivered();
    const { events, deliveries, received, ...books } = await facts();
    expect(books).toEqual({ invoices: before.invoices, transfers: before.transfers });
    expect(events.slice(0, before.events.length)).toEqual(before.events);
    expect([deliveries.length - before.deliveries.length, received - before.received]).toEqual([4, 4]);
    const told = events.slice(before.events.length).map(({ body }: Json) => JSON.parse(body));
    const named = (invoice: Invoice, status: string) => {
      return { invoiceId: invoice.invoiceId, externalId: invoice.externalId, status };
    };
    expect(told.map(({ type, sequence, data }: Json) => [type, sequence, data.transferId, data.resolution])).toEqual(
      [
        [fee, { kind: 'kept', invoice: null }],
        [fee, { kind: 'fulfilled-manually', invoice: named(my(9), 'PENDING') }],
        [over, { kind: 'own-deposit', invoice: null }],
        [duplicate, { kind: 'refunded', invoice: named(my(0), 'PAID') }],
      ].map(([id, decision]) => [
        ...['transfer.resolved', 1, id],
        { ...(decision as object), resolvedAt: expect.stringMatching(/Z$/) },
      ]),
    );
    // The operator's notes aren't shown to anyone else.
    expect(JSON.stringify(told)).not.toMatch(/\bbob\b|=cmd/);
    expect((await get(service, `/v1/invoices/${my(9).invoiceId}`)).body.status).toBe('PENDING');

    const { json } = await cli('transfers', 'show', fee, '--json');
    const [first, second, ...rest] = json.data[0].resolutions;
    expect(rest).toEqual([]);
    expect(first).toMatchObject({ resolution: 'kept', resolvedBy: 'ada', invoice: null });
    expect(second).toMatchObject({
      ...{ resolution: 'fulfilled-manually', resolvedBy: 'bob', note: NOTE },
      invoice: { invoiceId: my(9).invoiceId, status: 'PENDING' },
    });
    for (const { resolvedAt } of [first, second]) {
      expect(Date.parse(resolvedAt)).toBeGreaterThan(startedMs);
      expect(Date.parse(resolvedAt)).toBeLessThanOrEqual(Date.now());
    }
    const list = await cli('transfers', 'list', '--resolved', '--project', service.project.projectId, '--json');
    const inForce = Object.fromEntries(list.json.data.map((row: Json) => [row.transferId, row.resolution]));
    expect(inForce).toEqual({ [fee]: 'fulfilled-manually', [over]: 'own-deposit', [duplicate]: 'refunded' });
  });

  test('refuses what is not to be decided, all or nothing', async () => {
    const [matched, fee] = await Promise.all([transferId('matched'), transferId('fee')]);
    const before = [await facts(), await runSql(service, 'select * from transfer_resolutions order by id')];
    const replies = await Promise.all([
      cli('transfers', 'resolve', matched, '--as', 'ignored'),
      cli('transfers', 'resolve', fee, matched, '--as', 'ignored'),
      cli('transfers', 'resolve', fee, '--as', 'paid'),
      cli('transfers', 'resolve', fee, '--as', 'fulfilled-manually', '--invoice', theirInvoice.invoiceId),
      cli('transfers', 'resolve', fee, 'trf_00000000000000000000000000', '--as', 'ignored'),
    ]);
    for (const { code, stderr } of replies) expect(code, stderr).not.toBe(0);
    expect(replies[3]?.stderr).not.toContain(theirs.projectId);
    expect([await facts(), await runSql(service, 'select * from transfer_resolutions order by id')]).toEqual(before);
  });

  test('is audited: no resolution is ever changed or deleted, not even in SQL, and none is of a transfer that paid', async () => {
    for (const text of [
      "update transfer_resolutions set note = 'else'",
      'delete from transfer_resolutions',
      'truncate transfer_resolutions',
      `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at)
       select project_id, id, 'ignored', '', 'eve', now() from transfers where kind = 'matched' limit 1`,
      `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at, invoice_id)
       select t.project_id, t.id, 'ignored', '', 'eve', now(), i.id from transfers t, invoices i
       where t.kind = 'unmatched' and i.project_id <> t.project_id limit 1`,
    ]) {
      await expect(runSql(service, text), text).rejects.toMatchObject({ code: expect.stringMatching(/^23/) });
    }
  });

  test('does not keep an invoice from being paid by one exact transfer', async () => {
    const invoice = my(9);
    const [txId = ''] = await pay(invoice, 'exact');
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoice.invoiceId, 'PAID');
    const { body } = await get(service, `/v1/invoices/${invoice.invoiceId}?expand=payment`);
    expect(body.payment.transaction.txId).toBe(txId);
  });
});

describe('explain', () => {
  const kinds = ({ json }: CliOutput): string[] => json.timeline.map(({ kind }: Json) => kind);
  const NO_WORD_OF_THEIRS = () => [
    theirs.projectId,
    theirInvoice.invoiceId,
    theirInvoice.address,
    theirInvoice.amountMicro.toString().replace(/^(\d+)(\d{6})$/, '$1.$2'),
  ];

  test('tells request, allocation, sighting, evidence, match, events, attempts and operators for all four forms, and nothing of another project', async () => {
    const project = ['--project', service.project.projectId, '--json'];
    const invoice = my(9);
    await untilDelivered();
    const [byInvoice, byExternalId, byTx, byAddress, byShared] = await Promise.all([
      cli('explain', invoice.invoiceId, ...project),
      cli('explain', SHARED, ...project),
      cli('explain', txIds['fee'] ?? '', ...project),
      cli('explain', invoice.address, ...project),
      cli('explain', txIds['shared'] ?? '', ...project),
    ]);
    const all = [byInvoice, byExternalId, byTx, byAddress, byShared];
    for (const { code, stdout } of all) {
      expect(code, stdout).toBe(0);
      for (const word of NO_WORD_OF_THEIRS()) expect(stdout.includes(word), word).toBe(false);
    }
    expect(byExternalId.json).toEqual(byInvoice.json);
    expect(byInvoice.json.subject).toMatchObject({ invoiceId: invoice.invoiceId, externalId: SHARED, status: 'PAID' });
    const story = ['requested', 'allocated', 'transferred', 'matched', 'event', 'attempt', 'unmatched', 'resolved'];
    expect(kinds(byInvoice)).toEqual(expect.arrayContaining(story));
    const transferred = byInvoice.json.timeline.find(({ kind }: Json) => kind === 'transferred');
    expect(transferred).toMatchObject({ blockId: expect.stringMatching(/^[0-9a-f]{64}$/), verified: 'proven' });
    expect(kinds(byTx)).toEqual(expect.arrayContaining(['transferred', 'unmatched', 'event', 'attempt', 'resolved']));
    expect(byTx.stdout).toContain('FEE_DEDUCTED');
    expect(byAddress.json.subject).toMatchObject({ address: invoice.address, invoices: { PAID: 10, PENDING: 0 } });
    expect(byAddress.json.timeline.filter(({ kind }: Json) => kind === 'transferred')).toHaveLength(14);
    expect(byShared.json.timeline.filter(({ kind }: Json) => kind === 'transferred')).toHaveLength(1);
    const times = byInvoice.json.timeline.map(({ at }: Json) => at);
    expect(times).toEqual(times.toSorted());
  });

  test("another project's invoice, address and order are not there, and an order of two projects is asked about", async () => {
    const project = ['--project', service.project.projectId];
    const [invoice, address, nobody, shared] = await Promise.all([
      cli('explain', theirInvoice.invoiceId, ...project),
      cli('explain', theirInvoice.address, ...project),
      cli(
        'explain',
        accountToAddress(accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false))),
        ...project,
      ),
      cli('explain', SHARED),
    ]);
    expect(invoice.code).toBe(3);
    expect(shared.code).not.toBe(0);
    expect(shared.stderr).toContain(`${theirInvoice.invoiceId}: "${SHARED}"`);
    for (const { stdout, stderr } of [invoice, address]) {
      expect(stdout + stderr).not.toContain(theirs.projectId);
      expect(stdout + stderr).not.toContain(SHARED);
    }
    // A stranger's address gets the same answer as any other.
    const blank = (reply: CliOutput) => (reply.stdout + reply.stderr).replaceAll(/T[1-9A-HJ-NP-Za-km-z]{33}/g, 'T…');
    expect(address.code).toBe(nobody.code);
    expect(blank(address)).toBe(blank(nobody));
  });
});

describe('export', () => {
  /** RFC 4180, strictly. */
  function readCsv(text: string): string[][] {
    const rows: string[][] = [];
    let [row, cell, at] = [[] as string[], '', 0];
    while (at < text.length) {
      if (text[at] === '"') {
        for (at += 1; text[at] !== '"' || text[at + 1] === '"'; at += text[at] === '"' ? 2 : 1) cell += text[at];
        at += 1;
        expect([',', '\r'], 'a quoted cell ends with its quote').toContain(text[at]);
      } else if (text[at] === ',') {
        row.push(cell);
        cell = '';
        at += 1;
      } else if (text.startsWith('\r\n', at)) {
        rows.push([...row, cell]);
        [row, cell] = [[], ''];
        at += 2;
      } else {
        expect(text[at]).not.toMatch(/[\r\n]/);
        cell += text[at];
        at += 1;
      }
    }
    expect([row, cell], 'the last line is ended').toEqual([[], '']);
    return rows;
  }

  test('CSV cells that would start a formula are defused, all cells read back, and JSON has the same rows', async () => {
    const project = ['--project', service.project.projectId];
    const [csv, json] = await Promise.all([
      cli('transfers', 'export', ...project),
      cli('transfers', 'export', ...project, '--format', 'json', '--json'),
    ]);
    const [head = [], ...rows] = readCsv(csv.stdout);
    expect(rows).toHaveLength(14);
    expect(new Set(rows.map(({ length }) => length))).toEqual(new Set([head.length]));
    for (const cell of rows.flat()) expect(cell, JSON.stringify(cell)).not.toMatch(/^\s*[=+\-@\t\r＝＋－＠]/);
    // A program that splits lines at other characters doesn't see the start of a formula either.
    for (const cell of rows.flat()) expect(cell).not.toMatch(/[\n;\t]\s*[=+@]/);
    const records = rows.map((row) => Object.fromEntries(head.map((name, index) => [name, row[index] ?? ''])));
    const same = ['transferId', 'txId', 'amount', 'kind', 'time', 'from', 'to', 'reason', 'confidence', 'resolution'];
    const pick = (record: Json) => same.map((name) => record[name] ?? '');
    expect(records.map(pick)).toEqual(json.json.data.map(pick));
    const paidFor = json.json.data
      .filter(({ kind }: Json) => kind === 'matched')
      .map(({ externalId }: Json) => externalId);
    expect(paidFor.toSorted()).toEqual([...HOSTILE, SHARED].toSorted());
    expect(json.json.data.map(({ note }: Json) => note)).toContain(NOTE);
    const sum = (list: Json[]) => list.reduce((total, { amount }) => total + BigInt(amount.replace('.', '')), 0n);
    const [booked] = await runSql(
      service,
      'select sum(amount_micro)::text as sum from transfers where project_id = $1',
      [service.project.id],
    );
    expect(String(sum(records))).toBe(booked?.['sum']);
    for (const record of json.json.data) expect(record.reason !== null).toBe(record.kind !== 'matched');
    for (const text of [csv.stdout, json.stdout]) expect(text).not.toContain(theirs.projectId);
  });
});
