import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, onTestFinished, test, vi } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { openKeyRing } from '../../src/core/runtime/open-key-ring.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { NO_MANIFEST } from '../../src/faces/operator/operation.ts';
import { addAddresses } from '../../src/faces/operator/subjects/addresses.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { addressOf } from './explain-ledger.ts';
import { startRecording } from './golden-record.ts';
import { newDirectory } from './run-cli.ts';

// See golden.test.ts.

afterEach(() => {
  vi.useRealTimers();
});

const [MASTER_KEY, NEXT_MASTER_KEY] = ['A', 'B'].map((letter) => letter.repeat(42).concat('A='));
const NOBODYS = '01h455vb4pex5vsknk084sn02q';
const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
const FIRST_OF_XPUB = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

/** Creates an empty database, and a recording of the commands. */
async function openPart(part: string, named: Record<string, string> = {}) {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const env = {
    ...{ DATABASE_URL: database.connectionString, DATABASE_OWNER_URL: database.ownerString },
    ...{
      QUITTANCE_DATA_DIR: newDirectory(),
      QUITTANCE_MASTER_KEY: MASTER_KEY,
      QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
    },
  };
  const recording = startRecording(part, env, named);
  const create = (...args: string[]) =>
    recording.run(['project', 'create', '--name', ' Döner & Söhne ', '--network', 'nile', ...args, '--json']);
  return { ...recording, env, create };
}

test('projects and keys are made, changed and refused as they were', async () => {
  const { run, both, create, finishAudited } = await openPart('project');
  await both(['migrate']);
  await both(['project', 'list']);
  await both(['project', 'show']);
  await both(['key', 'create']);
  const { projectId } = await create('--max-surcharge', '0.05', '--lifetime', '2h', '--max-unpaid-per-minute', 'none');
  await run([
    'project',
    'create',
    '--name',
    'Exact',
    '--network',
    'mainnet',
    '--policy',
    'exact',
    '--accent',
    '0a6549',
  ]);
  const wrongs = [
    ...[
      ['--name', ''],
      ['--network', 'odd'],
      ['--policy', 'odd'],
      ['--max-surcharge', '1,5'],
      ['--lifetime', '1s'],
    ],
    ...[
      ['--max-unpaid', '-1'],
      ['--support', ' '],
      ['--return-url', 'http://x'],
      ['--accent', 'red'],
      ['--logo', 'none.png'],
    ],
  ];
  for (const wrong of wrongs) await create(...wrong);
  const update = (...args: string[]) => both(['project', 'update', projectId, ...args]);
  await update();
  await update(
    '--name',
    'Shop',
    '--support',
    'help@shop.example',
    '--return-url',
    'https://shop.example/',
    '--accent',
    'ff0000',
  );
  await update('--no-support', '--policy', 'exact', '--lifetime', '1d', '--max-unpaid', 'none', '--by', 'bert');
  await run(['project', 'update', '--name', 'Which']);
  await both(['project', 'show', projectId]);
  await both(['project', 'list']);
  for (const command of ['archive', 'unarchive']) {
    await both(['project', command, projectId, '--by', 'ada']);
    await run(['project', command, projectId]);
    await both(['project', 'list', '--archived']);
  }
  await run(['project', 'archive', `prj_${NOBODYS}`]);

  const { keyId } = await run(['key', 'create', '--project', projectId, '--json']);
  await run([
    'key',
    'create',
    '--project',
    projectId,
    '--name',
    'cron',
    '--expires',
    '90d',
    '--allow-ip',
    '10.0.0.0/8,::1',
    '--scopes',
    'webhooks,read',
  ]);
  for (const wrong of [
    ['--expires', 'soon'],
    ['--allow-ip', '10.0.0.0/99'],
    ['--name', 'x'.repeat(101)],
    ['--scopes', 'read,write'],
    ['--scopes', ''],
  ]) {
    await both(['key', 'create', '--project', projectId, ...wrong]);
  }
  await both(['key', 'revoke', keyId]);
  await both(['key', 'revoke', `key_${NOBODYS}`]);
  await run(['key', 'revoke', 'key_1']);
  await both(['key', 'list', '--project', projectId]);
  await both(['key', 'list']);
  const expecting = ['project', 'create', '--name', 'Busy', '--network', 'devnet', '--orders-per-day'];
  await both([...expecting, '100', '--prices', '2']);
  await both([...expecting, '2000', '--policy', 'exact']);
  await both([...expecting, '0', '--prices', '1.5']);
  await both(['project', 'create', '--name', 'Busy', '--network', 'devnet', '--prices', '20']);
  await finishAudited();
});

