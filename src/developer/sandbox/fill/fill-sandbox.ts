import { createHash, randomBytes } from 'node:crypto';
import { formatCheckoutToken } from '../../../domain/checkout-token.ts';
import { codeWords, wordRange } from '../../../domain/code-word.ts';
import { AppError } from '../../../domain/errors.ts';
import { decodeId, uuidV7 } from '../../../domain/ids.ts';
import { type MicroUsdt, microUsdt } from '../../../domain/money.ts';
import { isLocalNetwork } from '../../../domain/network.ts';
import { type UnixMs, unixMs } from '../../../domain/time.ts';
import type { Actor } from '../../../operator/actor.ts';
import { createProject } from '../../../operator/subjects/projects.ts';
import { addEndpoint } from '../../../operator/subjects/webhooks.ts';
import { findCursor } from '../../../store/chain/cursor.ts';
import type { Database } from '../../../store/db/database.ts';
import { listProjects } from '../../../store/ledger/projects.ts';
import { type AccountHex, accountToAddress } from '../../../tron/address.ts';
import { insertRows, noRows, takePositions } from './insert-rows.ts';
import { type FilledOrder, sweepAddresses, writeOrder } from './order-rows.ts';
import { LIFETIME_MS, tellStory } from './story.ts';

const DAY_MS = 86_400_000;
/** More would take an hour. */
export const MOST_FILLED = 1_000_000;
/** A transaction of some ten thousand rows, which takes a second or two. */
const BATCH = 1000;
const PRICES = [
  3, 4.5, 7.9, 9.99, 12, 14.5, 19, 19.9, 24, 25, 29.9, 35, 39, 45, 49.9, 59, 69, 79.5, 89, 99, 129, 149, 199, 249,
];
const MAX_SURCHARGE_MICRO = 10_000n;
const MIN_ADDRESSES = 3;
/** A name that no DNS server ever knows (RFC 6761), so that what still waits to be delivered fails as at a receiver that is gone. */
const NOWHERE = 'https://shop.invalid/hook';

type Deps = Parameters<typeof addEndpoint.run>[0] & { db: Database; onProgress(filled: number): void };
export type Filled = { projectId: string; endpointId: string; invoices: number; addresses: number; transfers: number };

/**
 * Fills the ledger of a sandbox with a project of its own, whose invoices lie in the past days and went all the ways that invoices go.
 * No chain knows of their transfers: they stand in blocks that are recorded already. The same `seed` tells the same stories.
 */
export async function fillSandbox(
  deps: Deps,
  actor: Actor,
  { invoices, days, seed }: { invoices: number; days: number; seed: number },
): Promise<Filled> {
  const { db, now } = deps;
  await refuseRealLedger(db);
  const random = seededRandom(seed);
  const end = now();
  const project = await createProject.run({ ...deps, networks: ['devnet'] }, actor, {
    ...{ name: `Filled shop of ${invoices} invoices`, network: 'devnet', expected: null },
    ...{
      maxSurchargeMicro: MAX_SURCHARGE_MICRO,
      invoiceLifetimeMs: LIFETIME_MS,
      maxUnpaid: null,
      maxUnpaidPerMinute: null,
    },
  });
  const endpoint = await addEndpoint.run(deps, actor, {
    ...{
      projectId: project.projectId,
      url: NOWHERE,
      description: 'a receiver that is gone',
      eventTypes: null,
      secret: null,
    },
  });
  const ids = {
    projectId: decodeId('prj', project.projectId) ?? '',
    endpointId: decodeId('whe', endpoint.endpointId) ?? '',
  };
  // Before the addresses, so that their books begin at or above every block of the stories.
  const solid = (await findCursor(db, 'devnet'))?.solid.number ?? 0;
  const addresses = await addAddresses(db, ids.projectId, invoices, end);
  const draw = payableDrawer(addresses, random);
  let transfers = 0;
  for (let first = 0; first < invoices; first += BATCH) {
    const rows = noRows();
    for (let n = first; n < Math.min(first + BATCH, invoices); n += 1) {
      const age = days * DAY_MS * (1 - (n + random()) / invoices);
      const order: FilledOrder = {
        ...{ ...ids, n, ...draw(n), createdAt: unixMs(Math.round(end - age)), now: end },
        // Monotonous, and at or below what is recorded.
        blockNumber: Math.floor((solid * n) / invoices),
      };
      writeOrder(rows, order, tellStory(order.payableMicro, random), random);
    }
    transfers += rows.transfers.length;
    sweepAddresses(rows, ids.projectId);
    await db.transaction(async (tx) => {
      const events = rows.events.sort((a, b) => String(a['created_at']).localeCompare(String(b['created_at'])));
      const last = await takePositions(tx, ids.projectId, events.length);
      for (const [index, event] of events.entries()) event['position'] = last - events.length + 1 + index;
      await insertRows(tx, rows);
    });
    deps.onProgress(Math.min(first + BATCH, invoices));
  }
  return {
    projectId: project.projectId,
    endpointId: endpoint.endpointId,
    invoices,
    addresses: addresses.length,
    transfers,
  };
}

