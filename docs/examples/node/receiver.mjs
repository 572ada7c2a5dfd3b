// A shop that accepts USDT through Quittance. Node 20 or newer, no dependencies: node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const { QUITTANCE_URL, QUITTANCE_API_KEY, PORT = '3000' } = process.env;
const KEY = decodeSecret(process.env.QUITTANCE_WEBHOOK_SECRET ?? '');
const MAX_BODY_BYTES = 64 * 1024; // a webhook has less than 20 KB

const server = createServer(async (request, response) => {
  const { status, body } = await route(request).catch((error) => {
    console.error(error.message);
    return { status: 500, body: { error: 'internal' } }; // Quittance sends the webhook again
  });
  if (status === 413) response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body));
});
server.requestTimeout = 15_000;
server.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));

async function route(request) {
  const { method, url } = request;
  const body = await readBody(request);
  if (body === null) return { status: 413, body: { error: 'too large' } };
  if (method === 'POST' && url === '/hooks/quittance') return receiveWebhook(request.headersDistinct, body);
  // In your shop, both require a login, and the amount comes from your catalogue, never from the browser.
  if (method === 'POST' && url === '/orders') return placeOrder(parseJson(body));
  if (method === 'GET' && url.startsWith('/orders/')) return showOrder(url.slice('/orders/'.length));
  return { status: 404, body: { error: 'not found' } };
}

// --- Creating an invoice

async function placeOrder(order) {
  const { externalId, amount } = order ?? {};
  if (!isOrderId(externalId) || typeof amount !== 'string') {
    return { status: 400, body: { error: 'externalId must be 1 to 64 of A-Z a-z 0-9 _ -, and amount a text' } };
  }
  // Stored before Quittance is asked. The order's id is also the idempotency key: asking again finds the same invoice.
  if (!store.addOrder(externalId, amount) && store.findOrder(externalId).amount !== amount) {
    return { status: 409, body: { error: 'there is such an order with another amount' } };
  }
  const { invoiceId, checkoutUrl } = await createInvoice(externalId, amount);
  return { status: 201, body: { invoiceId, checkoutUrl } };
}

async function createInvoice(externalId, amount) {
  const headers = { 'content-type': 'application/json', 'idempotency-key': externalId };
  const body = JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId });
  for (const pauseMs of [500, 1_000, 2_000, null]) {
    // No answer, 429 and 5xx: the same key and the same bytes again, which never makes a second invoice.
    const response = await askQuittance('/v1/invoices', { method: 'POST', headers, body }).catch(() => null);
    if (response?.status === 201) return response.json();
    const isTransient = response === null || response.status === 429 || response.status >= 500;
    if (!isTransient || pauseMs === null) throw await refusal(response);
    const retryAfterMs = Number(response?.headers.get('retry-after')) * 1000 || 0;
    await sleep(Math.min(Math.max(pauseMs, retryAfterMs), 5_000));
  }
}

function askQuittance(path, { headers, ...options } = {}) {
  return fetch(QUITTANCE_URL + path, {
    ...options,
    headers: { ...headers, 'x-api-key': QUITTANCE_API_KEY },
    redirect: 'error', // the key goes to no other place
    signal: AbortSignal.timeout(5_000),
  });
}

async function refusal(response) {
  const problem = (await response?.json().catch(() => null)) ?? {};
  return new Error(`Quittance: ${problem.code ?? 'no answer'} ${problem.detail ?? ''} ${problem.requestId ?? ''}`);
}

// --- Receiving a webhook

async function receiveWebhook(headers, body) {
  const eventId = verify(body, headers);
  if (eventId === null) return { status: 400, body: { error: 'not a genuine webhook' } };
  if (store.wasHandled(eventId)) return { status: 204 };
  const event = parseJson(body);
  // Every other type is answered with 2xx too, also one that is not known yet.
  if (event.type === 'invoice.paid') await settle(event.data.invoiceId);
  store.markHandled(eventId);
  return { status: 204 };
}

