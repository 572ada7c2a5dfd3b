import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { encodeId } from '../../src/core/domain/ids.ts';
import { formatManifest, type Manifest } from '../../src/core/domain/manifest/manifest.ts';
import { headOf } from '../../src/core/domain/manifest/manifest-head.ts';
import { signHead } from '../../src/core/domain/manifest/manifest-signature.ts';
import { createAddressGuard } from '../../src/core/payments/manifest/address-guard.ts';
import { nativeSha256, readInstalled } from '../../src/core/payments/manifest/read-installed.ts';
import type { OwnAddress } from '../../src/core/store/db/address-column.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { listStored } from '../../src/core/store/ledger/addresses.ts';
import type { BenchResult } from '../bench-context.ts';
import { onServer } from '../databases.ts';
import { createShop } from '../ingest/shop.ts';
import { table } from '../targets.ts';

const ADDRESSES = 10_000;
const ROUNDS = 15;
const LOOK_UPS = 1_000_000;
/** Someone who waits for a start notices a longer delay than this. */
const LIMIT_MS = 100;

/** Measures the effect of signed addresses on a start, and the look-up at each read. */
export async function runManifest(postgres: PostgresConnection): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-manifest-'));
  const { connection, projectId } = await createShop(postgres, 'manifest', null);
  const onError = (error: Error) => {
    throw error;
  };
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'bench', onError });
  try {
    const addresses = await addAddresses(connection, projectId);
    const path = join(folder, 'addresses.manifest');
    const privateKey = new Uint8Array(32).fill(7);
    await writeManifest(path, { projectId, addresses, privateKey });
    const pinned = { needed: 1, keys: [signHead('', privateKey).key] };
    const settings = { path, pinned, mode: 'enforce', dataDir: folder } as const;
    const guard = createAddressGuard(settings, () => undefined);
    const rounds: { readMs: number; compareMs: number }[] = [];
    let stored: OwnAddress[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const startMs = performance.now();
      const read = await readInstalled(settings, { ledgerId: null, now: null });
      if (read.kind === 'refused') throw new Error(read.reason);
      guard.install(read.installed);
      const readMs = performance.now();
      stored = [];
      for await (const batch of listStored(db, 'devnet'))
        stored.push(...batch.filter((own) => guard.lackOf(own) === null));
      if (stored.length !== ADDRESSES) throw new Error(`${stored.length} addresses are vouched for`);
      rounds.push({ readMs: readMs - startMs, compareMs: performance.now() - readMs });
    }
    return report(rounds, lookUpUs(guard.refuse, stored));
  } finally {
    await db.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function addAddresses(connection: PostgresConnection, projectId: string): Promise<string[]> {
  return onServer(connection, async (client) => {
    const { rows } = await client.query<{ address: string }>('select address from addresses');
    const accounts = Array.from({ length: ADDRESSES - rows.length }, () => randomBytes(20).toString('hex'));
    const added = accounts.map((account) => accountToAddress(account as AccountHex));
    await client.query(
      `insert into addresses (id, project_id, network, account, address, policy, position)
       select gen_random_uuid(), $1, 'devnet', decode(account, 'hex'), address, 'tail', 1000 + place
       from unnest($2::text[], $3::text[]) with ordinality as each (account, address, place)`,
      [projectId, accounts, added],
    );
    return [...rows.map(({ address }) => address), ...added];
  });
}

type Content = { projectId: string; addresses: readonly string[]; privateKey: Uint8Array };

async function writeManifest(path: string, { projectId, addresses, privateKey }: Content): Promise<void> {
  const entry = { addresses, maxSurcharge: '0.01', policy: 'tail' as const, xpubs: [] };
  const manifest: Manifest = {
    ...{ v: 1, ledgerId: '018f4c1e-aaaa-7000-8000-000000000001', serial: 1, previous: null },
    ...{ notAfter: '2099-01-01T00:00:00.000Z', networks: { devnet: { [encodeId('prj', projectId)]: entry } } },
  };
  const { text } = headOf(manifest, nativeSha256);
  await writeFile(path, formatManifest({ manifest, signatures: [signHead(text, privateKey)] }));
}

function lookUpUs(refuse: (own: OwnAddress) => string | null, stored: readonly OwnAddress[]): number {
  const startMs = performance.now();
  for (let index = 0; index < LOOK_UPS; index += 1) refuse(stored[index % stored.length] as OwnAddress);
  return ((performance.now() - startMs) * 1000) / LOOK_UPS;
}

function report(rounds: readonly { readMs: number; compareMs: number }[], lookUpUs: number): BenchResult {
  const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  const [first = { readMs: 0, compareMs: 0 }] = rounds;
  const usual = {
    readMs: median(rounds.map(({ readMs }) => readMs)),
    compareMs: median(rounds.map(({ compareMs }) => compareMs)),
  };
  const line = (name: string, of: (round: typeof first) => number) => [
    name,
    of(first).toFixed(0),
    of(usual).toFixed(0),
  ];
  const measured = first.readMs + first.compareMs;
  const markdown = [
    table(
      [`${ADDRESSES} addresses`, 'the first time, ms', 'median, ms'],
      [
        line('read the manifest, and check its signature', ({ readMs }) => readMs),
        line('compare the addresses of the database', ({ compareMs }) => compareMs),
        line('together', ({ readMs, compareMs }) => readMs + compareMs),
      ],
    ),
    `A look-up at a read takes ${lookUpUs.toFixed(2)} µs.`,
  ].join('\n\n');
  const targets = [
    { name: 'a start, the first time, ms', reach: `≤ ${LIMIT_MS}`, measured, isReached: measured <= LIMIT_MS },
  ];
  return { markdown, targets, record: { rounds, lookUpUs } };
}
