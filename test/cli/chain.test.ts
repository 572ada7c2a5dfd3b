import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { findOpenAlarms, raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { findHalt, setHalt } from '../../src/core/store/chain/cursor.ts';
import { acquireLease, releaseLease, watcherLease } from '../../src/core/store/chain/leases.ts';
import { saveChainStatus } from '../../src/core/store/chain/status.ts';
import { type Books, startBooks } from '../support/books.ts';
import { type CliOutput, envOf, runCli } from './run-cli.ts';

let books: Books;
let range: { from: number; to: number };
beforeAll(async () => {
  books = await startBooks();
  await books.send(books.project.addresses[0] ?? '', 4_000_007n);
  range = await books.record();
});
afterAll(() => books.stop());
beforeEach(() => books.devnet.setFault());

function run(...args: string[]): Promise<CliOutput> {
  return runCli(args, { env: envOf(books) });
}

const rangeArgs = () => ['--from', String(range.from), '--to', String(range.to)];

test('chain status shows where the ledger stands, the nodes without their paths, and the open alarms', async () => {
  const node = {
    ...{
      url: 'http://node.example/secret-token',
      operator: 'example',
      state: 'paused',
      reason: 'HTTP 429',
      pausedForMs: 9000,
    },
    ...{ requests: 12, refusals: 1, requestsToday: 12, answerMs: 31.4 },
  };
  await saveChainStatus(books.db, 'devnet', books.now(), {
    ...{ blind: null, headNumber: range.to + 9, ownSolidNumber: range.to + 5, nodeSolidNumber: range.to + 6 },
    ...{ processedNumber: range.to, catchUp: { blocksPerSecond: 61.26, secondsLeft: 7.2 }, nodes: [node] },
    requestsPerBlock: 2.04,
  });
  const id = '00000000-0000-7000-8000-000000000001';
  await raiseAlarm(books.db, 'devnet', { id, kind: 'contract-event', subject: 'x', detail: 'the fee was turned on' });
  const { code, stdout } = await run('chain', 'status');
  expect(code).toBe(0);
  expect(stdout).toContain(`block ${range.to}, created `);
  expect(stdout).toContain('6 irreversible blocks');
  expect(stdout).toMatch(/^why +http:\/\/node\.example is paused for 9 s: HTTP 429$/m);
  expect(stdout).toMatch(/^ +catching up: 61\.3 blocks per second, about 8 s left$/m);
  expect(stdout).toContain('http://node.example');
  expect(stdout).not.toContain('secret-token');
  expect(stdout).toContain('the fee was turned on');
  const { json, stdout: text } = await run('chain', 'status', '--json');
  expect(json).toMatchObject({
    network: 'devnet',
    recorded: { number: range.to },
    halt: null,
    behind: { blocks: 6, why: [{ code: 'nodes' }, { code: 'catching-up' }] },
    alarms: [{ kind: 'contract-event' }],
  });
  expect(text).not.toContain('secret-token');
});

test('chain status shows no verified height below the recorded block, and no number of missing blocks while the chain is not visible', async () => {
  const numbers = { headNumber: range.to - 2, ownSolidNumber: range.to - 3, nodeSolidNumber: range.to - 3 };
  const status = { ...numbers, processedNumber: range.to - 3, catchUp: null, nodes: [], requestsPerBlock: null };
  const shownWith = async (blind: string | null) => {
    await saveChainStatus(books.db, 'devnet', books.now(), { ...status, blind });
    const [{ stdout }, { json }] = [await run('chain', 'status'), await run('chain', 'status', '--json')];
    return { text: stdout, json };
  };
  const seen = await shownWith(null);
  expect(seen.text).toMatch(new RegExp(`^irreversible +block ${range.to}, verified by Quittance; ${range.to}, `, 'm'));
  expect(seen.text).toMatch(/^behind +0 irreversible blocks$/m);
  const blind = await shownWith('no node answers');
  expect(blind.text).toMatch(/^behind +unknown, because the chain is not visible$/m);
  expect(blind.json).toMatchObject({ behind: { blocks: null } });
});

test('chain status says that the watcher runs while a process leads, and no longer once it has stopped', async () => {
  const numbers = { headNumber: 9, ownSolidNumber: 5, nodeSolidNumber: 6, processedNumber: 9 };
  await saveChainStatus(books.db, 'nile', unixMs(Date.now()), {
    ...numbers,
    ...{ blind: null, nodes: [], catchUp: null, requestsPerBlock: null },
  });
  const env = { DATABASE_URL: books.database.connectionString, QUITTANCE_NILE_NODES: books.devnet.url };
  const watcherLine = async () => /^watcher +(.*)$/m.exec((await runCli(['chain', 'status'], { env })).stdout)?.[1];
  expect(await watcherLine()).toMatch(/^not running: last status \d+ s ago$/);
  const lease = await acquireLease(books.db, watcherLease('nile'), 'test', 60_000);
  expect(await watcherLine()).toMatch(/^running, last status \d+ s ago$/);
  if (lease !== null) await releaseLease(books.db, lease);
  expect(await watcherLine()).toMatch(/^not running/);
});

test('chain verify exits 0 where the ledger is the chain, 1 with a table where it is not, and chain rescan mends it', async () => {
  const same = await run('chain', 'verify', ...rangeArgs());
  expect([same.code, same.stdout]).toEqual([0, expect.stringContaining('no differences')]);

  const [address = ''] = books.project.addresses;
  await books.send(address, 6_000_001n);
  const missed = await books.record(() => true);
  const args = ['--from', String(missed.from), '--to', String(missed.to)];
  const found = await run('chain', 'verify', ...args);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(new RegExp(`missing from the ledger +in +${address} +6\\.000001`));
  expect(found.stderr).toContain(`quittance chain rescan --from ${missed.from} --to ${missed.to}`);

  const rescanned = await run('chain', 'rescan', ...args, '--json');
  expect([rescanned.code, rescanned.json.added.unmatched]).toEqual([0, 1]);
  expect((await run('chain', 'verify', ...args)).code).toBe(0);
});

test.each([
  [['--from', '-1', '--to', '5'], 'is not a block number'],
  [['--from', '0', '--to', '5'], 'is not a block number'],
  [['--from', '1e3', '--to', '5'], 'is not a block number'],
  [['--from', '１', '--to', '5'], 'is not a block number'],
  [['--from', '99999999999999999999', '--to', '5'], 'is not a block number'],
  [['--from', '9', '--to', '5'], 'is above --to 5'],
  [['--from', '1', '--to', '100001'], 'read --from 1 --to 100000 first'],
  [['--from', '1', '--to', '90000'], 'the last recorded block'],
  [['--from', '1', '--to', '2', '--network', 'mainnet'], 'is not configured here'],
  [['--from', '1', '--to', '2', '--network', "'; drop table"], 'is not a network'],
])('chain rescan %j is refused before a node is asked: %s', async (args, message) => {
  const { code, stderr } = await run('chain', 'rescan', ...args);
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

test('chain resume shows why the watcher stopped, and lets it go on only with --yes', async () => {
  const nothing = await run('chain', 'resume');
  expect([nothing.code, nothing.stderr]).toEqual([3, expect.stringContaining('is not halted')]);
  await setHalt(books.db, 'devnet', 'block 7 contradicts');
  expect((await run('chain', 'status')).stderr).toContain('quittance chain resume');
  const asked = await run('chain', 'resume');
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('block 7 contradicts')]);
  expect(await findHalt(books.db, 'devnet')).not.toBeNull();
  const resumed = await run('chain', 'resume', '--yes', '--reason', 'the node was of a test network');
  expect([resumed.code, resumed.stdout]).toEqual([0, expect.stringContaining('block 7 contradicts')]);
  expect(await findHalt(books.db, 'devnet')).toBeNull();
  const { json } = await run('audit', 'list', '--json');
  expect(JSON.stringify(json)).toContain('"why":"the node was of a test network"');
});

test('chain acknowledge closes what happened once, all of it or one, and no alarm that ends by itself', async () => {
  const raise = (subject: string, kind: AlarmKind = 'contract-event') =>
    raiseAlarm(books.db, 'devnet', { id: randomUUID(), kind, subject, detail: `about ${subject}` });
  const openSubjects = async () => (await findOpenAlarms(books.db, 'devnet')).map(({ subject }) => subject).sort();
  const acknowledge = (...args: string[]) => run('chain', 'acknowledge', ...args);
  await resolveAlarms(books.db, 'devnet', 'contract-event');
  for (const subject of ['tx-a', 'tx-b', 'tx-c']) await raise(subject);
  await raise('', 'blind');
  const one = await acknowledge('--alarm', 'contract-event', '--subject', 'tx-b', '--json');
  expect([one.code, one.json]).toEqual([0, { network: 'devnet', kind: 'contract-event', subject: 'tx-b', closed: 1 }]);
  expect(await openSubjects()).toEqual(['', 'tx-a', 'tx-c']);
  const again = await acknowledge('--alarm', 'contract-event', '--subject', 'tx-b');
  expect([again.code, again.stderr]).toEqual([3, expect.stringContaining('no open alarm contract-event about "tx-b"')]);
  const all = await acknowledge('--alarm', 'contract-event');
  expect([all.code, all.stdout]).toEqual([0, 'closed 2 alarms contract-event of devnet\n']);
  const other = await acknowledge('--alarm', 'blind');
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('closes automatically')]);
  const unknown = await acknowledge('--alarm', 'fire');
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('use one of contract-event')]);
  expect(await openSubjects()).toEqual(['']);
});

