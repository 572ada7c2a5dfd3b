import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { parseAddress } from '@quittance/tron/address';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { exportTransfers, readSelection } from '../../src/faces/operator/subjects/transfer-export.ts';
import { shrinkStyle } from '../../src/faces/web/assets.ts';
import { addTestAdapter } from '../adapters/fixture.ts';
import { createInvoice, createTestProject, payableOf, readInvoice, untilStatus } from '../support/service.ts';
import {
  actorNamed,
  type Made,
  newInvoice,
  payInFull,
  type Reply,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  unmatchedIds,
  withOwner,
  writeHistory,
} from './console.ts';

const RTL = 'قهوة'.repeat(25);
const EMOJI = '🧾'.repeat(200);
const HTML = `<img src=x onerror=alert(1)>"'&`;
const FORMULA = `=HYPERLINK("https://evil.example";"refund")`;

let console_: TestConsole;
let paid: Made;
let short: Made;
/** An unmatched transfer, `trf_…`. */
let open: string;

beforeAll(async () => {
  console_ = await startTestConsole();
  const { service } = console_;
  await writeHistory(service, service.project, (day) => day % 4);
  paid = await newInvoice(service, 'order-1');
  short = await newInvoice(service, RTL);
  for (const externalId of [EMOJI, HTML, FORMULA]) await newInvoice(service, externalId);
  await payInFull(service, paid);
  await send(
    service,
    { to: short.address, amountMicro: short.amountMicro - 1_000_000n },
    { to: paid.address, amountMicro: 7n },
  );
  open = encodeId('trf', (await unmatchedIds(service))[0] ?? '');
});
afterAll(() => console_.stop());

const PAGES = () => [
  ...[
    '/',
    '/invoices',
    '/invoices?status=PAID',
    '/invoices?amount=25.00',
    '/invoices/new',
    '/unmatched',
    '/unmatched?state=all',
    '/requests?status=4xx',
  ],
  ...[`/invoices/${paid.invoiceId}`, `/invoices/${short.invoiceId}`, `/unmatched/${open}`, `/find?q=${paid.address}`],
];

/** Expects that foreign text appears on a page only as text. */
function expectHarmless({ text }: Reply): void {
  expect(text).not.toContain('<img');
  expect(text.match(/<script/g)).toHaveLength(1);
  // Ignores attribute values, which are escaped.
  expect(text.replace(/"[^"]*"/g, '""')).not.toMatch(/<[^>]* (style|on[a-z]+)=/);
}

test('every page answers, in less than 30 kB compressed, with hostile names, and no browser keeps or frames it', async () => {
  const { service } = console_;
  await withOwner(service, (client) => client.query('update projects set name = $1', [`${HTML}${'ש'.repeat(60)}`]));
  for (const path of PAGES()) {
    const reply = await console_.get(path);
    expect(reply.status, path).toBe(200);
    expectHarmless(reply);
    expect(gzipSync(reply.text).length, path).toBeLessThan(30_000);
    const policy = reply.headers.get('content-security-policy');
    expect(policy, path).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy, path).toContain("frame-ancestors 'none'");
    expect(reply.headers.get('cache-control'), path).toBe('no-store');
    expect(reply.headers.get('x-content-type-options'), path).toBe('nosniff');
  }
});

test('the style sheet stays under 12 kB and the script under 8 kB, and both have the tokens of the payer’s page', async () => {
  const { text } = await console_.get('/');
  const [css = '', js = ''] = [/href="([^"]+css[^"]*)"/, /src="([^"]+js[^"]*)"/].map(
    (form) => form.exec(text)?.[1] ?? '',
  );
  const [style, script] = [await console_.get(css), await console_.get(js)];
  expect(style.text.length).toBeLessThan(12_000);
  expect(script.text.length).toBeLessThan(8000);
  expect(style.headers.get('cache-control')).toContain('immutable');
  const tokens = shrinkStyle(await readFile(new URL('../../public/tokens.css', import.meta.url), 'utf8'));
  expect(style.text.startsWith(tokens)).toBe(true);
});