/** The event is a hint; what counts is what Quittance says now. Throws if it cannot be asked, so that the event comes again. */
async function settle(invoiceId) {
  const response = await askQuittance(`/v1/invoices/${encodeURIComponent(invoiceId)}`);
  if (response.status !== 200) throw await refusal(response);
  const invoice = await response.json();
  const order = store.findOrder(invoice.externalId);
  if (order === null || invoice.status !== 'PAID') return;
  // Only what is quick, for the answer must come within 15 s: mails and parcels are for a job that takes the paid orders.
  if (store.markPaid(order.externalId)) store.fulfil(order.externalId);
}

/** The event's id if the request is genuine, else null. `body`: the raw bytes; `headers`: every value of each header. */
function verify(body, headers) {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  const [id, timestamp, signatures] = names.map((name) => (headers[name]?.length === 1 ? headers[name][0] : ''));
  if (!/^[A-Za-z0-9_-]{1,255}$/.test(id) || !/^[1-9][0-9]{0,11}$/.test(timestamp)) return null;
  if (!/^v[0-9a-z]+,[A-Za-z0-9+/=]+( v[0-9a-z]+,[A-Za-z0-9+/=]+){0,15}$/.test(signatures)) return null;
  if (Math.abs(Math.floor(Date.now() / 1000) - Number(timestamp)) > 300) return null;
  const mac = createHmac('sha256', KEY).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const expected = Buffer.from(`v1,${mac}`);
  const isGenuine = signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  return isGenuine ? id : null;
}

function decodeSecret(secret) {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  // Node skips what is not base64, so the text is made again and compared.
  if (`whsec_${key.toString('base64')}` === secret && key.length >= 24 && key.length <= 64) return key;
  throw new Error('QUITTANCE_WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes');
}

/** The raw bytes; null if there are too many. */
async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJson(bytes) {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}

function showOrder(externalId) {
  if (store.findOrder(externalId) === null) return { status: 404, body: { error: 'no such order' } };
  const fulfilments = store.countFulfilments(externalId);
  return { status: 200, body: { state: fulfilments === null ? 'waiting' : 'paid', fulfilments: fulfilments ?? 0 } };
}

// --- Replace by your database. Files stand for its rows: creating one that exists fails, as inserting a known key does.
//   create table orders (external_id text primary key, amount text not null, state text not null default 'waiting');
//   create table handled_events (id text primary key);

for (const table of ['orders', 'paid', 'handled']) mkdirSync(`store/${table}`, { recursive: true });

const store = {
  // insert into orders (external_id, amount) values ($1, $2) on conflict do nothing returning external_id
  addOrder: (externalId, amount) => insert(`store/orders/${externalId}`, amount),
  // select external_id, amount from orders where external_id = $1
  findOrder: (externalId) => {
    const amount = isOrderId(externalId) ? read(`store/orders/${externalId}`) : null;
    return amount === null ? null : { externalId, amount };
  },
  // select 1 from handled_events where id = $1
  wasHandled: (eventId) => read(`store/handled/${eventId}`) !== null,
  // The next two are one transaction in SQL, which ends where no row is returned:
  //   insert into handled_events (id) values ($1) on conflict do nothing returning id;
  //   update orders set state = 'paid' where external_id = $2 and state = 'waiting' returning external_id;
  markPaid: (externalId) => insert(`store/paid/${externalId}`, ''), // true for one caller only, however many come at once
  markHandled: (eventId) => insert(`store/handled/${eventId}`, ''),
  // What you sell. A line each time, so that one can see that it was once.
  fulfil: (externalId) => appendFileSync(`store/paid/${externalId}`, 'fulfilled\n'),
  countFulfilments: (externalId) => read(`store/paid/${externalId}`)?.match(/\n/g)?.length ?? null,
};

function insert(path, text) {
  try {
    writeFileSync(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

/** Such ids are also safe as the names of files. */
function isOrderId(value) {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(value);
}
