import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { startSecretWatch } from '../../src/core/webhooks/watch-endpoints.ts';
import { runSql } from '../contract/sql.ts';
import { type GuardedService, openGuardedService } from '../manifest/guarded-service.ts';
import { addTestEndpoint, TEST_KEY_RING } from '../support/key-ring.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  inboxOf,
  type TestProject,
  untilStatus,
} from '../support/service.ts';
import { type FastWatch, startFastWatch } from './fast-watch.ts';
import { FORTY_EIGHT, type Group, type Outcome, REFUSED_BY } from './forty-eight.ts';

/** A project with a signed address and an endpoint, for one attempt. `endpointId` is a UUID. */
export type Shop = TestProject & { endpointId: string };
export type Order = { invoiceId: string; checkoutUrl: string; uuid: string; shop: Shop };
type Rights = 'plain' | 'owner';

/** Statements that change a status like the service, with an event for which the attacker can't make a seal. */
export function tellStatus(id: string, status: string, count: number, transferId: string | null = null): string {
  const transfer = transferId === null ? 'null' : `'${transferId}'`;
  return `with s as (
      insert into event_streams (project_id, last_position) select project_id, 1 from invoices where id = '${id}'
      on conflict (project_id) do update set last_position = event_streams.last_position + 1 returning project_id, last_position)
    insert into events (id, project_id, network, type, invoice_id, transfer_id, sequence, body, position)
    select gen_random_uuid(), project_id, 'devnet', 'invoice.${status.toLowerCase()}', '${id}', ${transfer}, ${count}, '{}', last_position from s;
    update invoices set status = '${status}', event_count = ${count}, paid_transfer_id = ${transfer} where id = '${id}'`;
}

/**
 * The result of an attempt that the database didn't refuse. `named` is what an alarm must name; without it, the attempt must be harmless.
 */
type Aftermath = { holds?(): Promise<void>; named?: string; undo?: string };
/** `as` runs a statement with the attempt's rights. */
export type Attempt = (as: (text: string, values?: unknown[]) => Promise<void>, rights: Rights) => Promise<Aftermath>;

export class World {
  #shops: Shop[] = [];
  #watch!: FastWatch;
  #stops: (() => Promise<unknown>)[] = [];
  service!: GuardedService;
  dataDir = '';

  /** Starts the service with signed addresses, required seals, and watches that run continuously. */
  async open(shops: number): Promise<void> {
    this.dataDir = await mkdtemp(join(tmpdir(), 'quittance-tampering-'));
    this.#stops.push(() => rm(this.dataDir, { recursive: true, force: true }));
    const { dataDir } = this;
    const service = await openGuardedService('warn', { rowMacs: 'require', dataDir });
    this.service = service;
    this.#stops.push(() => service.stop());
    const entries: Record<string, object> = {};
    const vouch = ({ projectId, addresses }: TestProject) => {
      entries[projectId] = { addresses, maxSurcharge: '0.01', policy: 'tail', xpubs: [] };
    };
    vouch(service.project);
    for (let n = 0; n < shops; n += 1) {
      const project = await createTestProject(service.db);
      const { id: endpointId } = await addTestEndpoint(service.db, {
        ...{ projectId: project.id, url: service.inboxUrl, secret: service.webhookSecret },
      });
      vouch(project);
      this.#shops.push({ ...project, endpointId });
    }
    await service.vouchFor([], { networks: { devnet: entries as never } });
    service.enforce();
    await service.restart();
    this.#watch = startFastWatch(service);
    this.#stops.push(() => this.#watch.stop());
    const secrets = startSecretWatch({
      ...{ db: service.db, keyRing: TEST_KEY_RING, log: createLogger({ level: 'silent' }), networks: ['devnet'] },
      ...{ tryReceiptKey: async () => null, checkMs: 50 },
    });
    this.#stops.push(() => secrets.stop());
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }

  /** Returns a project that hasn't been tampered with. */
  shop(): Shop {
    const shop = this.#shops.pop();
    if (shop === undefined) throw new Error('the world has no more shops: open it with more');
    return shop;
  }

  async order(shop = this.shop()): Promise<Order> {
    const { status, body } = await createInvoice(this.service, { apiKey: shop.apiKey });
    expect([status, body]).toMatchObject([201, {}]);
    return { ...body, uuid: decodeId('inv', body.invoiceId) ?? '', shop };
  }

  async pay({ invoiceId, shop }: Order): Promise<void> {
    const { body } = await this.read({ invoiceId, shop });
    const amountMicro = BigInt(String(body.payment.payableAmount).replace('.', ''));
    const { address: to } = body.payment;
    const { usdtContract: contract } = this.service.devnet;
    await this.service.payer.transfer({ contract, to, amountMicro });
  }

  async paidOrder(): Promise<Order> {
    const order = await this.order();
    await this.pay(order);
    this.service.devnet.mineUntilSolid();
    await this.untilPaid(order);
    return order;
  }

  /** Works even if the API's answers about the order are suspended. */
  async untilPaid({ uuid }: Order): Promise<void> {
    await eventually(
      () => runSql(this.service, `select from invoices where id = $1 and status = 'PAID'`, [uuid]),
      ({ length }) => length === 1,
    );
  }