test('a page of fifty invoices with the longest order ids stays under 30 kB', async () => {
  const { service } = console_;
  for (let n = 0; n < 50; n += 1)
    await newInvoice(
      service,
      `${n} ${String.fromCodePoint(0x4e00 + n * 97)}`.padEnd(200, '漢字仮名交じり文').slice(0, 190),
    );
  const { text } = await console_.get('/invoices');
  expect(text.match(/<tr role="row">/g)).toHaveLength(51);
  expect(gzipSync(text).length).toBeLessThan(30_000);
});

test('without a session every page leads to /sign-in, which says how to get a link', async () => {
  for (const path of [...PAGES(), '/invoices.csv']) {
    const reply = await console_.get(path, { 'x-actor': 'nobody' });
    const to = path === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(path)}`;
    expect([reply.status, reply.headers.get('location'), reply.text], path).toEqual([303, to, '']);
  }
  expect((await console_.get('/nowhere', { 'x-actor': 'nobody' })).status).toBe(404);
  expect((await console_.get('/sign-in')).text).toContain('quittance user invite');
  const form = await console_.post('/invoices/new', { amount: '1' }, { 'x-actor': 'nobody' });
  expect([form.status, form.text.includes('Your session has ended')]).toEqual([401, true]);
});

test('an invoice is found by its order id, its id, its checkout link and its amount; an address and a transaction are explained', async () => {
  const { service } = console_;
  const { body } = await readInvoice(service, paid.invoiceId);
  const goesTo = async (q: string) => (await console_.get(`/find?q=${encodeURIComponent(q)}`)).headers.get('location');
  const amount = formatAmount(microUsdt(paid.amountMicro));
  const page = `/invoices/${paid.invoiceId}`;
  expect([
    await goesTo('order-1'),
    await goesTo(paid.invoiceId),
    await goesTo(body.checkoutUrl),
    await goesTo(`${body.checkoutUrl}?lang=fa`),
  ]).toEqual([page, page, page, page]);
  expect(await goesTo(`${amount} USDT`)).toBe(page);
  expect((await console_.get(`/invoices?amount=${amount}`)).text).toContain(page);
  expect((await console_.get(`/find?q=${paid.address}`)).text).toContain('<h1>Address</h1>');
  const unknown = await console_.get(`/find?q=${'ab'.repeat(32)}`);
  expect(unknown.status).toBe(404);
  expect(unknown.text).toContain('No node is configured');
});

test('what a person types finds the order: in any case, by its start, with other dashes, signs and quotes, and by its event, token and transaction', async () => {
  const { service } = console_;
  const order = { externalId: 'Web-Shop-4711', amount: '31.00', metadata: { customer: 'anna@example.org' } };
  const { body } = await createInvoice(service, { body: order });
  const made = { ...order, invoiceId: body.invoiceId, ...(await payableOf(service, body.invoiceId)) };
  await payInFull(service, made);
  const { rows } = await withOwner(service, (client) =>
    client.query<{ tx_id: string; event: string }>(
      `select encode(t.tx_id, 'hex') as tx_id, e.id as event from invoices i join transfers t on t.id = i.paid_transfer_id
       join events e on e.invoice_id = i.id where i.external_id = 'Web-Shop-4711' limit 1`,
    ),
  );
  const { tx_id: txId = '', event = '' } = rows[0] ?? {};
  const page = `/invoices/${made.invoiceId}`;
  const find = async (q: string) => console_.get(`/find?q=${encodeURIComponent(q)}`);
  const typed = [
    'web-shop-4711',
    'WEB-SHOP-4711',
    'Web-Shop-47',
    '#web-shop-4711',
    'Web–Shop–4711',
    ' "Web-Shop-4711" ',
  ];
  const others = ['anna@example.org', 'Anna', body.checkoutUrl.split('/').at(-1) ?? ''];
  const missed = [];
  for (const q of [...typed, ...others]) if ((await find(q)).headers.get('location') !== page) missed.push(q);
  expect(missed).toEqual([]);
  const eventId = encodeId('evt', event);
  expect((await find(` ${eventId.toUpperCase()}`)).headers.get('location')).toBe(`/events/${eventId}`);
  expect((await console_.get(`/events/${eventId}`)).text).toContain(`href="${page}"`);
  for (const q of [txId.slice(0, 8), `${txId.slice(0, 8)}…`, txId.toUpperCase(), `TxID: ${txId}`]) {
    expect((await find(q)).text, q).toContain('<h1>Transaction</h1>');
  }
});

test('one search lists what every project that the person may see has of it: an order id, an address of two networks, a shortened address', async () => {
  const { service, actors } = console_;
  const [mine, foreign] = [await createTestProject(service.db), await createTestProject(service.db)];
  const far = await createTestProject(service.db, { network: 'nile', addressCount: 0 });
  actors['olga'] = actorNamed('Olga', { role: 'viewer', projects: [service.project.id, mine.id, far.id] });
  const [address = ''] = mine.addresses;
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') return expect.fail(parsed.reason);
  await insertAddress(service.db, {
    ...{ id: uuidV7(Date.now(), randomBytes(10)), projectId: far.id, account: parsed.account, address: parsed.address },
  });
  const ids = [];
  for (const apiKey of [service.project.apiKey, mine.apiKey, foreign.apiKey]) {
    const { body } = await createInvoice(service, { apiKey, body: { externalId: 'everywhere-1' } });
    ids.push(body.invoiceId);
  }
  const find = (q: string, more = '') => console_.get(`/find?q=${encodeURIComponent(q)}${more}`, { 'x-actor': 'olga' });
  const short = (whole: string) => `${whole.slice(0, 5)}…${whole.slice(-5)}`;
  const found = (await find('everywhere-1')).text;
  expect(ids.map((id) => found.includes(`href="/invoices/${id}"`))).toEqual([true, true, false]);
  for (const q of [address, short(address)]) {
    const { text } = await find(q);
    for (const { projectId } of [mine, far]) expect(text, q).toContain(`&amp;in=${projectId}"`);
  }
  expect((await find(address, `&in=${far.projectId}`)).text).toContain(' on nile');
  expect((await find(address, `&in=${foreign.projectId}`)).status).toBe(404);
  expect((await find(short(foreign.addresses[0] ?? ''))).status).toBe(404);
  const { rows } = await withOwner(service, (client) =>
    client.query<{ from_address: string }>('select from_address from transfers where project_id = $1 limit 1', [
      service.project.id,
    ]),
  );
  const sender = rows[0]?.from_address ?? '';
  for (const q of [sender, short(sender)]) expect((await find(q)).text, q).toContain('<h1>Address</h1>');
  expect((await find(open)).headers.get('location')).toBe(`/unmatched/${open}`);
});

