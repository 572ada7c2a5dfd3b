import { randomBytes, randomInt } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { INVOICES_CHANNEL } from '../../src/core/store/ledger/checkout.ts';
import { renderExample } from '../../src/faces/checkout/page/page.ts';
import type { ConsoleDeps } from '../../src/faces/console/page/routes.ts';
import { registerConsole } from '../../src/faces/console/register.ts';
import { addSignInRoutes } from '../../src/faces/console/sign-in/sign-in-routes.ts';
import type { Actor } from '../../src/faces/operator/actor.ts';
import { createSignInLimits } from '../../src/faces/operator/people/password.ts';
import type { Session } from '../../src/faces/operator/subjects/sessions.ts';
import type { SignInDeps } from '../../src/faces/operator/subjects/sign-in.ts';
import { createTokenBuckets } from '../../src/faces/web/rate-limit.ts';
import { createServer } from '../../src/faces/web/server.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createInvoice,
  eventually,
  payableOf,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { operationDeps, ownProcess } from './operation-deps.ts';

/** A console on the database of a real service. Requests name their person in `x-actor` and their session in `x-session`. */
export type TestConsole = {
  url: string;
  app: FastifyInstance;
  service: TestService;
  actors: Record<string, Actor>;
  /** The sessions by the name in `x-actor`. */
  sessions: Record<string, Session>;
  people(): SignInDeps;
  /** Returns a page as text, by default for the owner `ana`. */
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  post(path: string, form: Record<string, string> | string, headers?: Record<string, string>): Promise<Reply>;
  stop(): Promise<void>;
};

export type Reply = { status: number; headers: Headers; text: string };

export function actorNamed(name: string, more: Partial<Actor> = {}): Actor {
  return {
    kind: 'console',
    name,
    role: 'owner',
    id: null,
    projects: null,
    origin: '192.0.2.7',
    requestId: null,
    ...more,
  };
}

export async function startTestConsole(service?: TestService, more: Partial<ConsoleDeps> = {}): Promise<TestConsole> {
  const over = service ?? (await startTestService({ addressCount: 2 }));
  const now = () => unixMs(over.clock.now());
  const opened = await openConsole({ db: over.db, now, publicUrl: () => over.url }, more);
  return {
    ...{ ...opened, service: over },
    stop: async () => {
      await opened.stop();
      if (service === undefined) await over.stop();
    },
  };
}

type Over = { db: Database; now(): UnixMs; publicUrl(): string };

/** Does the same on any database, with replaceable parts. */
export async function openConsole(
  { db, now, publicUrl }: Over,
  more: Partial<ConsoleDeps> = {},
): Promise<Omit<TestConsole, 'service'>> {
  const actors: Record<string, Actor> = {
    ana: actorNamed('Ana', { id: uuidV7(1, randomBytes(10)) }),
    otto: actorNamed('Otto', { id: uuidV7(2, randomBytes(10)), role: 'operator' }),
    vera: actorNamed('Vera', { id: uuidV7(3, randomBytes(10)), role: 'viewer' }),
  };
  const log = createLogger({ level: 'silent' });
  const random = (bytes: number) => randomBytes(bytes);
  const sessions: Record<string, Session> = {};
  let url = '';
  const limits = createSignInLimits(createTokenBuckets);
  const people = () => ({ db, keyRing: TEST_KEY_RING, consoleUrl: url, now, random, limits });
  const app = createServer({ publicUrl: () => url, trustProxy: [], now, random, log, metrics: createMetrics() });
  addSignInRoutes(app, { people, consoleUrl: () => url, log });
  registerConsole(app, {
    ...{ ...operationDeps({ db, now, random }), randomBelow: (n: number) => randomInt(n), publicUrl },
    onChange: (listener: () => void) => db.listen(INVOICES_CHANNEL, listener),
    consoleUrl: () => url,
    findActor: async ({ headers }) => actors[String(headers['x-actor'])] ?? null,
    findSession: async ({ headers }) => sessions[String(headers['x-actor'])] ?? null,
    ...{ people, ...ownProcess(now()) },
    stepUp: async () => null,
    renderExample,
    sessionOf: ({ headers }) => `${headers['x-actor']} ${headers['x-session'] ?? ''}`,
    ...more,
  });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  const ask = async (path: string, options: RequestInit): Promise<Reply> => {
    const response = await fetch(url + path, { redirect: 'manual', ...options });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return {
    ...{ url, app, actors, sessions, people },
    get: (path, headers = {}) => ask(path, { headers: { 'x-actor': 'ana', ...headers } }),
    post: (path, form, headers = {}) =>
      ask(path, {
        method: 'POST',
        headers: {
          ...{ 'x-actor': 'ana', 'content-type': 'application/x-www-form-urlencoded' },
          ...{ 'sec-fetch-site': 'same-origin', origin: url },
          ...headers,
        },
        body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
      }),
    stop: () => app.close(),
  };
}

/** Returns the token in a page's form that posts to `action`. */
export function tokenIn({ text }: Reply, action: string): string {
  const form = text
    .split('<form ')
    .find((each) => each.includes('method="post"') && each.includes(`action="${action}"`));
  const [, token] = /name="token" value="([^"]+)"/.exec(form ?? '') ?? [];
  if (token === undefined) throw new Error(`no form of the page posts to ${action}`);
  return token;
}

