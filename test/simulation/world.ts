import pg from 'pg';
import { createAlarms } from '../../src/chain/alarms.ts';
import { createFollower, type Follower } from '../../src/chain/follower.ts';
import { AppError } from '../../src/domain/errors.ts';
import { microUsdt } from '../../src/domain/money.ts';
import { unixMs } from '../../src/domain/time.ts';
import { createInvoice } from '../../src/payments/create-invoice.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { insertCursor } from '../../src/store/chain-cursor.ts';
import { openDatabase } from '../../src/store/database.ts';
import { acquireLease, type Lease, releaseLease } from '../../src/store/leases.ts';
import { insertWebhookEndpoint } from '../../src/store/webhook-endpoints.ts';
import { parseAddress } from '../../src/tron/address.ts';
import { USDT_CONTRACTS } from '../../src/tron/usdt.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { createTestProject } from '../support/service.ts';
import { createChain, createRandom, type Log, transactionOf } from './chain.ts';
import { createCrashingDatabase, createSimulatedNode, SimulatedCrash } from './faults.ts';

const NETWORK = 'nile';
const LEASE = `watcher:${NETWORK}`;
const LEASE_MS = 3_600_000;
const START = 1_800_000_000_000;
/** More than a round of the simulation makes blocks. */
const MAX_LOOKS = 100;
/** The watcher asks at least every 8 blocks what is irreversible. */
const SETTLING_BLOCKS = 12;