test('an amount finds invoices and waiting transfers, however it is written; what is nowhere keeps the box and the menu', async () => {
  const find = async (q: string) => console_.get(`/find?q=${encodeURIComponent(q)}`);
  const made = [
    await newInvoice(console_.service, 'of-33-a', '33.00'),
    await newInvoice(console_.service, 'of-33-b', '33.00'),
  ];
  for (const q of ['33,00', '$33', '33 USDT', '33', '３３．０', 'of-33']) {
    const { status, text } = await find(q);
    const isThere = made.map(({ invoiceId }) => text.includes(`/invoices/${invoiceId}`));
    expect([status, ...isThere], q).toEqual([200, true, true]);
  }
  const waits = formatAmount(microUsdt(short.amountMicro - 1_000_000n));
  for (const q of [waits, waits.slice(0, -2)]) expect((await find(q)).text, q).toContain('pays no invoice');
  const unknown = await find('no such order');
  expect(unknown.status).toBe(404);
  expect((await console_.get('/nowhere')).text).toContain('role="search"');
  expect([unknown.text.includes('role="search"'), unknown.text.includes('aria-label="Screens"')]).toEqual([true, true]);
});

test('an invoice’s page tells what happened and leads to its payer’s page and receipt; it offers no way to mark as paid or to delete', async () => {
  const { text } = await console_.get(`/invoices/${paid.invoiceId}`);
  for (const told of ['order-1 has been PAID', 'Open as the payer', '/receipt', 'Copy for support', 'Send again'])
    expect(text).toContain(told);
  const actions = [...text.matchAll(/<form [^>]*action="([^"]+)"/g)].map(([, action]) => action);
  expect(new Set(actions)).toEqual(new Set(['/find', `/invoices/${paid.invoiceId}/replay`, '/sign-out']));
  const support = /<textarea[^>]*>([^<]*)</.exec(text)?.[1] ?? '';
  expect(support).toContain('(order) has been PAID');
  for (const secret of [paid.address, paid.invoiceId, 'order-1', 'http://', 'https://'])
    expect(support).not.toContain(secret);
  expect(support).not.toMatch(/[0-9a-f]{64}/);
});

