import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { showTransfers } from '../../src/faces/operator/subjects/transfers.ts';
import { openTestDatabase } from '../support/postgres.ts';
import { eventually, inboxOf } from '../support/service.ts';
import {
  type Made,
  newInvoice,
  openConsole,
  payInFull,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  unmatchedIds,
} from './console.ts';

let console_: TestConsole;
let invoice: Made;
let transferId: string;
let path: string;

beforeAll(async () => {
  console_ = await startTestConsole();
  invoice = await newInvoice(console_.service, 'order-1');
  await payInFull(console_.service, invoice);
});
afterAll(() => console_.stop());

/** Each test gets a new transfer. */
beforeEach(async () => {
  await send(console_.service, { to: invoice.address, amountMicro: 3_000_000n });
  transferId = encodeId('trf', (await unmatchedIds(console_.service)).at(-1) ?? '');
  path = `/unmatched/${transferId}`;
});

const tokenOf = async (headers = {}) => tokenIn(await console_.get(path, headers), path);

async function resolutions() {
  const { view } = await showTransfers.run(console_.service, commandActor('test'), { reference: transferId });
  return view.data[0]?.resolutions ?? [];
}

test('a decision is recorded with its maker, leaves the queue, and names the refund by which it is found again', async () => {
  const refund = 'CD'.repeat(32);
  const form = {
    token: await tokenOf(),
    resolution: 'refunded',
    refundTx: refund,
    elsewhere: 'yes',
    invoice: 'order-1',
    note: 'wrote to us',
    seenAt: 'never',
  };
  const reply = await console_.post(path, form, { 'x-actor': 'ana' });
  expect([reply.status, reply.headers.get('location')]).toEqual([303, '/unmatched?resolved=1']);
  expect(await resolutions()).toMatchObject([
    {
      resolution: 'refunded',
      resolvedBy: 'Ana',
      note: `refund tx ${refund.toLowerCase()}; wrote to us`,
      invoice: { externalId: 'order-1', status: 'PAID' },
    },
  ]);
  expect((await console_.get('/unmatched')).text).not.toContain(transferId);
  expect((await console_.get('/unmatched?state=resolved')).text).toContain(transferId);
  const { data } = await listAudit.run(
    console_.service,
    commandActor('test'),
    readAuditFilter({ subject: transferId }),
  );
  expect(data).toMatchObject([
    { action: 'transfer.resolved', actor: { kind: 'console', name: 'Ana' }, origin: '192.0.2.7' },
  ]);
});

const FOREIGN: [name: string, headers: Record<string, string>][] = [
  ['of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['of another origin of the same site', { 'sec-fetch-site': 'same-site' }],
  ['typed into the address bar', { 'sec-fetch-site': 'none' }],
  ['of an older browser on another site', { 'sec-fetch-site': '', origin: 'https://evil.example' }],
  ['of a frame without an origin', { 'sec-fetch-site': '', origin: 'null' }],
  ['that contradicts itself', { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }],
  ['that says nothing of where it comes from', { 'sec-fetch-site': '', origin: '' }],
];

test.each(FOREIGN)('a form %s does nothing, even with a right token', async (_name, headers) => {
  const form = { token: await tokenOf(), resolution: 'ignored', seenAt: 'never' };
  const sent = Object.fromEntries(
    Object.entries({ 'sec-fetch-site': 'same-origin', origin: console_.url, ...headers }).filter(
      ([, value]) => value !== '',
    ),
  );
  const response = await fetch(console_.url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'x-actor': 'ana', 'content-type': 'application/x-www-form-urlencoded', ...sent },
    body: new URLSearchParams(form),
  });
  expect(response.status).toBe(403);
  expect(await response.text()).toContain('nothing was changed');
  expect(await resolutions()).toEqual([]);
});

test('an older browser, which says its origin alone, can use the console', async () => {
  const response = await fetch(console_.url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'x-actor': 'ana', origin: console_.url, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token: await tokenOf(), resolution: 'ignored', seenAt: 'never' }),
  });
  expect(response.status).toBe(303);
});

