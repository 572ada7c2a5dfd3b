import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Schema from 'typebox/schema';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { InvoiceListView, InvoiceView } from '../../src/faces/operator/subjects/invoices.ts';
import { runSql } from '../contract/sql.ts';
import {
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestService,
} from '../support/service.ts';
import { newDirectory, runCli } from './run-cli.ts';

let service: TestService;
const ids: string[] = [];
beforeAll(async () => {
  service = await startTestService();
  for (const [index, amount] of ['10.00', '20.00', '20.00'].entries()) {
    const { body } = await createInvoice(service, { body: { amount, externalId: `=order-${index}` } });
    ids.push(body.invoiceId);
  }
  await createTestProject(service.db);
});
afterAll(() => service.stop());

const cli = (...args: string[]) =>
  runCli(['invoice', ...args], {
    env: {
      DATABASE_URL: service.connectionString,
      QUITTANCE_PUBLIC_URL: 'https://pay.example',
      QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9',
      QUITTANCE_DEVNET_USDT: service.devnet.usdtContract,
    },
  });
const listed = async (...args: string[]) => {
  const { code, json } = await cli('list', '--project', service.project.projectId, ...args, '--json');
  expect(code).toBe(0);
  expect(Schema.Check(InvoiceListView, json)).toBe(true);
  return json;
};
const idsOf = (list: { data: { invoiceId: string }[] }) => list.data.map(({ invoiceId }) => invoiceId);

test('invoices are listed, the newest first, page by page, and by what is asked for', async () => {
  const [first = '', second = '', third = ''] = ids;
  const page = await listed('--limit', '2');
  expect(idsOf(page)).toEqual([third, second]);
  expect(page.nextBefore).toBe(second);
  expect(idsOf(await listed('--limit', '2', '--before', second))).toEqual([first]);
  expect(idsOf(await listed('--amount', '20.00'))).toEqual([third, second]);
  expect(idsOf(await listed('--status', 'PAID'))).toEqual([]);
  expect(idsOf(await listed('--to', '2020-01-01'))).toEqual([]);
  const { stdout, stderr } = await cli('list', '--project', service.project.projectId, '--limit', '1');
  expect(stdout).toContain(`${third}  `);
  expect(stderr).toContain(`repeat the command with --before ${third}`);
});

test('one is shown with the link for its payer, and what paid it', async () => {
  const show = async () => (await cli('show', ids[0] ?? '', '--project', service.project.projectId, '--json')).json;
  const before = await show();
  expect(Schema.Check(InvoiceView, before)).toBe(true);
  expect(before).toMatchObject({ status: 'PENDING', paid: null });
  expect(before.checkoutUrl).toMatch(/^https:\/\/pay\.example\/c\//);
  const amountMicro = BigInt(before.payableAmount.replace('.', ''));
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: before.address, amountMicro });
  service.devnet.mineUntilSolid();
  const paid = await eventually(show, ({ status }) => status === 'PAID');
  const { stdout } = await cli('show', ids[0] ?? '', '--project', service.project.projectId);
  expect(stdout).toContain(`in transaction ${paid.paid.txId}`);
});

test('an export is whole, and a cell that begins a formula is none', async () => {
  const path = join(newDirectory(), 'invoices.csv');
  const { code, json } = await cli(
    'export',
    '--project',
    service.project.projectId,
    '--output',
    path,
    '--json',
    '--format',
    'csv',
  );
  expect({ code, json }).toEqual({ code: 0, json: { file: path, format: 'csv', invoices: 3 } });
  const [head, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\r\n');
  expect(head).toMatch(/^createdAt,invoiceId,externalId,status,/);
  expect(lines.map((line) => line.split(',').slice(1, 3))).toEqual(
    [2, 1, 0].map((index) => [ids[index], `'=order-${index}`]),
  );
  const { stdout } = await cli('export', '--project', service.project.projectId, '--status', 'PAID', '--json');
  expect(idsOf(JSON.parse(stdout))).toEqual([ids[0]]);
});

test.each([
  [['show', 'inv_x'], 3, 'has no invoice "inv_x". To find an invoice by part of its order id'],
  [['withdraw', 'no such order'], 3, 'has no invoice "no such order". To find an invoice'],
  [['list', '--status', 'paid'], 2, '--status is "paid": choose PENDING, CONFIRMING, EXPIRED'],
  [['list', '--before', 'trf_1'], 2, '--before is "trf_1"'],
  [['list', '--limit', '501'], 2, '--limit'],
  [['export', '--from', 'soon'], 2, '--from is "soon"'],
  [['export', '--format', 'xml'], 2, '--format is "xml": choose csv or json'],
])('what is wrong is said: %j', async (args, code, says) => {
  const refused = await cli(...args, '--project', service.project.projectId);
  expect(refused.code).toBe(code);
  expect(refused.stderr).toContain(says);
});

test('an order id names its invoice as the invoice id does', async () => {
  const { projectId, apiKey } = await createTestProject(service.db);
  const { body } = await createInvoice(service, { apiKey, body: { externalId: 'Order 17/b' } });
  const named = ['Order 17/b', '--project', projectId, '--json'];
  expect((await cli('show', ...named)).json).toMatchObject({ invoiceId: body.invoiceId });
  expect((await cli('withdraw', ...named)).json).toMatchObject({ invoiceId: body.invoiceId });
});

test('an invoice of another project is not found, and of several projects one must be named', async () => {
  const other = await createTestProject(service.db);
  expect((await cli('show', ids[0] ?? '', '--project', other.projectId)).code).toBe(3);
  expect((await cli('list')).stderr).toContain('--project');
});

test('one is made, once for each key, with who made it', async () => {
  const make = (...args: string[]) =>
    cli('create', '--project', service.project.projectId, '--amount', '25', '--json', ...args);
  const first = await make('--external-id', 'by-hand', '--idempotency-key', 'k', '--by', 'Ann', '--note', 'by phone');
  expect(first.code, first.stderr).toBe(0);
  expect(first.json).toMatchObject({ isNew: true, invoice: { externalId: 'by-hand', status: 'PENDING' } });
  expect(first.json.invoice.checkoutUrl).toMatch(/^https:\/\/pay\.example\/c\//);
  const again = await make('--external-id', 'by-hand', '--idempotency-key', 'k');
  expect(again.json).toEqual({ ...first.json, isNew: false });
  const taken = await make('--external-id', 'by-hand');
  expect(taken.json.error).toMatchObject({ code: 'CONFLICT' });
  expect((await make('--external-id', '', '--idempotency-key', 'x')).json.error.code).toBe('INVALID_ARGUMENT');
  expect((await make('--external-id', 'o', '--idempotency-key', 'a b')).json.error.message).toContain('such as');
  const [record] = await runSql(
    service,
    `select acted_by as operator, detail from operator_actions where action = 'invoice.created'`,
  );
  expect(record).toMatchObject({ operator: 'Ann', detail: { externalId: 'by-hand', note: 'by phone' } });
});
