import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import pg from 'pg';

/**
 * The baselines: Fastify with a pool of the service's size and one prepared statement per request, on the service's own table with all its
 * constraints, or on a plain table. They skip authentication, checks and allocation, so they show the minimum that any server needs.
 */
const { BENCH_DATABASE = '{}', BENCH_PROJECT = '', BENCH_ADDRESSES = '[]', BENCH_POOL = '10' } = process.env;
const { BENCH_TABLE = 'invoices' } = process.env;
const addressIds = JSON.parse(BENCH_ADDRESSES) as string[];

const INSERT = `insert into ${BENCH_TABLE} (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
    payable_micro, checkout_token, created_at, expires_at)
  values (uuidv7(), $1, 'devnet', $2, $3, $4, $5, $6, $7, now(), now() + interval '30 minutes')
  returning id, external_id, status, checkout_token, expires_at`;

const SELECT = `select id, external_id, status, checkout_token, expires_at from ${BENCH_TABLE} where project_id = $1 and id = $2`;

type InvoiceRow = { id: string; external_id: string; status: string; checkout_token: string; expires_at: Date };

const text = { type: 'string' } as const;
const answer = {
  type: 'object',
  properties: { invoiceId: text, externalId: text, status: text, checkoutToken: text, expiresAt: text },
} as const;

function toAnswer({ id, external_id, status, checkout_token, expires_at }: InvoiceRow) {
  const expiresAt = expires_at.toISOString();
  return { invoiceId: id, externalId: external_id, status, checkoutToken: checkout_token, expiresAt };
}

const PLACES_PER_CENT = 1000;
const usedPlaces = new Map<number, number>();

/**
 * Stays near the requested amount, so that it uses the same part of the index as the service, and never repeats an amount. Amounts that end
 * in 0 aren't code words, so no invoice of the seed has one.
 */
function nextPlace(requested: number): { addressId: string; payable: number } {
  const used = usedPlaces.get(requested) ?? 0;
  usedPlaces.set(requested, used + 1);
  const addressId = addressIds[Math.floor(used / PLACES_PER_CENT)];
  if (addressId === undefined) throw new Error(`all places of ${requested} are used`);
  return { addressId, payable: requested + (used % PLACES_PER_CENT) * 10 };
}

const pool = new pg.Pool({ ...JSON.parse(BENCH_DATABASE), max: Number(BENCH_POOL) });
const app = Fastify({ logger: false });

app.post('/invoices', { schema: { response: { 201: answer } } }, async (request, reply) => {
  const { amount, externalId } = request.body as { amount: string; externalId: string };
  const requested = Math.round(Number(amount) * 1e6);
  const { addressId, payable } = nextPlace(requested);
  const token = randomBytes(16).toString('base64url');
  const values = [BENCH_PROJECT, addressId, request.headers['idempotency-key'], externalId, requested, payable, token];
  const { rows } = await pool.query<InvoiceRow>({ name: 'insert', text: INSERT, values });
  reply.code(201);
  return rows.map(toAnswer)[0];
});

app.get('/invoices/:id', { schema: { response: { 200: answer, 404: answer } } }, async (request, reply) => {
  const { id } = request.params as { id: string };
  const { rows } = await pool.query<InvoiceRow>({ name: 'select', text: SELECT, values: [BENCH_PROJECT, id] });
  if (rows.length === 0) reply.code(404);
  return rows.map(toAnswer)[0];
});

await app.listen({ host: '127.0.0.1', port: 0 });
// This process ends together with the benchmark, however that ends.
process.on('disconnect', () => process.exit());
process.send?.({ url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` });