test('keys of the admin API are made, listed, revoked and refused as they were', async () => {
  const { run, both, create, finishAudited } = await openPart('admin-key');
  await both(['migrate']);
  await both(['admin-key', 'list']);
  const { projectId } = await create();
  const make = ['admin-key', 'create', '--name', 'laptop', '--role'];
  const { adminKeyId } = await run([...make, 'owner', '--json']);
  await run([...make, 'viewer', '--projects', projectId, '--expires', '90d', '--allow-ip', '192.0.2.0/24,::1']);
  await both([...make, 'viewer', '--projects', `prj_${NOBODYS}`]);
  await both([...make, 'king']);
  await both([...make, 'viewer', '--expires', 'soon', '--allow-ip', '0.0.0.0/0']);
  await both(['admin-key', 'list']);
  await both(['admin-key', 'revoke', adminKeyId]);
  await both(['admin-key', 'revoke', `adm_${NOBODYS}`]);
  await both(['admin-key', 'revoke', 'qa_1']);
  await run(['admin-key', 'list', '--json']);
  await finishAudited();
});

test('addresses are added, derived, retired and refused as they were', async () => {
  const { run, both, create, finishAudited, env } = await openPart('address');
  await create();
  const add = (...args: string[]) => both(['address', 'add', ...args, '--no-check']);
  await both(['address', 'list']);
  await both(['address', 'capacity']);
  await add(addressOf(1), addressOf(2));
  await add(addressOf(3), addressOf(1));
  await add();
  await add(addressOf(3).slice(0, -1).concat('X'), 'x', '0x00');
  await run(['address', 'add', '-', '--no-check', '--policy', 'exact'], { stdin: `# till\n${addressOf(4)}\n` });
  const file = join(newDirectory(), 'wallet.csv');
  writeFileSync(file, `Label;Address\n"till; 1";${addressOf(5)}\ntill 2;"${addressOf(6)}"\n`);
  await run(['address', 'add', '--file', file, '--no-check', '--json']);
  writeFileSync(file, `address,key\n${addressOf(7)},${'4f'.repeat(32)}\n`);
  await add('--file', file);
  await run(['address', 'add', '--file', `${file}.gone`, '--no-check']);
  const derive = (...args: string[]) => run(['address', 'derive', ...args]);
  await derive('--count', '1');
  await derive('--xpub', XPUB, '--count', '2', '--first', addressOf(9), '--json');
  await derive('--xpub', XPUB, '--count', '2', '--first', FIRST_OF_XPUB, '--auto-limit', '5', '--json');
  await derive('--count', '1');
  await derive('--count', '1', '--policy', 'exact', '--json');
  await derive('--count', '0');
  await derive('--xpub', 'xpub1', '--count', '1', '--json');
  await both(['address', 'retire', addressOf(1), addressOf(5), '--note', 'sold', '--by', 'bert']);
  await both(['address', 'retire', addressOf(1)]);
  await both(['address', 'retire', addressOf(0x44)]);
  await both(['address', 'activate', addressOf(1), addressOf(2)]);
  await both(['address', 'list']);
  await both(['address', 'capacity']);
  await both(['address', 'capacity', '--amount', '9.99']);
  await both(['explain', addressOf(1)]);
  await both(['address', 'pending']);
  const one = await propose(env, addressOf(11), addressOf(12));
  await both(['address', 'pending']);
  const two = await propose(env, addressOf(13));
  await run(['address', 'pending']);
  await run(['address', 'confirm', one]);
  await both(['address', 'confirm', one, '--by', 'bert']);
  await run(['address', 'withdraw', two, '--by', 'bert', '--json']);
  await both(['address', 'withdraw', two]);
  await both(['address', 'withdraw', 'chg_1']);
  await both(['address', 'confirm', `chg_${NOBODYS}`]);
  await run(['address', 'pending']);
  await finishAudited();
});