test('a token is taken from the session and for the form that it was made for, once', async () => {
  const form = { resolution: 'ignored', seenAt: 'never' };
  const mine = await tokenOf({ 'x-session': '1' });
  const refusals: [string | undefined, Record<string, string>, string][] = [
    [mine, { 'x-session': '2' }, 'belongs to another session'],
    [mine, { 'x-session': '1', 'x-actor': 'otto' }, 'belongs to another session'],
    [tokenIn(await console_.get('/invoices/new'), '/invoices/new'), {}, 'belongs to another session'],
    [undefined, {}, 'belongs to another session'],
    [`${mine}x`, { 'x-session': '1' }, 'belongs to another session'],
    ['..', {}, 'belongs to another session'],
  ];
  for (const [token, headers, says] of refusals) {
    const reply = await console_.post(path, token === undefined ? form : { ...form, token }, headers);
    expect([reply.status, reply.text.includes(says)]).toEqual([409, true]);
  }
  expect(await resolutions()).toEqual([]);
  expect((await console_.post(path, { ...form, token: mine }, { 'x-session': '1' })).status).toBe(303);
  const replayed = await console_.post(path, { ...form, token: mine }, { 'x-session': '1' });
  expect([replayed.status, replayed.text.includes('was already sent')]).toEqual([409, true]);
  expect(await resolutions()).toHaveLength(1);
});

test('a form that rested for more than twelve hours is refused, and says so', async () => {
  const token = await tokenOf();
  console_.service.clock.advance(13 * 3_600_000);
  const reply = await console_.post(path, { token, resolution: 'ignored', seenAt: 'never' });
  expect([reply.status, reply.text.includes('has expired')]).toEqual([409, true]);
});

test('of two tabs on one transfer the second is told who decided meanwhile, and may decide anew', async () => {
  const [first, second] = [await tokenOf(), await tokenOf({ 'x-actor': 'otto' })];
  expect((await console_.post(path, { token: first, resolution: 'refunded', seenAt: 'never' })).status).toBe(303);
  const late = await console_.post(
    path,
    { token: second, resolution: 'ignored', seenAt: 'never' },
    { 'x-actor': 'otto' },
  );
  expect([late.status, late.text.includes('was resolved by Ana in the meantime')]).toEqual([409, true]);
  const page = await console_.get(path, { 'x-actor': 'otto' });
  const seenAt = /name="seenAt" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const again = { token: tokenIn(page, path), resolution: 'ignored', seenAt };
  expect((await console_.post(path, again, { 'x-actor': 'otto' })).status).toBe(303);
  expect((await resolutions()).map(({ resolution }) => resolution)).toEqual(['refunded', 'kept']);
});

test('two tabs with forms of their own both do their work', async () => {
  const [one, two] = [await console_.get('/invoices/new'), await console_.get('/invoices/new')];
  for (const [page, externalId] of [
    [two, 'tab 2'],
    [one, 'tab 1'],
  ] as const) {
    const form = { token: tokenIn(page, '/invoices/new'), amount: '2', externalId };
    expect((await console_.post('/invoices/new', form)).status).toBe(200);
  }
});

test('a viewer reads and exports; what the role may not is refused with the role that may, by button and by request', async () => {
  const as = { 'x-actor': 'vera' };
  for (const seen of ['/', '/invoices', '/invoices.csv', '/unmatched', path, `/invoices/${invoice.invoiceId}`]) {
    const { status, text } = await console_.get(seen, as);
    expect(status, seen).toBe(200);
    expect(text.replace('<form method="post" action="/sign-out">', ''), seen).not.toContain('method="post"');
  }
  expect((await console_.get(path, as)).text).toContain('only an operator or an owner can resolve');
  const refused = [
    await console_.get('/invoices/new', as),
    await console_.post('/invoices/new', { amount: '1', externalId: 'x' }, as),
    await console_.post(path, { token: await tokenOf(), resolution: 'ignored', seenAt: 'never' }, as),
    await console_.post(`/invoices/${invoice.invoiceId}/replay`, { event: 'evt_x' }, as),
  ];
  for (const { status, text } of refused)
    expect([status, text.includes('Only an operator or an owner can do this')]).toEqual([403, true]);
  expect(await resolutions()).toEqual([]);
  expect((await console_.get('/invoices/new', { 'x-actor': 'otto' })).status).toBe(200);
});

