import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { deliver, forge } from '../examples/forged-webhooks.ts';
import { eventually, type Json } from '../support/service.ts';
import { type PluginSandbox, startPluginSandbox } from './plugin-sandbox.ts';
import { type PhpShop, startPhpShop } from './programs.ts';
import { hasPhp } from './shop/wordpress.ts';

const CLIENT = resolve(import.meta.dirname, '../../plugins/php/Quittance.php');
const VECTORS = resolve(import.meta.dirname, '../../docs/examples/webhook-vectors.json');
const isThere = await hasPhp('curl', 'json', 'hash');
const FIVE = ['checkoutUrl', 'expiresAt', 'externalId', 'invoiceId', 'status'];

describe.skipIf(!isThere)(`the client for PHP${isThere ? '' : ': skipped, php with curl is not installed'}`, () => {
  let folder: string;
  let sandbox: PluginSandbox;
  let shop: PhpShop;
  let secret: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'php-'));
    // When started by root, PostgreSQL runs as another user.
    await chmod(folder, 0o711);
    sandbox = await startPluginSandbox(join(folder, 'quittance'));
    shop = await startPhpShop(folder, { url: sandbox.file.baseUrl, apiKey: sandbox.file.apiKey });
    secret = await sandbox.listenAt(`${shop.url}/hook`);
    // As during a rotation: the other secret is tried too.
    await shop.ask('set', { secrets: [`whsec_${Buffer.alloc(32, 3).toString('base64')}`, secret] });
  });
  afterAll(async () => {
    await shop?.stop();
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const create = async (externalId: string, amount: string) =>
    (await shop.ask('createInvoice', amount, externalId, externalId)).answer;
  const state = () => shop.ask('state');
  const fulfilled = (externalId: string) =>
    eventually(state, (seen) => seen.fulfilled?.[externalId] !== undefined).then((seen) => seen.fulfilled[externalId]);
  const heard = (text: string) => eventually(state, (seen) => seen.heard?.includes(text));

  test('paid: created, read, found, listed, paid, and fulfilled once', async () => {
    const invoice = await create('php-paid', '25.00');
    expect(Object.keys(invoice).sort()).toEqual(FIVE);
    await sandbox.pay('php-paid', 'exact');
    expect(await fulfilled('php-paid')).toBe(1);
    const { answer } = await shop.ask('getInvoice', invoice.invoiceId, true);
    expect(answer).toMatchObject({ status: 'PAID', payment: { requestedAmount: '25.000000' } });
    expect((await shop.ask('findInvoice', 'php-paid')).answer.invoiceId).toBe(invoice.invoiceId);
    expect((await shop.ask('findInvoice', 'nobody')).answer).toBeNull();
    expect((await shop.ask('listInvoices', { status: 'PAID', limit: 1 })).answer.data).toHaveLength(1);
    expect((await shop.ask('withdrawInvoice', invoice.invoiceId)).error).toMatchObject({
      ...{ errorCode: 'INVOICE_PAID', status: 409, requestId: expect.stringMatching(/^req_/) },
    });
  });

  test('late: what is paid after the deadline is fulfilled once', async () => {
    const { invoiceId } = await create('php-late', '26.00');
    await sandbox.pay('php-late', 'late');
    expect(await fulfilled('php-late')).toBe(1);
    expect((await shop.ask('getInvoice', invoiceId, true)).answer.payment.transaction.late).toBe(true);
  });

  test('twice: fulfilled once, and the second payment is listed', async () => {
    const { invoiceId } = await create('php-twice', '27.00');
    const { sent } = await sandbox.pay('php-twice', 'twice');
    await sandbox.strays(sent.map(({ txId }: Json) => txId));
    expect(await fulfilled('php-twice')).toBe(1);
    const { data } = (await shop.ask('listTransfers', { kind: 'duplicate', limit: 100 })).answer;
    expect(data.at(-1).invoice.invoiceId).toBe(invoiceId);
  });

  test('short: fulfils nothing, and the reason can be read', async () => {
    const { invoiceId } = await create('php-short', '28.00');
    const { sent } = await sandbox.pay('php-short', 'short');
    await heard(`transfer.unmatched ${sent[0].txId}`);
    const { data } = (await shop.ask('listTransfers', { kind: 'unmatched', limit: 100 })).answer;
    expect(data.at(-1).nearestInvoice.invoiceId).toBe(invoiceId);
    expect((await state()).fulfilled['php-short']).toBeUndefined();
  });

  test('expired: heard of, and fulfils nothing', async () => {
    const { invoiceId } = await create('php-expired', '29.00');
    await sandbox.advance(86_400);
    await heard('invoice.expired php-expired');
    expect((await shop.ask('getInvoice', invoiceId)).answer.status).toBe('EXPIRED');
    expect((await shop.ask('withdrawInvoice', invoiceId)).answer).toHaveProperty('withdrawnAt');
    expect((await state()).fulfilled['php-expired']).toBeUndefined();
  });

  test('orphaned: it confirms, waits again, and fulfils nothing', async () => {
    await create('php-orphaned', '30.00');
    await sandbox.pay('php-orphaned', 'orphaned');
    await heard('invoice.confirming php-orphaned');
    const { fulfilled: done } = await heard('invoice.pending php-orphaned');
    expect(done['php-orphaned']).toBeUndefined();
  });

  test('webhook lost: the feed after the last event that is known has it', async () => {
    const { latest } = (await shop.ask('listEvents', { limit: 1 })).answer;
    await shop.ask('set', { isDeaf: true, after: latest });
    await create('php-lost', '31.00');
    await sandbox.pay('php-lost', 'exact');
    await sandbox.until('php-lost', 'PAID');
    expect((await state()).fulfilled['php-lost']).toBeUndefined();
    await shop.ask('catchUp');
    await shop.ask('catchUp');
    expect(await fulfilled('php-lost')).toBe(1);
    await shop.ask('set', { isDeaf: false });
  });

  test('webhook forged: refused, and nothing changes; the vectors of all languages are judged as they say', async () => {
    const before = await state();
    const [event] = (await sandbox.get('/v1/events?limit=1&types=invoice.paid')).data;
    const lie = { ...event, id: 'evt_lie' };
    for (const [name, { headers, body }] of Object.entries(forge(lie, secret))) {
      if (Object.values(headers).some(Array.isArray)) continue;
      const { status } = await fetch(`${shop.url}/hook`, { method: 'POST', headers: texts(headers), body });
      expect({ name, status }).toEqual({ name, status: 400 });
    }
    expect(await state()).toEqual(before);
    const { headers, body } = deliver(lie, secret);
    expect((await fetch(`${shop.url}/hook`, { method: 'POST', headers: texts(headers), body })).status).toBe(204);
    const code = `require '${CLIENT}'; foreach (json_decode(file_get_contents('${VECTORS}'), true) as $v) { $got = null;
      try { Quittance\\Webhook::verify(base64_decode($v['bodyBase64']), $v['headers'], $v['secret'], ['now' => $v['now']]); }
      catch (Quittance\\WebhookException $e) { $got = $e->errorCode; } $all[] = [$v['name'], $got]; } echo json_encode($all);`;
    const { stdout } = await promisify(execFile)('php', ['-r', code]);
    const vectors = JSON.parse(await readFile(VECTORS, 'utf8'));
    expect(JSON.parse(stdout)).toEqual(vectors.map(({ name, refused }: Json) => [name, refused]));
  });

  test('double click: six at once get one invoice; other input for the same key says what differs', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => create('php-double', '33.00')));
    expect(new Set(made.map(({ invoiceId }) => invoiceId)).size).toBe(1);
    const { error } = await shop.ask('createInvoice', '34.00', 'php-double', 'php-double');
    expect(error).toMatchObject({
      ...{ errorCode: 'IDEMPOTENCY_CONFLICT', conflict: 'idempotencyKey', invoiceId: made[0].invoiceId },
    });
  });

  test('refund: the event tells that it was sent back', async () => {
    await create('php-refund', '35.00');
    const { sent } = await sandbox.pay('php-refund', 'twice');
    const [stray] = await sandbox.strays(sent.map(({ txId }: Json) => txId));
    const txId = await sandbox.refund(stray);
    await heard(`transfer.refunded ${stray.txId}`);
    const { data } = (await shop.ask('listTransfers', { kind: 'duplicate', limit: 100 })).answer;
    expect(data.find(({ transferId }: Json) => transferId === stray.transferId).refund.txId).toBe(txId);
  });

  test('what an invoice is for, how long it waits and whatever is noted with it is sent and read', async () => {
    const options = {
      ...{ description: 'Zwei Karten ₮', returnUrl: 'http://localhost:3000/{invoiceId}', expiresInSeconds: 600 },
      metadata: { cart: 'c-17', 7: 'seven' },
    };
    const { answer } = await shop.ask('createInvoice', '41.00', 'php-options', 'php-options', options);
    expect(Date.parse(answer.expiresAt)).toBeLessThan(Date.now() + 700_000);
    const read = async (...expand: unknown[]) => (await shop.ask('getInvoice', answer.invoiceId, ...expand)).answer;
    expect(await read(['payment', 'metadata'])).toMatchObject({
      ...{ description: options.description, returnUrl: options.returnUrl, metadata: options.metadata },
      payment: { requestedAmount: '41.000000' },
    });
    expect(Object.keys(await read()).sort()).toEqual(FIVE);
    expect(await read('metadata')).not.toHaveProperty('payment');
    expect(await shop.ask('createInvoice', '41.00', 'php-none', 'php-none', { metadata: {} })).toHaveProperty('answer');
    for (const wrong of [{ colour: 'red' }, { expiresInSeconds: '600' }, { metadata: { a: 1 } }, { description: 7 }]) {
      expect(await shop.ask('createInvoice', '41.00', 'php-wrong', 'php-wrong', wrong)).toHaveProperty('refused');
    }
    expect((await shop.ask('getInvoice', answer.invoiceId, 'all')).refused).toBe(
      'expand must be payment, metadata or both',
    );
    const tooShort = await shop.ask('createInvoice', '41.00', 'php-short-life', 'php-short-life', {
      expiresInSeconds: 1,
    });
    expect(tooShort.error.errors).toMatchObject([{ field: 'expiresInSeconds', code: 'OUT_OF_RANGE' }]);
  });

  test('endpoints are made, tested, changed, rotated, disabled and enabled', async () => {
    // The key of a project created for one test has every scope.
    const { apiKey } = await sandbox.makeProject();
    const ask = (method: string, ...parameters: unknown[]) => shop.ask('withKey', apiKey, method, ...parameters);
    const made = (await ask('createEndpoint', `${shop.url}/hook?second`, { events: ['ping'] })).answer;
    const id = made.endpointId;
    const { secrets } = await state();
    await shop.ask('set', { secrets: [...secrets, made.secret] });
    expect((await ask('testEndpoint', id)).answer).toMatchObject({ isDelivered: true, status: 204 });
    expect((await ask('updateEndpoint', id, { description: 'second' })).answer.description).toBe('second');
    const rotated = (await ask('rotateEndpointSecret', id, { overlap: '0' })).answer;
    expect([/^whsec_/.test(rotated.secret), rotated.secret === made.secret]).toEqual([true, false]);
    expect((await ask('disableEndpoint', id, 'moves house')).answer.status).toBe('disabled');
    expect((await ask('disableEndpoint', id)).error.errorCode).toBe('ENDPOINT_CONFLICT');
    expect((await ask('enableEndpoint', id)).answer.status).toBe('active');
    expect((await ask('getEndpoint', id)).answer.eventTypes).toEqual(['ping']);
    expect((await ask('listEndpoints')).answer.map(({ endpointId }: Json) => endpointId)).toContain(id);
    await ask('disableEndpoint', id);
    expect(await ask('getEndpoint', 'whe_../keys')).toHaveProperty('refused');
    expect(await ask('createEndpoint', shop.url, { secrets: 'x' })).toHaveProperty('refused');
  });

  test('a price in a currency without a rate is refused with its field, and a wrong one is not sent', async () => {
    const ask = (...parameters: unknown[]) =>
      shop.ask('createInvoiceForPrice', ...parameters, 'php-price', 'php-price');
    expect((await ask('19.99', 'EUR')).error.errors).toMatchObject([{ field: 'price.currency', code: 'NO_RATE' }]);
    expect((await ask('19.9999999', 'EUR')).refused).toBe('amount has too many decimals: at most 6');
  });

  test('a page of the feed waits for the next event', async () => {
    const { latest } = (await shop.ask('listEvents', { limit: 1 })).answer;
    await create('php-waited', '42.00');
    // PHP's server may hold up other requests behind a waiting one.
    const waiting = shop.ask('listEvents', { after: latest, types: 'invoice.paid', wait: 30 });
    await sandbox.pay('php-waited', 'exact');
    expect((await waiting).answer.data).toMatchObject([{ type: 'invoice.paid', data: { externalId: 'php-waited' } }]);
    expect(await shop.ask('listEvents', { wait: 31 })).toHaveProperty('refused');
  });

  test('wrong arguments are refused before anything is sent', async () => {
    expect((await shop.ask('createInvoice', '25.0000001', 'a', 'a')).refused).toBe(
      'amount has too many decimals: at most 6',
    );
    for (const [amount, externalId, key] of [
      ...[
        ['25.0000001', 'a', 'a'],
        ['-1', 'a', 'a'],
        ['0.00', 'a', 'a'],
        ['1e3', 'a', 'a'],
        ['25\n', 'a', 'a'],
      ],
      ...[
        ['25', '', 'a'],
        ['25', 'x'.repeat(201), 'a'],
        ['25', 'a', 'two words'],
        ['25', 'a', 'a\r\nX-Evil: 1'],
      ],
    ]) {
      expect(await shop.ask('createInvoice', amount, externalId, key)).toHaveProperty('refused');
    }
    const at = (url: string) => shop.ask('createAt', url, {}, '25.00', 'a', 'a');
    for (const url of ['http://pay.example.com', 'ftp://pay.example.com', 'https://u:p@pay.example.com', '']) {
      expect(await at(url)).toHaveProperty('refused');
    }
  });

  test('no redirect is followed, 503 is tried again with the same bytes, patience and size have bounds', async () => {
    const asked: string[] = [];
    const answers: ((response: ServerResponse) => void)[] = [];
    const server = createServer(async (request: IncomingMessage, response) => {
      const body = await new Response(request as unknown as ReadableStream).text();
      asked.push(`${request.url} ${request.headers['idempotency-key']} ${body}`);
      (answers.shift() ?? ((end) => end.end()))(response);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const url = `http://127.0.0.1:${port}`;
    const at = (options = {}) => shop.ask('createAt', url, options, '25.00', 'ord', 'key-1');
    const invoice = { invoiceId: 'inv_12345', externalId: 'ord', status: 'PENDING', expiresAt: '2026-11-28T00:00:00Z' };

    answers.push((end) => end.writeHead(307, { location: `${url}/elsewhere` }).end());
    expect((await at()).error).toMatchObject({ errorCode: 'UNEXPECTED_ANSWER', status: 307 });
    expect(asked.splice(0)).toHaveLength(1);

    answers.push(
      (end) => end.writeHead(503, { 'retry-after': '1' }).end('{"code":"UNAVAILABLE"}'),
      (end) => end.destroy(),
      (end) => end.writeHead(201).end(JSON.stringify({ ...invoice, checkoutUrl: `${url}/c/x` })),
    );
    expect((await at()).answer.invoiceId).toBe('inv_12345');
    expect(new Set(asked).size).toBe(1);
    expect(asked.splice(0)).toHaveLength(3);

    answers.push((end) => end.writeHead(429, { 'retry-after': '3600' }).end('{"code":"TOO_MANY_UNPAID"}'));
    expect((await at()).error).toMatchObject({ errorCode: 'TOO_MANY_UNPAID', retryAfter: 3600 });
    expect(asked.splice(0)).toHaveLength(1);

    answers.push((end) =>
      end.writeHead(201).end(JSON.stringify({ ...invoice, externalId: 'other', checkoutUrl: url })),
    );
    expect((await at()).error.errorCode).toBe('UNEXPECTED_ANSWER');
    answers.push((end) => end.writeHead(201).end('x'.repeat(5 * 1024 * 1024)));
    expect((await at()).error.errorCode).toBe('ANSWER_TOO_LARGE');
    answers.push(() => {});
    expect((await at({ timeoutSeconds: 1, maxRetries: 0 })).error.errorCode).toBe('TIMEOUT');
  });
});

function texts(headers: Record<string, string | string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
