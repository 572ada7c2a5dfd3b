import type { AccountHex } from '@quittance/tron/address';
import { projectInvoice } from '../../../src/core/domain/event.ts';
import { microUsdt } from '../../../src/core/domain/money.ts';
import { unixMs } from '../../../src/core/domain/time.ts';
import { type Created, type CreateInput, createInvoice } from '../../../src/core/payments/create-invoice.ts';
import { findValidApiKey } from '../../../src/core/store/access/api-keys.ts';
import type { Database } from '../../../src/core/store/db/database.ts';
import { findInvoice } from '../../../src/core/store/ledger/invoices.ts';
import type { Random } from '../engine/random.ts';
import type { Owner, VirtualTime } from '../engine/virtual-time.ts';
import type { Acknowledged, Shown } from '../truth.ts';
import type { Running } from './roles.ts';

export type Shop = { id: string; keyId: string; name: string };

type Order = { shop: Shop; idempotencyKey: string; externalId: string; requestedMicro: bigint; asked: Asked };

/** The world's state when an order was requested. */
export type Asked = Pick<Acknowledged, 'askedAtMs' | 'examinedBefore' | 'darkSinceMs'>;

/** The answer never arrived: the process died, or was paused for too long. */
class NoAnswer extends Error {}

/** For a repeated order, nothing is known about the time before it. */
const LONG_AGO: Asked = { askedAtMs: 0, examinedBefore: 0, darkSinceMs: null };

const PATIENCE_MS = 30_000;
const MAX_TRIES = 40;

/** Integrators: they create invoices, retry with the same key until they have an answer, and read. */
export function createShops({
  time,
  world,
  random,
  apis,
  placeOf,
  headNumber,
  look,
  takeLine,
}: {
  time: VirtualTime;
  /** Lives as long as the world. */
  world: Owner;
  random: Random;
  /** Returns the processes that answer now. */
  apis(): readonly Running[];
  /** Returns an invoice's address and amount, as its page shows them. */
  placeOf(invoiceId: string): Promise<{ account: AccountHex; payableMicro: bigint }>;
  headNumber(): number;
  look(): Promise<Asked>;
  /** Records an error's text. */
  takeLine(line: string): void;
}) {
  const acknowledged: Acknowledged[] = [];
  const shown: Shown[] = [];
  const counts = { created: 0 };
  let orders = 0;

  /** Sends one request to a random process. */
  const call = <Result>(work: (api: Running) => Promise<Result>): Promise<Result> => {
    const ready = apis();
    if (ready.length === 0) return Promise.reject(new NoAnswer('nobody listens'));
    const api = random.pick(ready);
    return new Promise((resolve, reject) => {
      time.after(world, PATIENCE_MS, () => reject(new NoAnswer('no answer in time')));
      api.process.onDeath(() => reject(new NoAnswer('the connection broke')));
      void api.process.run(() => work(api).then(resolve, reject));
    });
  };
  const createOnce = (order: Order): Promise<Created> =>
    call(({ db, process }) => {
      const { idempotencyKey, externalId, requestedMicro } = order;
      const wanted = { idempotencyKey, externalId, requestedMicro: microUsdt(requestedMicro) };
      return createAs(db, process, order.shop.keyId, wanted);
    });
  const createAs = async (
    db: Database,
    process: Running['process'],
    keyId: string,
    wanted: Pick<CreateInput, 'idempotencyKey' | 'externalId' | 'requestedMicro'>,
  ): Promise<Created> => {
    const now = () => unixMs(process.nowMs());
    const key = await findValidApiKey(db, keyId, now());
    if (key === null) return { kind: 'key-not-valid' };
    const steadyNow = () => unixMs(process.steadyMs());
    const deps = { db, now, steadyNow, random: random.bytes, randomBelow: random.below };
    return createInvoice(deps, { ...key, keyId, ...wanted });
  };
  const acknowledge = async (order: Order, created: Created): Promise<Acknowledged | null> => {
    if (created.kind !== 'created' && created.kind !== 'replayed') return null;
    const { invoice } = created;
    const answeredAt = headNumber();
    const acknowledgedAtMs = time.nowMs();
    if (created.kind === 'created') counts.created += 1;
    shown.push({ projectId: order.shop.id, text: JSON.stringify(projectInvoice(invoice, 'http://pay.test')) });
    const place = await placeOf(invoice.id);
    const reported: Acknowledged = {
      ...{ projectId: order.shop.id, keyId: order.shop.keyId, idempotencyKey: order.idempotencyKey },
      ...{
        externalId: order.externalId,
        requestedMicro: order.requestedMicro,
        invoiceId: invoice.id,
        ...place,
        expiresAt: invoice.expiresAt,
      },
      isReplay: created.kind === 'replayed',
      headNumber: answeredAt,
      acknowledgedAtMs,
      ...order.asked,
    };
    acknowledged.push(reported);
    return reported;
  };
  /** Retries until there is an answer, like an SDK. */
  const place = async (order: Order): Promise<Acknowledged | null> => {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      try {
        return await acknowledge(order, await createOnce(order));
      } catch (error) {
        takeLine((error as Error).message);
        await time.sleep(world, random.between(200, 20_000));
      }
    }
    return null;
  };
  return {
    acknowledged,
    shown,
    counts,
    call,
    /** Places a new order, sometimes twice at the same time, like an impatient buyer. */
    order: async (shop: Shop, wantedMicro?: bigint): Promise<Acknowledged | null> => {
      orders += 1;
      const name = `${shop.name}-order-${orders}`;
      const requestedMicro =
        wantedMicro ?? random.pick([25_000_000n, 25_000_000n, 7_500_000n, 1_000_000n, 120_000_000n]);
      const asked = await look();
      const order = { shop, idempotencyKey: `key-${name}`, externalId: name, requestedMicro, asked };
      const twins = random.chance(0.15) ? [order, order] : [order];
      const [first = null] = await Promise.all(twins.map(place));
      return first;
    },
    /** Reads an acknowledged invoice, sometimes one of another shop, which must not be found. */
    read: async (shop: Shop): Promise<void> => {
      const known = random.chance(0.2) ? acknowledged : acknowledged.filter(({ projectId }) => projectId === shop.id);
      if (known.length === 0) return;
      const { invoiceId } = random.pick(known);
      try {
        const found = await call(({ db, process }) => findInvoice(db, shop.keyId, invoiceId, unixMs(process.nowMs())));
        const text =
          found.kind === 'found' ? JSON.stringify(projectInvoice(found.invoice, 'http://pay.test')) : found.kind;
        shown.push({ projectId: shop.id, text });
      } catch (error) {
        takeLine((error as Error).message);
      }
    },
    /** Sends an existing order once more, with its old key. */
    repeat: async (): Promise<void> => {
      if (acknowledged.length === 0) return;
      const { projectId, keyId, idempotencyKey, externalId, requestedMicro } = random.pick(acknowledged);
      try {
        const created = await call(({ db, process }) =>
          createAs(db, process, keyId, { idempotencyKey, externalId, requestedMicro: microUsdt(requestedMicro) }),
        );
        await acknowledge(
          { shop: { id: projectId, keyId, name: '' }, idempotencyKey, externalId, requestedMicro, asked: LONG_AGO },
          created,
        );
      } catch (error) {
        takeLine((error as Error).message);
      }
    },
  };
}