test('chain producers lists who may make blocks, since when, why, and who said so', async () => {
  const { code, json } = await run('chain', 'producers', '--json');
  expect(code).toBe(0);
  const [set] = json.data;
  expect(set).toMatchObject({ reason: 'first', nodes: [books.node.origin] });
  expect(Date.parse(set.adoptedAt)).toBeGreaterThan(Date.now() - 3_600_000);
  expect((await run('chain', 'producers')).stdout).toContain(
    `active since ${set.adoptedAt}: first, by ${books.node.origin}`,
  );
  expect(set.producers.map(({ address }: { address: string }) => address).sort()).toEqual(
    books.devnet
      .witnesses()
      .map(({ address }) => address)
      .sort(),
  );
});

test('reconcile exits 0 where all addresses balance, and 1 with the amounts and the rescan where one does not', async () => {
  const [address = ''] = books.project.addresses;
  const good = await run('reconcile', '--json');
  expect(good.code).toBe(0);
  expect(good.json.data.map(({ status }: { status: string }) => status)).toEqual(['good', 'good']);
  await books.send(address, 1_000_001n);
  const { to } = await books.record(() => true);
  const found = await run('reconcile', '--address', address);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(/DIFFERS +\d+\.\d{6} +\d+\.\d{6} +1\.000001/);
  expect(found.stderr).toContain(`--to ${to}`);
});

test.each([
  ['an address of nobody here', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 3, 'no project on devnet'],
  ['an address with a typing mistake', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6s', 2, 'checksum'],
])('reconcile refuses %s', async (_title, address, code, message) => {
  const refused = await run('reconcile', '--address', address);
  expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(message)]);
});