const WRONG: [path: string, status: number, says: string][] = [
  ['/invoices?status=odd', 400, 'choose PENDING, CONFIRMING, EXPIRED, PAID'],
  ['/invoices?status=PAID&status=PAID', 400, 'was sent 2 times'],
  ['/invoices?amount=1e3', 400, 'must not have an exponent'],
  ['/invoices?amount=%3Cb%3E', 400, '&lt;b&gt;'],
  ['/invoices?from=2026-02-30', 400, 'use a day'],
  ['/invoices?from=2026-09-02&to=2026-09-01', 400, 'use an earlier'],
  ['/invoices?policy[]=tail', 400, 'is not a field of this form'],
  ['/invoices?before=inv_1', 400, 'an invoice id is'],
  ['/invoices?before=%00', 400, 'cannot be stored'],
  ['/invoices?from=%E2%80%AE', 400, 'use a day'],
  [`/invoices?amount=${'9'.repeat(5000)}`, 400, 'too many'],
  ['/invoices?project=prj_00000000000000000000000000', 404, 'does not exist, or you do not have access to it'],
  ['/invoices?project=%F0%9F%A7%BE', 404, 'does not exist, or you do not have access to it'],
  ['/invoices/inv_00000000000000000000000000', 404, 'inv_00000000000000000000000000'],
  ['/invoices/order-1', 404, 'does not exist, or you do not have access to it'],
  ['/invoices/%00', 404, ''],
  ['/unmatched?state=maybe', 400, 'choose open, resolved, all'],
  ['/unmatched?before=inv_1', 400, 'is not a transfer id'],
  ['/unmatched/trf_00000000000000000000000000', 404, 'does not exist, or you do not have access to it'],
  ['/unmatched/trf_x', 404, 'does not exist, or you do not have access to it'],
  [`/unmatched/${'ab'.repeat(32)}`, 404, 'does not exist, or you do not have access to it'],
  ['/find', 404, 'nothing matches'],
  ['/find?q=%3Cscript%3E', 404, '&lt;script&gt;'],
  ['/find?q=%00', 400, 'cannot be stored'],
  ['/nowhere', 404, 'There is no page at /nowhere'],
  ['/?odd=1', 400, 'is not a field of this form'],
];

test.each(WRONG.map((each) => [each[0].slice(0, 60), ...each] as const))(
  '%s answers as wrong as it is',
  async (_name, path, status, says) => {
    const reply = await console_.get(path);
    expect(reply.status).toBe(status);
    expect(reply.text).toContain(says);
    expectHarmless(reply);
    expect(reply.headers.get('content-type')).toBe('text/html; charset=utf-8');
  },
);