test('wrong fields of a decision are told beside the form, which keeps the note', async () => {
  const cases: [Record<string, string>, number, string][] = [
    [{ resolution: 'paid' }, 400, 'choose refunded, fulfilled-manually, own-deposit, kept'],
    [{ resolution: '' }, 400, 'choose refunded'],
    [{ refundTx: 'abc' }, 400, 'use a TRON transaction id'],
    [{ invoice: 'order-999' }, 400, 'has no invoice'],
    [{ note: '🧾'.repeat(1999) }, 400, 'at most 2000'],
    [{ seenAt: 'yesterday' }, 409, 'in the meantime'],
  ];
  for (const [wrong, status, says] of cases) {
    const note = `<b>kept</b>`;
    const form = {
      token: await tokenOf(),
      resolution: 'refunded',
      refundTx: 'ab'.repeat(32),
      elsewhere: 'yes',
      note,
      seenAt: 'never',
      ...wrong,
    };
    const reply = await console_.post(path, form);
    expect([reply.status, says, reply.text.includes(says)]).toEqual([status, says, true]);
    expect(reply.text).not.toContain('<b>kept');
  }
  expect((await console_.post(path, { token: await tokenOf(), isPaid: 'yes' })).status).toBe(400);
  expect(await resolutions()).toEqual([]);
});

test('an event of an invoice is sent again by one click; an event of another invoice is not its own', async () => {
  const at = `/invoices/${invoice.invoiceId}`;
  const page = await console_.get(at);
  const event = /name="event" value="(evt_[0-9a-z]{26})"/.exec(page.text)?.[1] ?? '';
  const before = (await inboxOf(console_.service, invoice.invoiceId)).length;
  const token = tokenIn(page, `${at}/replay`);
  const reply = await console_.post(`${at}/replay`, { token, event });
  expect([reply.status, reply.headers.get('location')]).toEqual([303, `${at}?sent=1`]);
  await eventually(
    () => inboxOf(console_.service, invoice.invoiceId),
    (events) => events.length > before,
  );
  const other = await newInvoice(console_.service, `other-${transferId}`);
  const foreign = await console_.post(`/invoices/${other.invoiceId}/replay`, { token, event });
  expect([foreign.status, foreign.text.includes('has no event')]).toEqual([409, true]);
  expect((await console_.post(`${at}/replay`, { token, event })).text).toContain('was already sent');
});

test.each([
  [
    new AppError('DATABASE_UNAVAILABLE', 'the database does not respond: gone'),
    503,
    '5',
    'the database does not respond',
  ],
  [new Error('a secret of the program'), 500, null, "The service's log shows the reason"],
])(
  '%s: each page says so in words, names the request, and tells nothing else',
  async (error, status, refresh, says) => {
    const { db } = console_.service;
    const { run } = db;
    db.run = () => Promise.reject(error);
    try {
      const reply = await console_.get('/invoices');
      expect([reply.status, reply.headers.get('refresh'), reply.text.includes(says)]).toEqual([status, refresh, true]);
      expect(reply.text).toContain('Request <code>req_');
      expect(reply.text).not.toContain('secret');
    } finally {
      db.run = run;
    }
  },
);

test('while pages are refused, the log says so once a minute for each reason, with how many they are', async () => {
  const { service } = console_;
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
  const db = openTestDatabase({
    connection: { host: '127.0.0.1', port: 9, user: 'quittance', password: '', database: 'none' },
  });
  let now = service.clock.now();
  const away = await openConsole({ db, now: () => unixMs(now), publicUrl: () => service.url }, { log });
  try {
    for (const path of ['/invoices', '/chain', '/']) expect((await away.get(path)).status).toBe(503);
    now += 60_000;
    expect((await away.get('/')).status).toBe(503);
    const said = lines.map((line) => JSON.parse(line) as { code: string; route: string; requests: number });
    expect(said).toMatchObject([
      { code: 'DATABASE_UNAVAILABLE', route: '/invoices', requests: 1 },
      { code: 'DATABASE_UNAVAILABLE', route: '/', requests: 3 },
    ]);
  } finally {
    await away.stop();
    await db.close();
  }
});
