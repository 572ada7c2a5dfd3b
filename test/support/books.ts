import { randomBytes, randomUUID } from 'node:crypto';
import { startDevnet } from '@quittance/devnet';
import { createPayer, type Payer } from '@quittance/devnet/payer';
import { parseAddress } from '@quittance/tron/address';
import type { Node } from '../../src/core/chain/nodes/node.ts';
import { createNodePool, type NodePool } from '../../src/core/chain/nodes/node-pool.ts';
import { createKnownTerms } from '../../src/core/chain/verify/fee-terms.ts';
import { refreshProducers } from '../../src/core/chain/verify/producers.ts';
import { type ReadDeps, readBlock, readHeaderAt } from '../../src/core/chain/verify/read-block.ts';
import type { SolidBlock } from '../../src/core/domain/chain-block.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import type { MicroUsdt } from '../../src/core/domain/money.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createInvoice } from '../../src/core/payments/create-invoice.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import type { Watching } from '../../src/core/payments/watching.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { findCursor, insertCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease } from '../../src/core/store/chain/leases.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { recordRescanned } from '../../src/faces/operator/subjects/chain-ranges.ts';
import { createTestDatabase, openTestDatabase } from './postgres.ts';
import { createTestProject } from './service.ts';

export type Books = Awaited<ReturnType<typeof startBooks>>;

/** Decides which transfers of a block a watcher misses. */
export type Blindness = (transfer: SolidBlock['transfers'][number]) => boolean;

/**
 * Starts a ledger on a devnet without a watcher. The test decides which irreversible blocks are recorded, and which of their transfers are
 * missed.
 */
export async function startBooks({ addressCount = 2 } = {}) {
  const database = await createTestDatabase();
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  const db = openTestDatabase(database, 4);
  const now = () => unixMs(Date.now());
  const random = (bytes: number) => randomBytes(bytes);
  const metrics = createMetrics();
  const log = createLogger({ level: 'silent' });
  const specs = [unlimitedNode(devnet.url)];
  const pools: NodePool[] = [];
  const newPool = (nodes = specs) => {
    const made = createNodePool({ network: 'devnet', nodes, now, log, metrics, blockMs: 3000 });
    pools.push(made);
    return made;
  };
  const pool = newPool();
  const usdt = accountOf(devnet.usdtContract);
  const project = await createTestProject(db, { addressCount });
  const fees = createKnownTerms();
  const reading: ReadDeps = { db, network: 'devnet', usdt, slotMs: null, pool, agreement: 1, fees, metrics };
  devnet.mineUntilSolid();
  const [node] = await pool.available();
  if (node === undefined) throw new Error('the devnet does not answer');
  await insertCursor(db, 'devnet', await readHeaderAt(reading, node, devnet.solid().number), null);
  const reported = { clock: unixMs(Date.now()), suspect: null };
  await refreshProducers({ db, network: 'devnet', agreement: 1, pool }, [node], null, reported);
  const lease = await acquireLease(db, 'watcher:devnet', 'test', 600_000);
  if (lease === null) throw new Error('the lease is taken');
  const recording = { db, network: 'devnet' as const, publicUrl: 'http://127.0.0.1', now, random };
  const watching: Watching = { ...recording, lease };
  const payer: Payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
  return {
    ...{ db, devnet, database, pool, node, usdt, project, recording, watching, payer, now, random, metrics, log },
    /** Reads with its own pool, so that blaming a node here doesn't silence it elsewhere. */
    rescanning: (urls = [devnet.url], agreement = 1) => ({
      ...reading,
      ...recording,
      pool: newPool(urls.map((url) => unlimitedNode(url))),
      agreement,
      patienceMs: 0,
    }),
    /** Reads an irreversible block from one node. */
    read: (number: number, isMissed?: Blindness) => readOne(reading, node, number, isMissed),
    /**
     * Makes everything sent irreversible and records it, except for missed transfers and for blocks from `before` on. Returns the first and
     * last recorded block.
     */
    async record(
      isMissed: Blindness = () => false,
      before = Number.MAX_SAFE_INTEGER,
    ): Promise<{ from: number; to: number }> {
      devnet.mineUntilSolid();
      const cursor = await findCursor(db, 'devnet');
      const from = (cursor?.solid.number ?? 0) + 1;
      const to = Math.min(devnet.solid().number, before - 1);
      for (let number = from; number <= to; number += 1) {
        await applySolidBlocks(watching, [await readOne(reading, node, number, isMissed)]);
      }
      return { from, to };
    },
    rescanned: (blocks: SolidBlock[]) => recordRescanned(recording, commandActor('books'), blocks),
    async send(to: string, amountMicro: bigint): Promise<void> {
      await payer.transfer({ contract: devnet.usdtContract, to, amountMicro });
    },
    /** Adds the payer's own address to the project, so that its transfers are outgoing. */
    async adoptPayer(): Promise<string> {
      const { address } = devnet.payer;
      const parsed = parseAddress(address);
      if (parsed.kind !== 'ok') throw new Error(parsed.reason);
      const id = uuidV7(Date.now(), random(10));
      await insertAddress(db, { id, projectId: project.id, account: parsed.account, address: parsed.address });
      return address;
    },
    /** Adds empty addresses in a new project. */
    addAddresses: async (addressCount: number) => (await createTestProject(db, { addressCount })).addresses,
    async invoice(amountMicro: bigint) {
      const created = await createInvoice(
        { db, now, random, randomBelow: (n) => Math.floor(Math.random() * n) },
        {
          keyId: project.keyId,
          projectId: project.id,
          policy: 'tail',
          maxSurchargeMicro: 10_000n,
          network: 'devnet',
          invoiceLifetimeMs: 1_800_000,
          idempotencyKey: randomUUID(),
          externalId: randomUUID(),
          requestedMicro: amountMicro as MicroUsdt,
        },
      );
      if (created.kind !== 'created') throw new Error(created.kind);
      return created.invoice;
    },
    async stop(): Promise<void> {
      for (const each of pools) await each.close();
      await db.close();
      await devnet.stop();
      await database.drop();
    },
  };
}

function accountOf(address: string) {
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.account;
}

async function readOne(reading: ReadDeps, node: Node, number: number, isMissed: Blindness = () => false) {
  const read = await readBlock(reading, node, number);
  if (read === null) throw new Error(`no block ${number}`);
  const { id, parentId, time, producer } = read.block;
  const transfers = read.logs.transfers.filter((transfer) => !isMissed(transfer));
  return { number, id, parentId, time, producer, transfers, evidence: { nodes: [node.origin], operatorCount: 1 } };
}