test('what stands in a project that a person may not see is as unknown to that person, on every page', async () => {
  const { service } = console_;
  const other = await createTestProject(service.db);
  console_.actors['guest'] = actorNamed('Guest', { projects: [other.id] });
  const as = { 'x-actor': 'guest' };
  for (const path of [
    `/invoices/${paid.invoiceId}`,
    `/unmatched/${open}`,
    `/find?q=${paid.address}`,
    '/find?q=order-1',
    `/invoices?project=${service.project.projectId}`,
    `/invoices.csv?project=${service.project.projectId}`,
  ]) {
    expect((await console_.get(path, as)).status, path).toBe(404);
  }
  const list = await console_.get('/invoices', as);
  expect(list.text).toContain('No invoices yet');
  const token = tokenIn(await console_.get(`/unmatched/${open}`), `/unmatched/${open}`);
  expect(
    (await console_.post(`/unmatched/${open}`, { token, resolution: 'ignored', seenAt: 'never' }, as)).status,
  ).toBe(404);
  expect((await console_.post(`/invoices/${paid.invoiceId}/replay`, { token: 'x', event: 'evt_x' }, as)).status).toBe(
    404,
  );
});

test('what was paid is the same on Today, in the export of invoices, and in the ledger’s export', async () => {
  const { service } = console_;
  const { projectId } = service.project;
  const lines = (await console_.get('/invoices.csv?status=PAID')).text.trimEnd().split('\r\n');
  const at = lines[0]?.split(',').indexOf('payableAmount') ?? -1;
  const exported = lines.slice(1).reduce((sum, line) => sum + BigInt((line.split(',')[at] ?? '').replace('.', '')), 0n);
  let ledger = 0n;
  const selection = readSelection({ direction: 'in', kind: 'matched' });
  for await (const rows of await exportTransfers(service, commandActor('test'), { projectId, ...selection })) {
    for (const { transfer } of rows) ledger += transfer.amountMicro;
  }
  expect(exported).toBe(ledger);
  expect(lines.length - 1).toBeGreaterThan(30);
  const shown = (await console_.get('/')).text.replace(/<[^>]+>/g, '').replaceAll(',', '');
  expect(shown).toContain(formatAmount(microUsdt(ledger)).replace(/0+$/, ''));
});

test('a cell of an export that begins like a formula is text to a spreadsheet program', async () => {
  const reply = await console_.get('/invoices.csv');
  expect(reply.headers.get('content-disposition')).toContain('attachment');
  expect(reply.text).toContain(`"'${FORMULA.replaceAll('"', '""').replace(';', ';')}"`);
  expect(reply.text).toContain(RTL);
});

test('an invoice made by hand has its link and QR code, is of the API’s kind, and its maker stands in the audit log and on its page', async () => {
  const { service } = console_;
  const page = await console_.get('/invoices/new');
  const token = tokenIn(page, '/invoices/new');
  const { projectId } = service.project;
  const form = { token, project: projectId, amount: '12.50', externalId: 'table 4', note: 'asked by phone' };
  const made = await console_.post('/invoices/new', form);
  expect(made.status).toBe(200);
  expect(made.text).toContain('aria-label="QR code for the link"');
  const invoiceId = /\/invoices\/(inv_[0-9a-z]{26})/.exec(made.text)?.[1] ?? '';
  expect((await untilStatus(service, invoiceId, 'PENDING')).externalId).toBe('table 4');
  const { data } = await listAudit.run(service, commandActor('test'), readAuditFilter({ action: 'invoice.created' }));
  expect(data[0]).toMatchObject({
    actor: { kind: 'console', name: 'Ana' },
    subject: invoiceId,
    detail: { note: 'asked by phone', requestedAmount: '12.500000' },
  });
  expect((await console_.get(`/invoices/${invoiceId}`)).text).toContain('Ana created the invoice by hand');
  const again = await console_.post('/invoices/new', {
    ...form,
    token: tokenIn(await console_.get('/invoices/new'), '/invoices/new'),
  });
  expect(again.status).toBe(409);
  expect(again.text).toContain(`already has an invoice: ${invoiceId}`);
});