export type Made = { invoiceId: string; externalId: string; address: string; amountMicro: bigint };

export async function newInvoice(service: TestService, externalId: string, amount = '25.00'): Promise<Made> {
  const { body } = await createInvoice(service, { body: { externalId, amount } });
  return { invoiceId: body.invoiceId, externalId, ...(await payableOf(service, body.invoiceId)) };
}

/** Requests another invoice for an existing order. Returns the request id as soon as the console knows it. */
export async function refusedRequest({ service, get }: TestConsole, externalId: string): Promise<string> {
  const { headers } = await createInvoice(service, { body: { externalId, amount: '1.00' } });
  const requestId = String(headers['x-request-id']);
  await eventually(
    () => get(`/requests/${requestId}`),
    ({ status }) => status === 200,
  );
  return requestId;
}

/** Sends amounts, makes them irreversible and waits until the ledger has them. */
export async function send(service: TestService, ...payments: { to: string; amountMicro: bigint }[]): Promise<void> {
  for (const payment of payments) await service.payer.transfer({ contract: service.devnet.usdtContract, ...payment });
  service.devnet.mineUntilSolid();
  const { number } = service.devnet.solid();
  await eventually(
    () => findCursor(service.db, 'devnet'),
    (cursor) => cursor !== null && cursor.solid.number >= number,
  );
}

export async function payInFull(service: TestService, { invoiceId, address, amountMicro }: Made): Promise<void> {
  await send(service, { to: address, amountMicro });
  await untilStatus(service, invoiceId, 'PAID');
}

/** Returns the unmatched transfers (UUIDs), oldest first. */
export async function unmatchedIds(service: TestService): Promise<string[]> {
  const rows = await withOwner(service, async (client) => {
    return (await client.query(`select id from transfers where kind <> 'matched' order by id`)).rows as {
      id: string;
    }[];
  });
  return rows.map(({ id }) => id);
}

/** Makes changes that the service's own user may not make. */
export async function withOwner<T>({ ownerString }: TestService, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(ownerString);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Writes `count` paid invoices for each of the previous days, as a service would have. */
export async function writeHistory(
  service: TestService,
  { id, projectId }: TestProject,
  perDay: (day: number) => number,
): Promise<void> {
  if (decodeId('prj', projectId) !== id) throw new Error('the ids of the project differ');
  const DAY_MS = 86_400_000;
  await withOwner(service, async (client) => {
    await client.query("begin; set local session_replication_role = 'replica'");
    let serial = 0;
    for (let day = 29; day >= 1; day -= 1) {
      for (let n = 0; n < perDay(day); n += 1) {
        serial += 1;
        const at = Math.floor(service.clock.now() / DAY_MS) * DAY_MS - day * DAY_MS + n * 60_000;
        const [invoice, transfer] = [uuidV7(at, randomBytes(10)), uuidV7(at + 90_000, randomBytes(10))];
        const micro = BigInt(10_000_000 + serial * 1_010_000 + 3);
        await client.query(
          `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
             checkout_token, status, created_at, expires_at)
           select $1::uuid, $2, 'devnet', a.id, $3, $4, $5::int8 - 3, $5::int8, $6, 'PENDING', $7, $7::timestamptz + interval '30 minutes'
           from addresses a where a.project_id = $2 order by a.position limit 1`,
          [
            invoice,
            id,
            `old-${serial}`,
            `#${1000 + serial}`,
            String(micro),
            `old${serial}`.padEnd(20, 'x'),
            new Date(at),
          ],
        );
        await client.query(
          `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
             amount_micro, kind, invoice_id, reserved_micro, recorded_at, verified, nodes)
           select $1::uuid, $2, 'devnet', i.address_id, sha256(convert_to($1::text, 'UTF8')), 0, 1, sha256('block'), $3::timestamptz, rpad('T', 34, 'x'),
             i.payable_micro, 'matched', i.id, i.payable_micro, $3::timestamptz + interval '60 seconds', 'proven', '{}'
           from invoices i where i.project_id = $2 and i.id = $4`,
          [transfer, id, new Date(at + 30_000), invoice],
        );
        await client.query(
          `update invoices set status = 'PAID', paid_transfer_id = $1 where project_id = $2 and id = $3`,
          [transfer, id, invoice],
        );
      }
    }
    await client.query('commit');
  });
}
