import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import type { Check, Look, Probed } from '../../src/faces/operator/doctor/check.ts';
import {
  databaseDurability,
  databaseRights,
  postgresRelease,
  publicUrl,
  readServer,
  streams,
} from '../../src/faces/operator/doctor/environment-checks.ts';
import { CHECKS } from '../../src/faces/operator/doctor/run-doctor.ts';

/** States that no test can plant in a shared server, in the form in which the server or proxy would report them. */
const NOW = unixMs(Date.parse('2026-12-01T00:00:00Z'));
const WELL = {
  ...{ version: '18.1', versionNumber: 180_001, isSuper: false, mayInsert: true, mayDelete: false },
  ...{ fsync: 'on', fullPageWrites: 'on', synchronousCommit: 'on', checksums: 'on', used: 3, most: 97 },
};
const ANSWERED: Probed = {
  local: null,
  inner: null,
  public: {
    ...{ status: 200, encoding: '', certificateEnds: NOW + 60 * 86_400_000 },
    parts: [
      { text: 'a', atMs: 0 },
      { text: 'b', atMs: 500 },
    ],
  },
  probe: { proof: '', forwarded: 'same', isProxyTrusted: false },
  isLedgerKnown: true,
};

type Reported = {
  server?: Partial<typeof WELL>;
  answer?: object;
  isLive?: boolean;
  isEmbedded?: boolean;
  isOwner?: boolean;
  now?: number;
};

function lookAt({
  server = {},
  answer = {},
  isLive = true,
  isEmbedded = false,
  isOwner = false,
  now = NOW,
}: Reported): Look {
  const readers = new Map<unknown, object>([[readServer, { ...WELL, ...server }]]);
  return {
    ...{ isLive, now: () => now, settings: { publicUrl: 'https://pay.example' } },
    database: () => ({ kind: isEmbedded ? 'embedded' : 'external' }),
    read: async (work: unknown) => readers.get(work) ?? { isOwner },
    probe: async () => ({ ...ANSWERED, public: { ...ANSWERED.public, ...answer } }),
  } as unknown as Look;
}

const FAULTS: [title: string, check: Check, reported: Reported, found: { state: string; fix: RegExp }][] = [
  [
    'a PostgreSQL that is too old',
    postgresRelease,
    { server: { version: '14.9', versionNumber: 140_009 } },
    { state: 'failed', fix: /pg_upgrade/ },
  ],
  [
    ...(['a PostgreSQL that gets no updates', postgresRelease] as const),
    { server: { version: '15.18', versionNumber: 150_018 }, now: Date.parse('2027-12-01T00:00:00Z') },
    { state: 'failed', fix: /pg_upgrade/ },
  ],
  [
    'the embedded one for a main network',
    postgresRelease,
    { isEmbedded: true },
    { state: 'warning', fix: /your own PostgreSQL/ },
  ],
  ['a superuser', databaseRights, { server: { isSuper: true } }, { state: 'failed', fix: /three commands/ }],
  ['the owner of the tables', databaseRights, { isOwner: true }, { state: 'warning', fix: /three commands/ }],
  [
    'a user who may delete',
    databaseRights,
    { server: { mayDelete: true } },
    { state: 'warning', fix: /three commands/ },
  ],
  [
    'a user who may add nothing',
    databaseRights,
    { server: { mayInsert: false } },
    { state: 'failed', fix: /three commands/ },
  ],
  ['fsync that is off', databaseDurability, { server: { fsync: 'off' } }, { state: 'failed', fix: /Turn it on/ }],
  [
    'two that are off',
    databaseDurability,
    { server: { fsync: 'off', fullPageWrites: 'off' } },
    { state: 'failed', fix: /Turn them on/ },
  ],
  [
    'pages without checksums',
    databaseDurability,
    { server: { checksums: 'off' } },
    { state: 'warning', fix: /pg_checksums/ },
  ],
  [
    'a certificate that ends in three days',
    publicUrl,
    { answer: { certificateEnds: NOW + 3 * 86_400_000 } },
    { state: 'warning', fix: /Renew the certificate/ },
  ],
  [
    'streams that are compressed',
    streams,
    { answer: { encoding: 'gzip' } },
    { state: 'failed', fix: /compression of text\/event-stream/ },
  ],
  [
    'streams that are held back',
    streams,
    { answer: { parts: [{ text: 'ab', atMs: 500 }] } },
    { state: 'failed', fix: /proxy_buffering/ },
  ],
];

test.each(FAULTS)('%s', async (_, check, reported, { state, fix }) => {
  const found = await check.look(lookAt(reported));
  expect({ state: found.state, fix: String(found.fix ?? '') }).toEqual({ state, fix: expect.stringMatching(fix) });
});

test('a server and a proxy that are well are good', async () => {
  for (const check of [postgresRelease, databaseRights, databaseDurability, publicUrl, streams]) {
    expect([check.name, (await check.look(lookAt({}))).state]).toEqual([check.name, 'good']);
  }
});

test('there is no check that no test has seen to find something', () => {
  const tests = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => readFileSync(`${import.meta.dirname}/${name}`, 'utf8'))
    .join('\n');
  const seen = (name: string) => tests.includes(`check: '${name}'`) || tests.includes(`, '${name}')`);
  const here = new Set(FAULTS.map(([, { name }]) => name));
  expect(CHECKS.map(({ name }) => name).filter((name) => !here.has(name) && !seen(name))).toEqual([]);
});