/** Where no node is configured by mistake, the database may still be one of real money. */
async function refuseRealLedger(db: Database): Promise<void> {
  const real = (await listProjects(db, null, null)).find(({ network }) => !isLocalNetwork(network));
  if (real === undefined) return;
  throw new AppError('CONFLICT', `the ledger here has a project of ${real.network}: only that of a sandbox is filled`);
}

type FilledAddress = { id: string; address: string };

/** As many addresses as the prices need. Nobody holds their keys. */
async function addAddresses(db: Database, projectId: string, invoices: number, at: UnixMs): Promise<FilledAddress[]> {
  const words = codeWords(wordRange(priceOf(0), MAX_SURCHARGE_MICRO)).length;
  const needed = Math.max(MIN_ADDRESSES, Math.ceil(invoices / PRICES.length / (words * 0.8)));
  const rows = noRows();
  const addresses = Array.from({ length: needed }, (_, index): FilledAddress => {
    const account = randomBytes(20).toString('hex') as AccountHex;
    const [id, address] = [uuidV7(at, randomBytes(10)), accountToAddress(account)];
    rows.addresses.push({
      ...{ id, project_id: projectId, network: 'devnet', account: `\\x${account}`, address, policy: 'tail' },
      ...{ position: index + 1, created_at: new Date(at).toISOString() },
    });
    return { id, address };
  });
  await insertRows(db, rows);
  return addresses;
}

function priceOf(n: number): MicroUsdt {
  return microUsdt(BigInt(Math.round((PRICES[n % PRICES.length] ?? 1) * 1_000_000)));
}

/** Draws what each order asks for and is to pay, on which address: never the same twice. */
function payableDrawer(addresses: readonly FilledAddress[], random: () => number) {
  const words = PRICES.map((_, index) => shuffled(codeWords(wordRange(priceOf(index), MAX_SURCHARGE_MICRO)), random));
  return (n: number) => {
    const turn = Math.floor(n / PRICES.length);
    const address = addresses[turn % addresses.length];
    const payableMicro = words[n % PRICES.length]?.[Math.floor(turn / addresses.length)];
    if (address === undefined || payableMicro === undefined) throw new RangeError(`no amount is left for order ${n}`);
    return { address, requestedMicro: priceOf(n), payableMicro, token: formatCheckoutToken(randomBytes(16)) };
  };
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/** Numbers of 0 … 1 that are the same for the same seed: SHA-256 of the seed and a count. */
function seededRandom(seed: number): () => number {
  let block = Buffer.alloc(0);
  let [count, at] = [0, 0];
  return () => {
    if (at + 4 > block.length) {
      block = createHash('sha256').update(`${seed} ${count++}`).digest();
      at = 0;
    }
    at += 4;
    return block.readUInt32BE(at - 4) / 2 ** 32;
  };
}