/** Adds addresses with an admin key, as with `--server`. Returns the id of the pending change. */
async function propose({ DATABASE_URL: connection = '' }: NodeJS.ProcessEnv, ...addresses: string[]): Promise<string> {
  const seals = createSeals({ mode: 'ledger', onProblem: () => undefined }, () =>
    openKeyRing({ masterKeys: [MASTER_KEY ?? ''], databaseUrl: connection, dataDir: '' }),
  );
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'golden', onError: () => undefined, seals });
  const deps = { db, now: () => unixMs(Date.now()), random: randomBytes, addressGuard: NO_MANIFEST };
  const key = { kind: 'admin', name: 'laptop', role: 'owner', id: uuidV7(Date.now(), randomBytes(10)) } as const;
  const config = { sandbox: false, networks: {} };
  const entries = addresses.map((text) => ({ text, place: text }));
  const added = await addAddresses.run(
    { ...deps, config },
    { ...key, projects: null, origin: '192.0.2.7', requestId: null },
    { projectId: undefined, entries, policy: undefined, isFresh: false, isChecked: false },
  );
  await db.close();
  if (added.kind !== 'proposed') throw new Error('they were added at once');
  return added.view.proposed.changeId;
}

/** Answers webhooks with the current `status`. */
async function startReceiver() {
  const answering = { status: 204 };
  const server = createServer((request, response) => {
    // Its clock isn't the test's.
    response.sendDate = false;
    request.resume().on('end', () => response.writeHead(answering.status).end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { answering, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

test('endpoints are added, changed, tested, switched and refused as they were', async () => {
  const { url, answering } = await startReceiver();
  const named: Record<string, string> = { [new URL(url).origin]: 'http://127.0.0.1:XXXXX' };
  const { run, both, create, finishAudited } = await openPart('webhook', named);
  const { projectId } = await create();
  await both(['webhook', 'list']);
  const { endpointId } = await run(['webhook', 'add', '--url', url, '--description', ' till ', '--json']);
  await run([
    'webhook',
    'add',
    '--url',
    'https://shop.example/hook',
    '--events',
    'invoice.paid,ping',
    '--project',
    projectId,
  ]);
  await run(['webhook', 'add', '--url', 'https://own.example/', '--secret', '-'], {
    stdin: `whsec_${Buffer.alloc(32, 7).toString('base64')}\n`,
  });
  for (const wrong of ['http://shop.example', 'https://10.0.0.1/', 'shop', 'https://u:p@shop.example/', url]) {
    await both(['webhook', 'add', '--url', wrong]);
  }
  await run(['webhook', 'add', '--url', 'https://more.example/', '--events', 'odd', '--json']);
  await run(['webhook', 'add', '--url', 'https://more.example/', '--secret', 'short', '--json']);
  await both(['webhook', 'list']);
  const of = (command: string, ...args: string[]) => both(['webhook', command, endpointId, ...args]);
  await of('test');
  answering.status = 500;
  await of('test');
  await both(['deliveries', 'list', '--type', 'ping']);
  await of('update');
  await of('update', '--description', 'the till', '--events', 'all');
  await of('update', '--events', 'odd');
  await of('rotate');
  await of('rotate', '--overlap', '0');
  await of('rotate', '--overlap', '31d');
  await of('disable', '--by', 'bert');
  await both(['webhook', 'list']);
  await of('enable');
  for (const command of ['show', 'test', 'enable', 'disable', 'rotate', 'update']) {
    await run(['webhook', command, `whe_${NOBODYS}`, '--json']);
  }
  await run(['webhook', 'enable', 'whe_1']);

  const env = { QUITTANCE_MASTER_KEY: `${NEXT_MASTER_KEY},${MASTER_KEY}` };
  await both(['master-key', 'status']);
  const first = await run(['receipt', 'rotate', '--json']);
  await run(['receipt', 'rotate']);
  const third = await run(['receipt', 'rotate', '--json']);
  Object.assign(named, { [first.keyId]: '<key 1>', [third.formerKeyId]: '<key 2>', [third.keyId]: '<key 3>' });
  await both(['master-key', 'status'], { env });
  await run(['master-key', 'status', '--json'], { env: { QUITTANCE_MASTER_KEY: NEXT_MASTER_KEY } });
  await both(['webhook', 'rotate', endpointId], { env: { QUITTANCE_MASTER_KEY: NEXT_MASTER_KEY } });
  await both(['receipt', 'rotate'], { env: { QUITTANCE_MASTER_KEY: NEXT_MASTER_KEY } });
  await both(['master-key', 'rotate'], { env });
  await run(['master-key', 'status', '--json'], { env });
  await finishAudited({ env });
});

test('rows are sealed, found changed and accepted with the same words', async () => {
  const { both, run, create, env, finishAudited } = await openPart('ledger');
  const client = new pg.Client({ connectionString: env.DATABASE_OWNER_URL });
  await client.connect();
  onTestFinished(() => client.end());
  await run(['migrate']);
  await create();
  await both(['ledger', 'seal', '--check']);
  await client.query('update projects set mac = null');
  await both(['ledger', 'seal', '--check']);
  await both(['ledger', 'seal']);
  await run(['ledger', 'seal', '--yes', '--by', 'bert']);
  await both(['ledger', 'seal', '--yes']);
  await client.query(`update projects set return_url = 'https://thief.example'`);
  const { rows } = await client.query<{ id: string }>('select id from projects');
  await both(['ledger', 'seal', '--check']);
  await both(['ledger', 'seal', '--yes']);
  await both(['ledger', 'seal', '--accept', `projects:${rows[0]?.id}`]);
  await run(['ledger', 'seal', '--accept', `projects:${rows[0]?.id}`, '--yes']);
  await both(['ledger', 'seal', '--accept', `projects:${rows[0]?.id}`, '--yes']);
  await both(['ledger', 'seal', '--accept', 'events:1']);
  await both(['ledger', 'seal', '--accept', 'odd:1']);
  await both(['ledger', 'seal', '--check', '--accept', 'odd:1']);
  await both(['ledger', 'seal', '--yes'], { env: { DATABASE_OWNER_URL: '' } });
  await both(['ledger', 'seal', '--check'], { env: { QUITTANCE_ROW_MACS: 'off' } });
  await finishAudited();
});

test('what was done stands in the audit log, which is listed, verified and exported as it was', async () => {
  const [host, named] = [hostname(), {} as Record<string, string>];
  for (const [before, after] of [
    ['"origin": "', '"'],
    ['"origin":"', '"'],
    [',', ','],
  ] as const)
    named[`${before}${host}${after}`] = `${before}<host>${after}`;
  const { run, both, create, finishAudited } = await openPart('audit', named);
  await run(['migrate']);
  await both(['audit', 'list']);
  await both(['audit', 'verify']);
  const { projectId } = await create();
  await run(['address', 'add', FIRST_OF_XPUB]);
  const { keyId } = await run(['key', 'create', '--expires', '90d', '--json']);
  await run(['key', 'revoke', keyId]);
  await run(['project', 'update', '--lifetime', '2h', '--json']);
  for (const { seq, hash } of (await run(['audit', 'list', '--json'])).data)
    named[hash] = String(seq).padStart(64, 'x');
  const { head } = await run(['audit', 'verify', '--json']);
  await run(['audit', 'list']);
  await both(['audit', 'list', '--limit', '2', '--before', '4']);
  await both(['audit', 'list', '--subject', projectId]);
  await run(['audit', 'list', '--by', 'anna', '--action', 'key.revoked']);
  await run(['audit', 'list', '--by', 'nobody']);
  await both(['audit', 'verify', '--head', `${head.seq}:${head.hash}`]);
  await both(['audit', 'verify', '--head', `${head.seq}:${'0'.repeat(64)}`]);
  await both(['audit', 'verify', '--head', `9:${head.hash}`]);
  await run(['audit', 'export']);
  await run(['audit', 'export', '--json', '--action', 'key.created']);
  for (const wrong of [
    ['--limit', '0'],
    ['--limit', '1001'],
    ['--before', 'x'],
    ['--by', ''],
  ]) {
    await both(['audit', 'list', ...wrong]);
  }
  await both(['audit', 'verify', '--head', 'odd']);
  await both(['audit', 'export', '--format', 'xml']);
  await finishAudited();
});