type SimulatedInvoice = { id: string; account: string; amount: bigint; expiresAt: number };

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Payers, a chain and watchers over a real PostgreSQL. What they do follows from the seed; how statements interleave does not. */
export async function createWorld(seed: number) {
  const random = createRandom(seed);
  const below = (count: number) => Math.floor(random() * count);
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => below(256));
  const database = await createTestDatabase();
  const db = openDatabase({
    connection: database.connection,
    poolSize: 8,
    applicationName: 'simulation',
    onError: () => undefined,
  });
  const client = new pg.Client(database.connectionString);
  await client.connect();
  const query = async (sql: string, values: unknown[] = []) => (await client.query(sql, values)).rows;
  const project = await createTestProject(db, { addressCount: 2, network: NETWORK });
  await insertWebhookEndpoint(db, { id: project.id, projectId: project.id, url: 'http://localhost' });

  const chain = createChain(random, START);
  const faults = { isOn: true };
  const invoices: SimulatedInvoice[] = [];
  const usdt = USDT_CONTRACTS[NETWORK].account;
  const move = () => [chain.fork, chain.advanceSolid, chain.mine][below(3)]?.();
  const node = createSimulatedNode({ chain, usdt, random, faults, move });
  const crashing = createCrashingDatabase(db, random, faults);
  const metrics = createMetrics();
  const genesis = { number: 0, id: chain.head().id, time: unixMs(START) };
  await insertCursor(db, NETWORK, genesis, genesis.id);
  const acquire = async (holder: string): Promise<Lease> => {
    const lease = await acquireLease(db, LEASE, holder, LEASE_MS);
    if (lease === null) throw new Error('the lease is not free');
    return lease;
  };
  let lease = await acquire('first');
  let lostLease: Lease | null = null;

  const create = async () => {
    const order = String(invoices.length);
    const now = () => unixMs(chain.latestTime);
    const created = await createInvoice(
      { db, now, random: bytes, randomBelow: below },
      {
        keyId: project.keyId,
        projectId: project.id,
        policy: 'tail',
        maxSurchargeMicro: 10_000n,
        idempotencyKey: order,
        externalId: order,
        requestedMicro: microUsdt(25_000_000n),
      },
    );
    if (created.kind !== 'created') throw new Error(created.kind);
    const { id, expiresAt } = created.invoice;
    const [row] = await query(
      `select encode(a.account, 'hex') as account, i.payable_micro as amount
       from invoices i join addresses a on a.id = i.address_id where i.id = $1`,
      [id],
    );
    invoices.push({ id, account: row.account, amount: BigInt(row.amount), expiresAt });
  };
  const logOf = (invoice: SimulatedInvoice | undefined): Log[] =>
    invoice === undefined ? [] : [{ to: invoice.account, amount: invoice.amount }];
  const pay = () => {
    const [log] = logOf(invoices[below(invoices.length)]);
    if (log === undefined) return;
    const send = (...logs: Log[]) => chain.waiting.push(transactionOf(random, logs));
    const ways = [
      () => send(log),
      () => send(log),
      () => send(log, log),
      () => [send(log), send(log)],
      () => send({ ...log, amount: log.amount - 1n }),
      () => send({ ...log, amount: 2n ** 256n - 1n }),
      () => send({ ...log, amount: 0n }, { ...log, to: '11'.repeat(20) }, log),
      () => send(log, ...logOf(invoices[0]), ...logOf(invoices.at(-1))),
    ];
    ways[below(ways.length)]?.();
  };
  const deeds = [
    create,
    create,
    pay,
    pay,
    () => chain.mine(),
    () => chain.mine(below(10) === 0 ? 20 * 60_000 : 3000, false),
    // More than a step of the watcher takes.
    () => Array.from({ length: below(45) }, () => chain.mine()),
    chain.fork,
    chain.advanceSolid,
  ];

  const newFollower = () =>
    createFollower(
      {
        db: crashing,
        network: NETWORK,
        pool: {
          available: async () => [node],
          report: () => undefined,
          praise: () => undefined,
          health: () => [],
          setGenesis: () => undefined,
          close: async () => undefined,
        },
        usdt,
        slotMs: null,
        agreement: 1,
        blockMs: 3000,
        publicUrl: 'http://localhost',
        now: () => unixMs(chain.latestTime),
        random: bytes,
        log: createLogger({ level: 'silent' }),
        metrics,
        alarms: createAlarms({ db, network: NETWORK, log: createLogger({ level: 'silent' }), metrics }),
      },
      async () => undefined,
    );
  /** Each holder of a lease is a process with a memory of its own; so is a step whose answer was lost, made once more. */
  const followers = new Map<string, Follower>();
  const step = async (held: Lease, process: string) => {
    const follower = followers.get(process) ?? newFollower();
    followers.set(process, follower);
    try {
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        const { pauseMs } = await follower.step(held, () => false);
        if (pauseMs > 0) return;
      }
    } catch (error) {
      // A step may fail for these reasons only, and the next one goes on from what is in the database.
      if (error instanceof SimulatedCrash) followers.delete(process);
      else if (!(error instanceof AppError)) throw error;
    }
  };

  return {
    /** Something happens: orders, payments, blocks, forks. */
    live: async () => {
      for (let i = below(4); i >= 0; i--) await deeds[below(deeds.length)]?.();
    },
    /** A step of the watcher; sometimes the lease moves before it, and one who lost it, or a second step, works beside. */
    watch: async () => {
      if (below(16) === 0) {
        lostLease = lease;
        await releaseLease(db, lease);
        lease = await acquire(`process ${below(2 ** 30)}`);
      }
      const steps = [step(lease, lease.holder)];
      if (lostLease !== null && below(5) === 0) steps.push(step(lostLease, lostLease.holder));
      if (below(5) === 0) steps.push(step(lease, `${lease.holder} once more`));
      await Promise.all(steps);
    },
    /** All faults end, and everything becomes solid and is processed. */
    settle: async () => {
      faults.isOn = false;
      for (let blocks = 0; blocks < SETTLING_BLOCKS; blocks++) {
        chain.mine();
        chain.solidNumber = chain.head().number;
        await step(lease, lease.holder);
      }
    },
    /** Invoices whose events have a gap, or that are CONFIRMING without a sighting or the other way round. */
    contradictions: () =>
      query(`
        select i.id, i.status, i.event_count, e.events, e.top, s.sightings from invoices i
        cross join lateral (
          select count(*) as events, coalesce(max(sequence), 0) as top from events where invoice_id = i.id) e
        cross join lateral (select count(*) as sightings from sightings where invoice_id = i.id) s
        where e.events <> i.event_count or e.top <> i.event_count
          or (i.status <> 'PAID' and (i.status = 'CONFIRMING') <> (s.sightings > 0))`),
    recordedTransfers: async () =>
      (
        await query(`select concat_ws(' ', block_number, encode(tx_id, 'hex'), log_index, amount_micro, kind, invoice_id)
          as transfer from transfers`)
      )
        .map(({ transfer }) => transfer)
        .sort(),
    /** What the final chain says: the first exact transfer of an invoice pays it, the others are duplicates. */
    expectedTransfers: () => {
      const accounts = project.addresses.map((address) => {
        const parsed = parseAddress(address);
        return parsed.kind === 'ok' ? String(parsed.account) : '';
      });
      const paid = new Set<SimulatedInvoice>();
      const placed = chain.blocks.flatMap(({ number, transactions }) =>
        transactions.flatMap(({ id, logs }) => logs.map((log, index) => ({ number, id, index, ...log }))),
      );
      return placed
        .filter(({ to, amount }) => accounts.includes(to) && amount > 0n)
        .map(({ number, id, index, to, amount }) => {
          const invoice = invoices.find((each) => each.account === to && each.amount === amount);
          if (invoice === undefined) return [number, id, index, amount, 'unmatched'].join(' ');
          const kind = paid.has(invoice) ? 'duplicate' : 'matched';
          paid.add(invoice);
          return [number, id, index, amount, kind, invoice.id].join(' ');
        })
        .sort();
    },
    /** Invoices that are not what the transfers and the clock make of them; an orphaned branch's clock may have expired one. */
    wrongInvoices: () =>
      query(
        `select i.id, i.status, i.expires_at, m.id as matched, i.paid_transfer_id from invoices i
         left join transfers m on m.invoice_id = i.id and m.kind = 'matched'
         where i.paid_transfer_id is distinct from m.id
           or case when m.id is not null then i.status <> 'PAID'
                when i.expires_at <= to_timestamp($1::float8 / 1000) then i.status <> 'EXPIRED'
                when i.expires_at <= to_timestamp($2::float8 / 1000) then i.status not in ('PENDING', 'EXPIRED')
                else i.status <> 'PENDING' end`,
        [chain.head().time, chain.latestTime],
      ),
    /** Events that repeat the one before, that do not end with the status, or without their delivery or transfer. */
    wrongEvents: () =>
      query(`
        select e.id, e.type, e.before, i.status from (
          select id, type, invoice_id, transfer_id, sequence,
            lag(type) over (partition by invoice_id order by sequence) as before from events) e
        left join invoices i on i.id = e.invoice_id
        left join transfers t on t.id = e.transfer_id
        where (i.id is not null and (e.type = e.before or e.before = 'invoice.paid'
            or (e.sequence = i.event_count and e.type <> 'invoice.' || lower(i.status))))
          or (i.id is null and e.type is distinct from 'transfer.' || t.kind)
          or (select count(*) from deliveries d where d.event_id = e.id) <> 1
        union all
        select t.id, t.kind, null, null from transfers t
        where (select count(*) from events e where e.transfer_id = t.id) <> 1`),
    stop: async () => {
      await client.end();
      await db.close();
      await database.drop();
    },
  };
}