  read({ invoiceId, shop }: Pick<Order, 'invoiceId' | 'shop'>) {
    const headers = { 'x-api-key': shop.apiKey };
    return call(`${this.service.url}/v1/invoices/${invoiceId}?expand=payment`, { headers });
  }

  /** Expects that an order of the service's project is created, paid and notified. */
  async expectWell(): Promise<void> {
    const { body } = await createInvoice(this.service);
    await this.pay({ ...body, uuid: '', shop: this.service.project as Shop });
    this.service.devnet.mineUntilSolid();
    await untilStatus(this.service, body.invoiceId, 'PAID');
    await eventually(
      () => inboxOf(this.service, body.invoiceId),
      (told) => told.some(({ body: event }) => event?.type === 'invoice.paid'),
    );
  }

  /** Expects that neither the shop nor the payer is shown the order. */
  async expectShownToNobody(order: Order): Promise<void> {
    const answer = await this.read(order);
    expect(answer).toMatchObject({ status: 503 });
    const page = await fetch(order.checkoutUrl);
    const html = await page.text();
    expect([page.status, html.includes(order.shop.addresses[0] ?? '')]).toEqual([503, false]);
    expect(html).toContain('Do not pay');
    expect((await fetch(`${order.checkoutUrl}/receipt.json`)).status).not.toBe(200);
  }

  /** Returns the texts of all open alarms. */
  async alarms(): Promise<string[]> {
    const rows = await runSql(
      this.service,
      'select kind, subject, detail from alarms where (resolved_at is null or needs_closing and closed_mac is null) order by kind, subject',
    );
    return rows.map(({ kind, subject, detail }) => `${kind} ${subject} ${detail}`);
  }

  /** Waits until the watches have checked everything once more. */
  async lookAgain(): Promise<void> {
    await this.#watch.lookAgain();
  }

  async asOwner(text: string, values: unknown[] = []): Promise<void> {
    const client = new pg.Client({ connectionString: this.service.ownerString });
    await client.connect();
    // Triggers and references are ignored without being disabled, which would raise its own alarm.
    await client.query('set session_replication_role = replica');
    await client.query(text, values).finally(() => client.end());
  }

  async asService(text: string, values: unknown[] = []): Promise<void> {
    const client = new pg.Client({ connectionString: this.service.connectionString });
    await client.connect();
    await client.query(text, values).finally(() => client.end());
  }

  /** Runs an attempt and returns its outcome. `refusedBy` is the expected `refusalOf` if the database refuses it. */
  async outcomeOf(attempt: Attempt, rights: Rights, refusedBy?: RegExp): Promise<Outcome> {
    const as = (text: string, values: unknown[] = []) =>
      rights === 'owner' ? this.asOwner(text, values) : this.asService(text, values);
    let after: Aftermath;
    try {
      after = await attempt(as, rights);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === null) throw error;
      // Any other refusal is a mistake in the attempt.
      expect(refusal).toMatch(refusedBy ?? /^nothing$/);
      return 'prevented';
    }
    const { named, holds, undo } = after;
    await holds?.();
    if (named !== undefined) await this.untilNamed(named);
    if (undo !== undefined) await this.asOwner(undo);
    return named === undefined ? 'harmless' : 'found';
  }

  /** Advances half a minute, the interval of the slowest watch. */
  async untilNamed(text: string): Promise<void> {
    this.service.clock.advance(30_000);
    await eventually(
      () => this.alarms(),
      (alarms) => alarms.some((alarm) => alarm.includes(text)),
    );
  }
}

/** Returns the refusal: `42501 permission denied for table transfers`, `23514 invoices_paid_by_transfer`, `BACKUP_TAMPERED`. */
function refusalOf(error: unknown): string | null {
  const { code, constraint, message } = error as { code?: unknown; constraint?: string; message: string };
  const of = String(code);
  if (of.startsWith('BACKUP_')) return of;
  if (of !== '42501' && !of.startsWith('23') && !of.startsWith('QT')) return null;
  return `${of} ${constraint ?? message}`;
}

/** Runs each tampering of a group with both kinds of rights; `attempts` are by number. */
export function tryGroup(
  world: World,
  group: Group,
  { shops, prepare }: { shops: number; prepare?(): Promise<void> },
  attempts: Readonly<Record<number, Attempt>>,
): void {
  beforeAll(async () => {
    await world.open(shops);
    await prepare?.();
    await world.lookAgain();
    // A busy machine may lag behind the chain. A comparison before the shops were vouched for has raised alarms, which the next one closes.
    await eventually(
      () => world.alarms(),
      (alarms) => alarms.every((alarm) => alarm.startsWith('blind ')),
    );
  });
  afterAll(() => world.close());
  const lines = FORTY_EIGHT.filter(([, of]) => of === group);
  const tries = lines.flatMap(([number, , what, plain, owner]) => [
    { number, what, rights: 'plain', outcome: plain } as const,
    { number, what, rights: 'owner', outcome: owner } as const,
  ]);
  test.each(tries)('$number, $what, with the rights "$rights": $outcome', async ({ number, rights, outcome }) => {
    const attempt = attempts[number];
    if (attempt === undefined) throw new Error(`nobody tries ${number}`);
    expect(await world.outcomeOf(attempt, rights, REFUSED_BY[rights][number])).toBe(outcome);
  });
}
