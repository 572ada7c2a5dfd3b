import { readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import type { Manifest } from '../../src/core/domain/manifest/manifest.ts';
import { headOf } from '../../src/core/domain/manifest/manifest-head.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { nativeSha256 } from '../../src/core/payments/manifest/read-installed.ts';
import { installManifest, readLedgerFacts } from '../../src/faces/operator/manifest/install-manifest.ts';
import { runCli } from '../cli/run-cli.ts';
import { createInvoice, eventually } from '../support/service.ts';
import { type GuardedService, signedText, startGuardedService } from './guarded-service.ts';

const STRANGE_LEDGER = '018f4c1e-aaaa-7000-8000-000000000001';
const OTHER_PROJECT = encodeId('prj', '018f4c1e-bbbb-7000-8000-000000000002');

type Networks = Manifest['networks'];
type Case = { says: string | RegExp; make(next: Manifest): string };

const signed = (change: (next: Manifest) => Manifest) => (next: Manifest) => signedText(change(next));
const entryOf = ({ networks }: Manifest) => Object.values(networks.devnet ?? {})[0];

/** Each begins with a manifest that would be accepted. */
const CASES: Record<string, Case> = {
  'another ledger': {
    says: `it belongs to the ledger ${STRANGE_LEDGER}, but this ledger is`,
    make: signed((next) => ({ ...next, ledgerId: STRANGE_LEDGER })),
  },
  'an older serial': {
    says: 'it has serial 1, but serial 2 was already in force here',
    make: signed((next) => ({ ...next, serial: 1, previous: null })),
  },
  'an unknown key': {
    says: '0 of the 1 pinned keys signed this version, but 1 must sign; 1 of its signatures are from keys that are not pinned',
    make: (next) => signedText(next, new Uint8Array(32).fill(8)),
  },
  'an expired one': {
    says: 'it expired at 2020-01-01T00:00:00.000Z',
    make: signed((next) => ({ ...next, notAfter: '2020-01-01T00:00:00.000Z' })),
  },
  'a duplicate address': {
    says: 'appears twice in one network',
    make: signed((next) => {
      const networks = { devnet: { ...next.networks.devnet, [OTHER_PROJECT]: entryOf(next) } } as Networks;
      return { ...next, networks };
    }),
  },
  'an address of another chain': {
    says: '"0xdAC17F958D2ee523a2206206994597C13D831ec7" is not an address (T…)',
    make: signed((next) => {
      const strange = { ...entryOf(next), addresses: ['0xdAC17F958D2ee523a2206206994597C13D831ec7'] };
      return { ...next, networks: { devnet: { ...next.networks.devnet, [OTHER_PROJECT]: strange } } as Networks };
    }),
  },
  'a project of another network': {
    says: /it lists prj_\w+ under mainnet, but this project is on devnet/,
    make: signed((next) => ({ ...next, networks: { mainnet: next.networks.devnet ?? {} } })),
  },
  'a project under two networks': {
    says: 'under devnet and mainnet: a project has one network',
    make: signed((next) => ({ ...next, networks: { ...next.networks, mainnet: next.networks.devnet ?? {} } })),
  },
  'a signature over other bytes': {
    says: '0 of the 1 pinned keys signed this version',
    make: (next) => signedText(next).replace(next.notAfter, '2098-01-01T00:00:00.000Z'),
  },
};

/** Starts a service with serial 2 in force. Returns a possible next manifest, and a path for a bad file. */
async function startWorld() {
  const service = await startGuardedService();
  const current = await service.vouchFor(service.project.addresses);
  await service.restart();
  const next = { ...current, serial: 3, previous: headOf(current, nativeSha256).digest };
  return { service, next, bad: join(dirname(service.manifestPath), 'bad'), good: await readFile(service.manifestPath) };
}

const install = ({ settings, db }: GuardedService, path: string, isReachable = true) =>
  installManifest(settings, path, {
    now: unixMs(Date.now()),
    askLedger: async (ids) => (isReachable ? readLedgerFacts(db, ids) : null),
  });

/** Writes 100 MB of JSON as a sparse file. */
async function writeHuge(path: string): Promise<void> {
  await writeFile(path, '{"manifest":');
  await truncate(path, 100 * 1024 * 1024);
}

test('no bad manifest is installed or started with, each in words, and the last good one stays in force', async () => {
  const { service, next, bad, good } = await startWorld();
  const refusal = (says: string | RegExp) => ({
    code: 'MANIFEST_REFUSED',
    message: typeof says === 'string' ? expect.stringContaining(says) : expect.stringMatching(says),
  });
  const expectKept = async () => expect(await readFile(service.manifestPath)).toEqual(good);
  for (const [name, { make, says }] of Object.entries(CASES)) {
    await writeFile(bad, make(next));
    await expect(install(service, bad), name).rejects.toMatchObject(refusal(says));
    await expectKept();
  }
  await writeHuge(bad);
  const tooLong = 'it has 104857600 bytes, but a manifest has at most 16777216';
  await expect(install(service, bad)).rejects.toMatchObject(refusal(tooLong));
  await expect(install(service, dirname(bad))).rejects.toMatchObject(refusal('it is not a file'));
  await expectKept();
  expect((await createInvoice(service)).status).toBe(201);

  // The same with the file where the service looks for it: the service refuses to start.
  await service.stopService();
  for (const [name, { make, says }] of Object.entries(CASES)) {
    await service.putManifest(make(next));
    await expect(service.restart(), name).rejects.toMatchObject(refusal(says));
  }
  await writeHuge(service.manifestPath);
  await expect(service.restart()).rejects.toMatchObject(refusal(tooLong));
  await service.putManifest(good);
  await service.restart();
  expect((await createInvoice(service)).status).toBe(201);

  await writeFile(bad, signedText(next));
  expect(await install(service, bad)).toMatchObject({ serial: 3 });
});

test('without the database, what was in force here says whose ledger and whose network it is', async () => {
  const { service, next, bad } = await startWorld();
  for (const name of ['another ledger', 'a project of another network']) {
    const { make, says } = CASES[name] as Case;
    await writeFile(bad, make(next));
    await expect(install(service, bad, false), name).rejects.toThrow(says);
  }
  // Even if the file in force is gone, because the mark beside the data remembers it.
  await service.putManifest('');
  await writeFile(bad, (CASES['another ledger'] as Case).make(next));
  await expect(install(service, bad, false)).rejects.toThrow(`but this ledger is ${next.ledgerId}`);
});

test('the command asks the database, and says so where it does not answer', async () => {
  const { service, next, bad } = await startWorld();
  await writeFile(bad, (CASES['another ledger'] as Case).make(next));
  const { path, pinned, dataDir } = service.settings;
  const run = (databaseUrl: string) =>
    runCli(['manifest', 'install', bad], {
      env: {
        ...{ DATABASE_URL: databaseUrl, QUITTANCE_DATA_DIR: dataDir },
        ...{ QUITTANCE_ADDRESS_MANIFEST: path, QUITTANCE_MANIFEST_KEYS: pinned.keys[0] },
      },
    });
  // The mark would refuse it too; without the mark, only the database knows.
  await writeFile(join(dataDir, 'manifest-serial.json'), '{"serial":1,"digest":"of before"}');
  await writeFile(path, '');
  const asked = await run(service.connectionString);
  expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining(`but this ledger is ${next.ledgerId}`)]);
  const unasked = await run('postgres://nobody@127.0.0.1:1/none');
  expect(unasked.stderr).toContain('WARNING: could not check whether this manifest belongs to the database');
});

test('a running service goes on with the last good one, and an alarm says what is wrong with the new file', async () => {
  const { service, next, good } = await startWorld();
  for (const name of ['another ledger', 'an expired one', 'a project of another network']) {
    const { make, says } = CASES[name] as Case;
    await service.putManifest(make(next));
    const open = await eventually(service.unvouched, (alarms) => 'addresses.manifest' in alarms);
    expect(open['addresses.manifest']).toMatch(says);
    expect((await createInvoice(service)).status).toBe(201);
    await service.putManifest(good);
    await eventually(service.unvouched, (alarms) => Object.keys(alarms).length === 0);
  }
});
