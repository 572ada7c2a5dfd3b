// A shop that accepts USDT through Quittance, with the SDK and Express. Node 20 or newer.
// It runs from a folder of its own, with the SDK installed as ../README.md says.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isFulfillable, Quittance } from '@quittance/sdk';
import { quittanceWebhook } from '@quittance/sdk/express';
import express from 'express';

const { QUITTANCE_URL, QUITTANCE_API_KEY, QUITTANCE_WEBHOOK_SECRET, PORT = '3000' } = process.env;
const quittance = new Quittance({ baseUrl: QUITTANCE_URL, apiKey: QUITTANCE_API_KEY });
const app = express();

// Before express.json(), which would eat the raw bytes. It verifies, and answers 204 when the handler is done; if that throws
// it answers 500, and Quittance sends the webhook again.
app.post(
  '/hooks/quittance',
  quittanceWebhook({ secret: QUITTANCE_WEBHOOK_SECRET }, async (event, _request, { signal }) => {
    if (event.type !== 'invoice.paid' || read(`handled/${event.id}`) !== null) return;
    const invoice = await quittance.invoices.get(event.data.invoiceId, { signal });
    const order = findOrder(invoice.externalId);
    // Only what is quick, for the answer must come within 15 s: mails and parcels are for a job that takes the paid orders.
    if (order && isFulfillable(invoice, order.externalId) && insert(`paid/${order.externalId}`))
      fulfil(order.externalId);
    insert(`handled/${event.id}`);
  }),
);
app.use(express.json({ limit: '16kb' }));

// In your shop, both require a login, and the amount comes from your catalogue, never from the browser.
app.post('/orders', async (request, response) => {
  const { externalId, amount } = request.body ?? {};
  if (!isOrderId(externalId) || typeof amount !== 'string') {
    return response.status(400).json({ error: 'externalId must be 1 to 64 of A-Z a-z 0-9 _ -, and amount a text' });
  }
  // Stored before Quittance is asked. The order's id is also the idempotency key: asking again finds the same invoice.
  if (!insert(`orders/${externalId}`, amount) && findOrder(externalId).amount !== amount) {
    return response.status(409).json({ error: 'there is such an order with another amount' });
  }
  const { invoiceId, checkoutUrl } = await quittance.invoices.create(
    { externalId, amount },
    { idempotencyKey: externalId },
  );
  return response.status(201).json({ invoiceId, checkoutUrl });
});

app.get('/orders/:externalId', (request, response) => {
  const order = findOrder(request.params.externalId);
  if (order === null) return response.sendStatus(404);
  const lines = read(`paid/${order.externalId}`);
  return response.json({ state: lines === null ? 'waiting' : 'paid', fulfilments: lines?.match(/\n/g)?.length ?? 0 });
});

// Express's own would show the stack to whoever asks.
app.use((error, _request, response, _next) => {
  console.error(error.message);
  response.status(error.expose === true ? error.status : 500).json({ error: 'failed' });
});

const server = app.listen(Number(PORT), '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

// --- Replace by your database. Files stand for its rows: creating one that exists fails, as inserting a known key does.
//   create table orders (external_id text primary key, amount text not null, state text not null default 'waiting');
//   create table handled_events (id text primary key);
// In SQL, marking the order paid and the event handled is one transaction, which ends where no row is returned:
//   insert into handled_events (id) values ($1) on conflict do nothing returning id;
//   update orders set state = 'paid' where external_id = $2 and state = 'waiting' returning external_id;

for (const table of ['orders', 'paid', 'handled']) mkdirSync(`store/${table}`, { recursive: true });

/** True for one caller only, however many come at once. */
function insert(row, text = '') {
  try {
    writeFileSync(`store/${row}`, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function read(row) {
  return existsSync(`store/${row}`) ? readFileSync(`store/${row}`, 'utf8') : null;
}

/** select external_id, amount from orders where external_id = $1 */
function findOrder(externalId) {
  const amount = isOrderId(externalId) ? read(`orders/${externalId}`) : null;
  return amount === null ? null : { externalId, amount };
}

/** What you sell. A line each time, so that one can see that it was once. */
function fulfil(externalId) {
  appendFileSync(`store/paid/${externalId}`, 'fulfilled\n');
}

/** Such ids are also safe as the names of files. */
function isOrderId(value) {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(value);
}