test('an invoice is withdrawn by a button: its page says so, its maker stands in the audit log, and a paid one has none', async () => {
  const { service } = console_;
  const made = await newInvoice(service, 'to withdraw');
  const path = `/invoices/${made.invoiceId}/withdraw`;
  const button = `href="${path}"`;
  expect((await console_.get(`/invoices/${made.invoiceId}`)).text).toContain(button);
  expect((await console_.get(`/invoices/${made.invoiceId}`, { 'x-actor': 'vera' })).text).not.toContain(button);
  const sent = await console_.post(path, { token: tokenIn(await console_.get(path), path) });
  expect([sent.status, sent.headers.get('location')]).toEqual([303, `/invoices/${made.invoiceId}?withdrawn=1`]);
  const after = await console_.get(`/invoices/${made.invoiceId}?withdrawn=1`);
  expect(after.text).toContain('The invoice is withdrawn.');
  expect(after.text).not.toContain(button);
  const headers = { 'X-Api-Key': service.project.apiKey };
  const read = await fetch(`${service.url}/v1/invoices/${made.invoiceId}?expand=payment`, { headers });
  expect(await read.text()).toContain('"withdrawnAt":"20');
  await console_.post(path, { token: tokenIn(await console_.get(path), path) });
  const { data } = await listAudit.run(service, commandActor('test'), readAuditFilter({ action: 'invoice.withdrawn' }));
  expect(data.map(({ actor, subject }) => [actor.name, subject])).toEqual([['Ana', made.invoiceId]]);

  expect((await console_.get(`/invoices/${paid.invoiceId}`)).text).not.toContain('/withdraw"');
  const ofPaid = `/invoices/${paid.invoiceId}/withdraw`;
  const refused = await console_.post(ofPaid, { token: tokenIn(await console_.get(ofPaid), ofPaid) });
  expect([refused.status, refused.text.includes('the invoice is PAID')]).toEqual([409, true]);
});

test('a wrong field of a form is told beside the form, which keeps what was filled in', async () => {
  const cases: [Record<string, string>, string][] = [
    [{ amount: '0' }, 'must be greater than 0'],
    [{ amount: 'ten' }, 'must contain only the digits'],
    [{ externalId: '' }, 'has 0 characters'],
    [{ externalId: '🧾'.repeat(201) }, 'has 201 characters'],
    [{ note: 'a\nb' }, 'control character'],
    [{ note: `priv key ${'ab'.repeat(32)}` }, 'looks like a private key'],
  ];
  for (const [wrong, says] of cases) {
    const token = tokenIn(await console_.get('/invoices/new'), '/invoices/new');
    const reply = await console_.post('/invoices/new', { token, amount: '3', externalId: HTML, ...wrong });
    expect([reply.status, says, reply.text.includes(says)]).toEqual([400, says, true]);
    expectHarmless(reply);
  }
  expect((await console_.post('/invoices/new', 'odd=1')).status).toBe(400);
  expect((await console_.post('/invoices/new', '{}', { 'content-type': 'application/json' })).status).toBe(400);
  expect((await console_.post('/invoices/new', `note=${'x'.repeat(70_000)}`)).status).toBe(413);
});

test('the page of an invoice shows its price beside the requested amount, and the rate in its details', async () => {
  const { service } = console_;
  await addTestAdapter(service, 'price');
  const price = { amount: '180', currency: 'CNY' };
  const { body } = await createInvoice(service, { body: { amount: undefined, price, externalId: 'priced' } });
  const reply = await console_.get(`/invoices/${body.invoiceId}`);
  expect(reply.text).toContain('USDT for <bdi>180.00 CNY</bdi>');
  expect(reply.text).toContain('180.00 CNY at 7.20 CNY for 1 USDT, a fixed rate');
  expectHarmless(reply);
  expect((await console_.get(`/invoices/${paid.invoiceId}`)).text).not.toMatch(/"hint">USDT for|<dt>price/);
});
